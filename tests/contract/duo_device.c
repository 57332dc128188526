/* SPDX-License-Identifier: BSD-3-Clause */
/* duo_device.c -- what can be expected of the device, by its attributes. */
#include <dlfcn.h>

#include "duo.h"

/* rdma-core 44 has no names for these bits of device_cap_flags_ex. */
#define CAP_FLUSH        (3ULL << 38)
#define CAP_ATOMIC_WRITE (1ULL << 40)

static bool duo_env_is(const char *var, const char *value)
{
	const char *s = getenv(var);

	return s && !strcmp(s, value);
}

bool duo_is_kernels(void)
{
	return duo_env_is("RPMA_PROVIDER", "verbs");
}

bool duo_is_plain(void)
{
	return duo_env_is("SOFTRNIC_EXTENSIONS", "0") || duo_is_kernels();
}

bool duo_is_older_librpma(void)
{
	return !dlsym(RTLD_DEFAULT, "rpma_conn_get_remote_caps");
}

bool duo_flushes_by_reading(void)
{
	return duo_is_plain() || duo_is_older_librpma();
}

static struct ibv_context *device(void)
{
	static struct ibv_context *ctx;

	if (!ctx)
		OK(rpma_utils_get_ibv_context(duo_addr(), RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx));
	return ctx;
}

bool duo_is_tcp(void)
{
	return device()->device->transport_type == IBV_TRANSPORT_IWARP;
}

bool duo_sends_wait(void)
{
	return !duo_is_kernels() || !duo_is_tcp();
}

bool duo_errors_disconnect(void)
{
	return duo_is_tcp();
}

bool duo_late_posts_complete(void)
{
	return !duo_is_kernels() || !duo_is_tcp();
}

int duo_crowd(int wanted)
{
	const int most = 16;

	return duo_is_kernels() && wanted > most ? most : wanted;
}

static bool duo_device_can(uint64_t caps)
{
	struct ibv_device_attr_ex attr = {0};

	assert_int_equal(ibv_query_device_ex(device(), NULL, &attr), 0);
	return (attr.device_cap_flags_ex & caps) == caps;
}

/* HAVE_WR_FLUSH: librpma was compiled with an rdma-core that can post it. */
static bool duo_device_flushes(void)
{
#ifdef HAVE_WR_FLUSH
	return duo_device_can(CAP_FLUSH);
#else
	return false;
#endif
}

enum ibv_wc_opcode duo_flush_opcode(void)
{
	bool native = duo_is_kernels() ? duo_device_flushes() : !duo_flushes_by_reading();

	return native ? DUO_WC_FLUSH : IBV_WC_RDMA_READ;
}

enum ibv_wc_opcode duo_atomic_write_opcode(void)
{
	bool native =
		duo_is_kernels() ? duo_device_can(CAP_ATOMIC_WRITE) : !duo_flushes_by_reading();

	return native ? DUO_WC_ATOMIC_WRITE : IBV_WC_RDMA_WRITE;
}

void duo_part(struct rpma_conn *conn)
{
	if (!duo_is_tcp())
		OK(rpma_conn_disconnect(conn));
}
