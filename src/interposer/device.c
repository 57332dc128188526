/* SPDX-License-Identifier: BSD-3-Clause */
/* device.c -- the list of devices: rdma-core's first, then the software RNIC. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "interposer/ops.h"
#include "interposer/shim_id.h"
#include "softrnic/softrnic.h"

/* Programs get a pointer to the first element after `rdma_core`. */
struct device_list {
	void *rdma_core; /* rdma-core's own list, which must be given back to rdma-core */
	void *entry[];
};

/* Free the list. Accepts NULL. Returns rdma-core's own list, which the caller must give back to
 * rdma-core, or NULL. */
static void *device_list_free(void *entries)
{
	struct device_list *list;
	void *rdma_core;

	if (!entries)
		return NULL;
	list = (struct device_list *)((char *)entries - offsetof(struct device_list, entry));
	rdma_core = list->rdma_core;
	free(list);
	return rdma_core;
}

/* Make a list of rdma-core's n entries, the software RNIC `ours`, and NULL. If this succeeds, the
 * list owns `rdma_core`. */
static void *device_list_new(void *const *rdma_core, int n, void *ours, int *num)
{
	struct device_list *list = calloc(1, sizeof(*list) + sizeof(list->entry[0]) * (n + 2u));

	if (!list)
		return NULL;
	list->rdma_core = (void *)rdma_core;
	if (n)
		memcpy(list->entry, rdma_core, sizeof(list->entry[0]) * (unsigned)n);
	list->entry[n] = ours;
	if (num)
		*num = n + (ours ? 1 : 0);
	return list->entry;
}

static bool device_is_softrnic(const struct ibv_device *device)
{
	const struct ibv_context *ctx = softrnic_context();

	return ctx && ctx->device == device;
}

/*
 * A function of rdma-core's own library. It has the type of the public function with the same name.
 */
#define RDMA_CORE(name) ((__typeof__(name) *)rdma_core_symbol(#name))

struct ibv_device **ibv_get_device_list(int *num)
{
	struct ibv_context *ctx = softrnic_context();
	struct ibv_device **theirs = NULL;
	void *list;
	int n = 0;

	if (rdma_core_ops())
		theirs = RDMA_CORE(ibv_get_device_list)(&n);
	list = device_list_new((void *const *)theirs, theirs ? n : 0, ctx ? ctx->device : NULL,
			       num);
	if (!list && theirs)
		RDMA_CORE(ibv_free_device_list)(theirs);
	return list;
}

void ibv_free_device_list(struct ibv_device **entries)
{
	void *theirs = device_list_free(entries);

	if (theirs)
		RDMA_CORE(ibv_free_device_list)(theirs);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
	struct ibv_device_attr attr;

	if (!device_is_softrnic(device))
		return rdma_core_ops() ? RDMA_CORE(ibv_get_device_guid)(device) : 0;
	softrnic_query_device(softrnic_context(), &attr);
	return attr.node_guid;
}

/* Returns the number that the kernel gave to the device. The software RNIC has no number. */
int ibv_get_device_index(struct ibv_device *device)
{
	if (!device_is_softrnic(device) && rdma_core_ops())
		return RDMA_CORE(ibv_get_device_index)(device);
	return -1;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	OPS_SCOPE ops =
		device_is_softrnic(device) || !rdma_core_ops() ? &softrnic_ops : rdma_core_ops();

	return ops->is_rdma_core ? RDMA_CORE(ibv_open_device)(device)
				 : plain_qp_adopt(softrnic_open_device());
}

struct ibv_context *ibv_import_device(int fd)
{
	OPS_SCOPE ops = rdma_core_ops() ? rdma_core_ops() : &softrnic_ops;

	return ops->is_rdma_core ? RDMA_CORE(ibv_import_device)(fd) : REFUSE_NUL(EOPNOTSUPP);
}

struct ibv_context **rdma_get_devices(int *num)
{
	struct ibv_context *ctx = plain_qp_adopt(softrnic_context()), **theirs = NULL;
	void *list;
	int n = 0;

	if (rdma_core_ops())
		theirs = RDMA_CORE(rdma_get_devices)(&n);
	list = device_list_new((void *const *)theirs, theirs ? n : 0, ctx, num);
	if (!list && theirs)
		RDMA_CORE(rdma_free_devices)(theirs);
	return list;
}

void rdma_free_devices(struct ibv_context **entries)
{
	void *theirs = device_list_free(entries);

	if (theirs)
		RDMA_CORE(rdma_free_devices)(theirs);
}
