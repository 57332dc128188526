/* SPDX-License-Identifier: BSD-3-Clause */
/* device.c -- the device and its attributes. */
#include "softrnic/verbs/device.h"

#include <errno.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/log.h"
#include "softrnic/io/config.h"
#include "softrnic/rnic/rnic.h"
#include "softrnic/softrnic.h"
#include "softrnic/verbs/context.h"
#include "softrnic/verbs/gid.h"

/* A locally administered EUI-64; its bytes after the first spell "PRMA". */
#define DEVICE_GUID   0x0250524d41000001ull
#define DEVICE_MAX_AH (1 << 24) /* only memory limits the number of address handles */

static struct {
	struct ibv_device device;
	_Atomic(struct ibv_context *) context; /* context of ids; NULL until the device is made */
	struct mr_table *mrs;
	pthread_mutex_t lock; /* serializes the making of the device */
} dev = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void device_fill(void)
{
	bool roce = config_get()->roce;

	dev.device.node_type = roce ? IBV_NODE_CA : IBV_NODE_RNIC;
	dev.device.transport_type = roce ? IBV_TRANSPORT_IB : IBV_TRANSPORT_IWARP;
	strcpy(dev.device.name, "softrnic0");
	/* The interposer shows files with these names (paths.h). */
	strcpy(dev.device.dev_name, "uverbs-softrnic0");
	strcpy(dev.device.dev_path, "/sys/class/infiniband_verbs/uverbs-softrnic0");
	strcpy(dev.device.ibdev_path, "/sys/class/infiniband/softrnic0");
}

/*
 * Make the device's parts. Called with the lock. If a later step fails, the next attempt reuses the
 * results of earlier steps.
 */
static int device_make(void)
{
	struct ibv_context *ctx = NULL;
	int ret;

	config_get();
	ret = fork_hook();
	if (!ret && !dev.mrs)
		ret = mr_table_new(&dev.mrs);
	if (!ret) {
		device_fill();
		ret = context_new(&dev.device, &ctx);
	}
	if (!ret)
		atomic_store_explicit(&dev.context, ctx, memory_order_release);
	return ret;
}

struct ibv_context *softrnic_context(void)
{
	struct ibv_context *ctx = atomic_load_explicit(&dev.context, memory_order_acquire);
	int ret = 0;

	if (ctx)
		return ctx;
	pthread_mutex_lock(&dev.lock);
	if (!atomic_load(&dev.context))
		ret = device_make();
	pthread_mutex_unlock(&dev.lock);
	if (ret)
		errno = -ret;
	return atomic_load(&dev.context);
}

bool softrnic_owns_context(const struct ibv_context *context)
{
	return context && context->device == &dev.device;
}

struct ibv_context *softrnic_open_device(void)
{
	struct ibv_context *ctx = NULL;
	int ret = softrnic_context() ? context_new(&dev.device, &ctx) : -errno;

	if (ret)
		errno = -ret;
	return ctx;
}

/* The context of ids is not closed, because it exists as long as the process. */
int softrnic_close_device(struct ibv_context *context)
{
	if (context != atomic_load(&dev.context))
		context_put(context);
	return 0;
}

const char *softrnic_why(void)
{
	return "softrnic0, a software RNIC in this process: iWARP over TCP sockets, no RDMA hardware needed";
}

struct mr_table *device_mrs(void)
{
	return softrnic_context() ? dev.mrs : NULL;
}

int softrnic_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	*attr = (struct ibv_device_attr){
		.node_guid = htobe64(DEVICE_GUID),
		.sys_image_guid = htobe64(DEVICE_GUID),
		.max_mr_size = UINT64_MAX,
		.page_size_cap = (uint64_t)sysconf(_SC_PAGESIZE),
		.vendor_id = SOFTRNIC_VENDOR_ID,
		.vendor_part_id = 1,
		.hw_ver = 1,
		.device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_SYS_IMAGE_GUID |
				    IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_MEM_WINDOW |
				    IBV_DEVICE_MEM_WINDOW_TYPE_2B,
		.max_qp = RNIC_MAX_QP,
		.max_qp_wr = RNIC_MAX_QP_WR,
		.max_sge = RNIC_MAX_SGE,
		.max_sge_rd = RNIC_MAX_SGE,
		.max_cq = RNIC_MAX_QP,
		.max_cqe = RNIC_MAX_CQE,
		.max_mr = 1 << 24,
		.max_mw = 1 << 24,
		.max_pd = RNIC_MAX_QP,
		.max_qp_rd_atom = RNIC_MAX_RD_ATOM,
		.max_res_rd_atom = RNIC_MAX_RD_ATOM * RNIC_MAX_QP,
		.max_qp_init_rd_atom = RNIC_MAX_RD_ATOM,
		.atomic_cap = IBV_ATOMIC_HCA,
		.max_ah = config_get()->roce ? DEVICE_MAX_AH : 0,
		.max_srq = RNIC_MAX_QP,
		.max_srq_wr = RNIC_MAX_SRQ_WR,
		.max_srq_sge = RNIC_MAX_SGE,
		.max_pkeys = 1,
		.phys_port_cnt = 1,
	};
	strcpy(attr->fw_ver, SOFTRNIC_VERSION);
	return 0;
}

int softrnic_query_device_ex(struct ibv_context *context,
			     const struct ibv_query_device_ex_input *in,
			     struct ibv_device_attr_ex *attr)
{
	int ret;

	if (in && in->comp_mask)
		return EINVAL;
	memset(attr, 0, sizeof(*attr));
	attr->completion_timestamp_mask = UINT64_MAX;
	attr->hca_core_clock = 1000000; /* in kHz; the unit of time stamps is 1 ns */
	attr->phys_port_cnt_ex = 1;
	ret = softrnic_query_device(context, &attr->orig_attr);
	attr->device_cap_flags_ex = attr->orig_attr.device_cap_flags;
	return ret;
}

int softrnic_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr)
{
	bool roce = config_get()->roce;

	if (port != 1)
		return EINVAL;
	*attr = (struct ibv_port_attr){
		.state = IBV_PORT_ACTIVE,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = IBV_MTU_4096,
		.gid_tbl_len = roce ? GID_ROWS : 1,
		.port_cap_flags =
			IBV_PORT_CM_SUP | (roce ? IBV_PORT_IP_BASED_GIDS : IBV_PORT_REINIT_SUP),
		.max_msg_sz = UINT32_MAX,
		.max_vl_num = 1, /* only VL0 */
		.pkey_tbl_len = 1,
		.active_width = 2,
		.active_speed = 2,
		.phys_state = 5, /* link up */
		.link_layer = IBV_LINK_LAYER_ETHERNET,
	};
	return 0;
}

void device_atfork_prepare(void)
{
	pthread_mutex_lock(&dev.lock);
	gids_atfork_prepare();
	if (dev.mrs)
		mr_table_atfork_prepare(dev.mrs);
}

void device_atfork_parent(void)
{
	if (dev.mrs)
		mr_table_atfork_parent(dev.mrs);
	gids_atfork_release();
	pthread_mutex_unlock(&dev.lock);
}

void device_atfork_child(void)
{
	if (dev.mrs)
		mr_table_atfork_child(dev.mrs);
	gids_atfork_release();
	pthread_mutex_unlock(&dev.lock);
}
