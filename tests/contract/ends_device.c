/* SPDX-License-Identifier: BSD-3-Clause */
/* ends_device.c -- features of the device that tests can expect, from the device's attributes. */
#include <dlfcn.h>

#include "ends.h"

/* rdma-core 44 has no names for these bits of device_cap_flags_ex. */
#define CAP_FLUSH        (3ULL << 38)
#define CAP_ATOMIC_WRITE (1ULL << 40)

static bool ends_env_is(const char *var, const char *value)
{
	const char *s = getenv(var);

	return s && !strcmp(s, value);
}

bool ends_is_kernels(void)
{
	return ends_env_is("RPMA_PROVIDER", "verbs");
}

bool ends_is_plain(void)
{
	return ends_env_is("SOFTRNIC_EXTENSIONS", "0") || ends_is_kernels();
}

bool ends_is_older_librpma(void)
{
	return !dlsym(RTLD_DEFAULT, "rpma_conn_get_remote_caps");
}

bool ends_flushes_by_reading(void)
{
	return ends_is_plain() || ends_is_older_librpma();
}

static struct ibv_context *device(void)
{
	static struct ibv_context *ctx;

	if (!ctx)
		OK(rpma_utils_get_ibv_context(ends_addr(), RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx));
	return ctx;
}

bool ends_is_tcp(void)
{
	return !ends_is_kernels() || device()->device->transport_type == IBV_TRANSPORT_IWARP;
}

bool ends_acknowledges(void)
{
	return !ends_is_plain() && device()->device->transport_type == IBV_TRANSPORT_IB;
}

bool ends_sends_wait(void)
{
	return !ends_is_kernels() || !ends_is_tcp();
}

bool ends_errors_disconnect(void)
{
	return ends_is_tcp();
}

bool ends_late_posts_complete(void)
{
	return !ends_is_kernels() || !ends_is_tcp();
}

int ends_max_conns(int wanted)
{
	const int most = 16;

	return ends_is_kernels() && wanted > most ? most : wanted;
}

static bool ends_device_can(uint64_t caps)
{
	struct ibv_device_attr_ex attr = {0};

	assert_int_equal(ibv_query_device_ex(device(), NULL, &attr), 0);
	return (attr.device_cap_flags_ex & caps) == caps;
}

/* HAVE_WR_FLUSH means that librpma was compiled with an rdma-core that can post flushes. */
static bool ends_device_flushes(void)
{
#ifdef HAVE_WR_FLUSH
	return ends_device_can(CAP_FLUSH);
#else
	return false;
#endif
}

enum ibv_wc_opcode ends_flush_opcode(void)
{
	bool native = ends_is_kernels() ? ends_device_flushes() : !ends_flushes_by_reading();

	return native ? ENDS_WC_FLUSH : IBV_WC_RDMA_READ;
}

enum ibv_wc_opcode ends_atomic_write_opcode(void)
{
	bool native =
		ends_is_kernels() ? ends_device_can(CAP_ATOMIC_WRITE) : !ends_flushes_by_reading();

	return native ? ENDS_WC_ATOMIC_WRITE : IBV_WC_RDMA_WRITE;
}

void ends_disconnect(struct rpma_conn *conn)
{
	if (!ends_is_tcp())
		OK(rpma_conn_disconnect(conn));
}
