/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_nccl.c -- a replay of NCCL's network module net_ib, which no machine without a GPU can run.
 *
 * It is written from what that module calls, and shares no code with it: verbs is loaded by name,
 * each call is looked up under its version, and the data path goes through the context's table.
 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* verbs.h has macros of these names; here they are members. */
#undef ibv_query_port
#undef ibv_reg_mr

/* Each call that the module cannot do without, with its version node. */
#define NEEDED(X)                                                                                  \
	X("IBVERBS_1.1", ibv_get_device_list)                                                      \
	X("IBVERBS_1.1", ibv_free_device_list)                                                     \
	X("IBVERBS_1.1", ibv_get_device_name)                                                      \
	X("IBVERBS_1.1", ibv_open_device)                                                          \
	X("IBVERBS_1.1", ibv_close_device)                                                         \
	X("IBVERBS_1.1", ibv_get_async_event)                                                      \
	X("IBVERBS_1.1", ibv_ack_async_event)                                                      \
	X("IBVERBS_1.1", ibv_query_device)                                                         \
	X("IBVERBS_1.1", ibv_query_port)                                                           \
	X("IBVERBS_1.1", ibv_query_gid)                                                            \
	X("IBVERBS_1.1", ibv_query_qp)                                                             \
	X("IBVERBS_1.1", ibv_alloc_pd)                                                             \
	X("IBVERBS_1.1", ibv_dealloc_pd)                                                           \
	X("IBVERBS_1.1", ibv_reg_mr)                                                               \
	X("IBVERBS_1.1", ibv_dereg_mr)                                                             \
	X("IBVERBS_1.1", ibv_create_cq)                                                            \
	X("IBVERBS_1.1", ibv_destroy_cq)                                                           \
	X("IBVERBS_1.1", ibv_create_qp)                                                            \
	X("IBVERBS_1.1", ibv_modify_qp)                                                            \
	X("IBVERBS_1.1", ibv_destroy_qp)                                                           \
	X("IBVERBS_1.1", ibv_fork_init)                                                            \
	X("IBVERBS_1.1", ibv_event_type_str)
/* The module uses these where they are there. */
#define OPTIONAL(X)                                                                                \
	X("IBVERBS_1.8", ibv_reg_mr_iova2)                                                         \
	X("IBVERBS_1.10", ibv_query_ece)                                                           \
	X("IBVERBS_1.10", ibv_set_ece)                                                             \
	X("IBVERBS_1.12", ibv_reg_dmabuf_mr)

static struct {
	void *lib;
#define MEMBER(version, name) __typeof__(name) *name;
	NEEDED(MEMBER)
	OPTIONAL(MEMBER)
} verbs;

/* The names in the module's order. The second one is the development package's. */
static void *load_verbs(void)
{
	const char *set = getenv("NCCL_IBVERBS_LIB");
	const char *const names[] = {set ? set : "libibverbs.so", "libibverbs.so",
				     "libibverbs.so.1"};
	void *lib = NULL;

	for (size_t i = 0; !lib && i < sizeof(names) / sizeof(names[0]); i++)
		lib = dlopen(names[i], RTLD_NOW);
	return lib;
}

static void every_call_is_found_under_its_version(void **state)
{
	verbs.lib = load_verbs();
	assert_non_null(verbs.lib);
#define FIND(version, name)                                                                        \
	*(void **)&verbs.name = dlvsym(verbs.lib, #name, version);                                 \
	if (!verbs.name)                                                                           \
		fail_msg("%s is not found as %s", #name, version);
	NEEDED(FIND)
	OPTIONAL(FIND)
}

struct device {
	struct ibv_context *ctx;
	struct ibv_port_attr port;
	struct ibv_pd *pd;
};

static struct ibv_context *open_by_name(const char *name)
{
	struct ibv_device **list = verbs.ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;

	assert_non_null(list);
	for (int i = 0; list[i] && !ctx; i++)
		if (!strcmp(verbs.ibv_get_device_name(list[i]), name))
			ctx = verbs.ibv_open_device(list[i]);
	verbs.ibv_free_device_list(list);
	return ctx;
}

static void device_open(struct device *d)
{
	assert_non_null(verbs.lib);
	assert_int_equal(verbs.ibv_fork_init(), 0);
	d->ctx = open_by_name("softrnic0");
	assert_non_null(d->ctx);
	assert_int_equal(verbs.ibv_query_port(d->ctx, 1, (void *)&d->port), 0);
	d->pd = verbs.ibv_alloc_pd(d->ctx);
	assert_non_null(d->pd);
}

static void device_close(struct device *d)
{
	assert_int_equal(verbs.ibv_dealloc_pd(d->pd), 0);
	assert_int_equal(verbs.ibv_close_device(d->ctx), 0);
}

static void the_device_is_one_that_the_module_takes(void **state)
{
	struct ibv_device_attr attr;
	union ibv_gid gid, none = {0};
	struct device d;

	device_open(&d);
	assert_int_equal(verbs.ibv_query_device(d.ctx, &attr), 0);
	assert_int_equal(attr.phys_port_cnt, 1);
	assert_int_equal(d.port.state, IBV_PORT_ACTIVE);
	assert_int_equal(d.port.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_true(d.port.active_speed && d.port.active_width);
	assert_int_equal(verbs.ibv_query_gid(d.ctx, 1, 0, &gid), 0);
	assert_memory_not_equal(&gid, &none, sizeof(gid));
	device_close(&d);
}

/* The module asks with an impossible descriptor, and expects one of two errors. */
static void there_are_no_dma_buffers(void **state)
{
	struct device d;

	device_open(&d);
	errno = 0;
	assert_null(verbs.ibv_reg_dmabuf_mr(d.pd, 0, 0, 0, -1, 0));
	assert_true(errno == EOPNOTSUPP || errno == EPROTONOSUPPORT);
	device_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_is_found_under_its_version),
		cmocka_unit_test(the_device_is_one_that_the_module_takes),
		cmocka_unit_test(there_are_no_dma_buffers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
