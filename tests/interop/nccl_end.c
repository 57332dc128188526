/* SPDX-License-Identifier: BSD-3-Clause */
/* nccl_end.c -- find the device and connect queue pairs like NCCL's network module. */
#include "nccl_end.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct nccl_verbs verbs;

/* Try the names in the module's order. Only the development package has the second name. */
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

void nccl_load_verbs(void)
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

static struct ibv_context *context_open(void)
{
	struct ibv_context *ctx;

	assert_non_null(verbs.lib);
	assert_int_equal(verbs.ibv_fork_init(), 0);
	ctx = open_by_name("softrnic0");
	assert_non_null(ctx);
	return ctx;
}

static void device_use(struct device *d, struct ibv_context *ctx)
{
	d->ctx = ctx;
	assert_int_equal(verbs.ibv_query_port(d->ctx, 1, (void *)&d->port), 0);
	d->pd = verbs.ibv_alloc_pd(d->ctx);
	assert_non_null(d->pd);
}

void device_open(struct device *d)
{
	device_use(d, context_open());
}

void device_close(struct device *d)
{
	assert_int_equal(verbs.ibv_dealloc_pd(d->pd), 0);
	assert_int_equal(verbs.ibv_close_device(d->ctx), 0);
}

static void *wait_for_events(void *arg)
{
	struct ibv_context *ctx = arg;
	struct ibv_async_event event;

	while (!verbs.ibv_get_async_event(ctx, &event))
		verbs.ibv_ack_async_event(&event);
	return NULL;
}

/* Like the module, open the device once in a process, with a thread, and never close it. */
static struct ibv_context *context_of_process(int which)
{
	static struct ibv_context *contexts[2];
	pthread_t thread;

	if (!contexts[which]) {
		contexts[which] = context_open();
		assert_int_equal(pthread_create(&thread, NULL, wait_for_events, contexts[which]),
				 0);
		pthread_detach(thread);
	}
	return contexts[which];
}

static struct ibv_qp *qp_new(struct end *e)
{
	struct ibv_qp_init_attr init = {.send_cq = e->cq,
					.recv_cq = e->cq,
					.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 2 * REQUESTS,
						.max_recv_wr = REQUESTS,
						.max_send_sge = 1,
						.max_recv_sge = 1}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags =
					   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC};
	struct ibv_qp *qp = verbs.ibv_create_qp(e->device.pd, &init);

	assert_non_null(qp);
	assert_int_equal(verbs.ibv_modify_qp(qp, &attr,
					     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						     IBV_QP_ACCESS_FLAGS),
			 0);
	return qp;
}

static void qp_receive_from(struct ibv_qp *qp, uint32_t number, const union ibv_gid *gid)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
				   .path_mtu = IBV_MTU_4096,
				   .dest_qp_num = number,
				   .rq_psn = 0,
				   .max_dest_rd_atomic = 1,
				   .min_rnr_timer = 12,
				   .ah_attr = {.is_global = 1,
					       .grh = {.dgid = *gid, .hop_limit = 255},
					       .port_num = 1}};

	assert_int_equal(verbs.ibv_modify_qp(qp, &attr,
					     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
						     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
						     IBV_QP_MAX_DEST_RD_ATOMIC |
						     IBV_QP_MIN_RNR_TIMER),
			 0);
}

static void qp_send(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS,
				   .timeout = 20,
				   .retry_cnt = 7,
				   .rnr_retry = 7,
				   .sq_psn = 0,
				   .max_rd_atomic = 1};

	assert_int_equal(verbs.ibv_modify_qp(qp, &attr,
					     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
						     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
						     IBV_QP_MAX_QP_RD_ATOMIC),
			 0);
}

/* Register with relaxed ordering, as the module does if libibverbs has the call. */
static struct ibv_mr *end_register(struct end *e, void *addr, size_t len)
{
	struct ibv_mr *mr = verbs.ibv_reg_mr_iova2(
		e->device.pd, addr, len, (uintptr_t)addr,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			IBV_ACCESS_RELAXED_ORDERING);

	assert_non_null(mr);
	return mr;
}

static void end_open(struct end *e, struct ibv_context *ctx)
{
	*e = (struct end){.data = calloc(1, MESSAGE)};
	assert_non_null(e->data);
	device_use(&e->device, ctx);
	assert_int_equal(verbs.ibv_query_gid(e->device.ctx, 1, 0, &e->gid), 0);
	e->cq = verbs.ibv_create_cq(e->device.ctx, 2 * REQUESTS, e, NULL, 0);
	assert_non_null(e->cq);
	e->qp = qp_new(e);
	e->slots_mr = end_register(e, e->slots, sizeof(e->slots));
	e->data_mr = end_register(e, e->data, MESSAGE);
}

static void end_close(struct end *e)
{
	if (e->flush_qp) {
		assert_int_equal(verbs.ibv_destroy_qp(e->flush_qp), 0);
		assert_int_equal(verbs.ibv_dereg_mr(e->flush_mr), 0);
	}
	assert_int_equal(verbs.ibv_destroy_qp(e->qp), 0);
	assert_int_equal(verbs.ibv_destroy_cq(e->cq), 0);
	assert_int_equal(verbs.ibv_dereg_mr(e->slots_mr), 0);
	assert_int_equal(verbs.ibv_dereg_mr(e->data_mr), 0);
	assert_int_equal(verbs.ibv_dealloc_pd(e->device.pd), 0);
	free(e->data);
}

void pair_connect(struct pair *p)
{
	struct end *ends[] = {&p->sender, &p->receiver};

	for (int i = 0; i < 2; i++)
		end_open(ends[i], context_of_process(i));
	/* The receiver's queue pair must be ready before the sender's. */
	for (int i = 1; i >= 0; i--) {
		qp_receive_from(ends[i]->qp, ends[!i]->qp->qp_num, &ends[!i]->gid);
		qp_send(ends[i]->qp);
	}
	p->receiver.flush_qp = qp_new(&p->receiver);
	qp_receive_from(p->receiver.flush_qp, p->receiver.flush_qp->qp_num, &p->receiver.gid);
	qp_send(p->receiver.flush_qp);
	p->receiver.flush_mr = verbs.ibv_reg_mr(p->receiver.device.pd, &p->receiver.flush_word,
						sizeof(int), IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(p->receiver.flush_mr);
}

void pair_close(struct pair *p)
{
	end_close(&p->sender);
	end_close(&p->receiver);
}
