/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_extended.c -- the extended calls of verbs, made by a program that uses only libibverbs and
 * librdmacm.
 */
#include <errno.h>
#include <rdma/rdma_verbs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "ends.h"

#define DEPTH 16

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Returns an id that has a device, for calls that need no connection. */
static struct rdma_cm_id *bound(void)
{
	struct rdma_cm_id *id = end_make(RAI_PASSIVE, 0);

	assert_non_null(id->verbs);
	return id;
}

/* --- extended completion queues ----------------------------------------------------------- */

static uint64_t wanted_wc_flags;

/* Make the queue pair with one extended completion queue, for its Sends and its receives. */
static void make_qp_on_extended_queue(struct rdma_cm_id *id)
{
	struct ibv_cq_init_attr_ex cq_attr = {.cqe = DEPTH, .wc_flags = wanted_wc_flags};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(id->verbs, &cq_attr);
	struct ibv_qp_init_attr attr = end_qp_attr();

	assert_non_null(cq);
	attr.send_cq = attr.recv_cq = ibv_cq_ex_to_cq(cq);
	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
}

static struct ibv_cq_ex *queue_of(const struct rdma_cm_id *id)
{
	return (struct ibv_cq_ex *)id->qp->recv_cq;
}

static void ends_close_with_queues(struct ends *d)
{
	struct ibv_cq *client = d->client->qp->recv_cq, *server = d->server->qp->recv_cq;

	rdma_destroy_qp(d->client);
	rdma_destroy_qp(d->server);
	assert_int_equal(ibv_destroy_cq(client), 0);
	assert_int_equal(ibv_destroy_cq(server), 0);
	ends_close(d);
}

/* Wait for a completion, and start a poll whose current completion is this one. */
static void start_poll(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = {0};
	uint64_t end = now_ns() + 10000000000u;
	int err;

	while ((err = ibv_start_poll(cq, &attr)) == ENOENT)
		assert_true(now_ns() < end);
	assert_int_equal(err, 0);
}

/* Send n messages of one byte, as inline data, into `in`. */
static void send_bytes(struct ends *d, struct ibv_mr *mr, char *in, int n)
{
	char out = 'x';

	memset(in, 0, (size_t)n);
	for (int i = 0; i < n; i++)
		assert_int_equal(
			rdma_post_recv(d->server, (void *)(uintptr_t)(100 + i), in + i, 1, mr), 0);
	for (int i = 0; i < n; i++)
		assert_int_equal(
			rdma_post_send(d->client, (void *)7, &out, 1, NULL, IBV_SEND_INLINE), 0);
}

static void an_extended_queue_shows_one_completion_after_the_other(void **state)
{
	struct ends d;
	char in[3];
	struct ibv_mr *mr;
	struct ibv_cq_ex *cq;

	wanted_wc_flags = IBV_WC_STANDARD_FLAGS;
	ends_open_with(&d, make_qp_on_extended_queue);
	mr = rdma_reg_msgs(d.server, in, sizeof(in));
	cq = queue_of(d.server);
	send_bytes(&d, mr, in, 3);
	for (unsigned i = 0; i < 3; i++) {
		start_poll(cq);
		assert_int_equal(cq->status, IBV_WC_SUCCESS);
		assert_int_equal(cq->wr_id, 100 + i);
		assert_int_equal(ibv_wc_read_opcode(cq), IBV_WC_RECV);
		assert_int_equal(ibv_wc_read_byte_len(cq), 1);
		assert_int_equal(ibv_wc_read_qp_num(cq), d.server->qp->qp_num);
		assert_int_equal(ibv_wc_read_wc_flags(cq), 0);
		assert_int_equal(ibv_wc_read_slid(cq), 0);
		assert_int_equal(ibv_wc_read_sl(cq), 0);
		assert_int_equal(ibv_wc_read_dlid_path_bits(cq), 0);
		ibv_end_poll(cq);
	}
	assert_memory_equal(in, "xxx", 3);
	assert_int_equal(ibv_start_poll(cq, &(struct ibv_poll_cq_attr){0}), ENOENT);
	assert_int_equal(ibv_start_poll(cq, &(struct ibv_poll_cq_attr){.comp_mask = 1}), EINVAL);
	assert_int_equal(rdma_dereg_mr(mr), 0);
	ends_close_with_queues(&d);
}

/* After a failed work request the posted receives are flushed. One poll returns all of them. */
static void next_poll_goes_on_until_the_queue_is_empty(void **state)
{
	struct ends d;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	char in[3];
	struct ibv_mr *mr;
	struct ibv_cq_ex *cq;

	wanted_wc_flags = 0;
	ends_open_with(&d, make_qp_on_extended_queue);
	mr = rdma_reg_msgs(d.server, in, sizeof(in));
	cq = queue_of(d.server);
	for (uintptr_t i = 0; i < 3; i++)
		assert_int_equal(rdma_post_recv(d.server, (void *)i, in + i, 1, mr), 0);
	assert_int_equal(ibv_modify_qp(d.server->qp, &attr, IBV_QP_STATE), 0);
	start_poll(cq);
	for (unsigned i = 0;; i++) {
		assert_int_equal(cq->status, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(cq->wr_id, i);
		if (i == 2)
			break;
		assert_int_equal(ibv_next_poll(cq), 0);
	}
	assert_int_equal(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	assert_int_equal(rdma_dereg_mr(mr), 0);
	ends_close_with_queues(&d);
}

/* A completion has the time at which it was queued, not the time of the poll. */
static void a_completion_has_the_time_at_which_it_was_queued(void **state)
{
	struct ends d;
	uint64_t begin, middle, ts[2];
	char in[2];
	struct ibv_mr *mr;
	struct ibv_cq_ex *cq;

	wanted_wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
	ends_open_with(&d, make_qp_on_extended_queue);
	mr = rdma_reg_msgs(d.server, in, sizeof(in));
	cq = queue_of(d.client);
	begin = now_ns();
	send_bytes(&d, mr, in, 2);
	start_poll(cq);
	ts[0] = ibv_wc_read_completion_ts(cq);
	ibv_end_poll(cq);
	middle = now_ns();
	usleep(20000); /* the second completion is queued after this sleep */
	start_poll(cq);
	ts[1] = ibv_wc_read_completion_ts(cq);
	ibv_end_poll(cq);
	assert_true(begin <= ts[0] && ts[0] <= middle);
	assert_true(ts[0] <= ts[1] && ts[1] < middle + 20000000u);
	assert_int_equal(rdma_dereg_mr(mr), 0);
	ends_close_with_queues(&d);
}

static void the_clock_of_completions_can_be_read(void **state)
{
	struct rdma_cm_id *id = bound();
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	struct ibv_device_attr_ex attr;
	uint64_t begin = now_ns();

	assert_int_equal(ibv_query_rt_values_ex(id->verbs, &values), 0);
	assert_int_equal(values.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	assert_true((uint64_t)values.raw_clock.tv_nsec >= begin);
	assert_true((uint64_t)values.raw_clock.tv_nsec <= now_ns());
	assert_int_equal(ibv_query_device_ex(id->verbs, NULL, &attr), 0);
	assert_true(attr.completion_timestamp_mask == UINT64_MAX);
	assert_int_equal(attr.hca_core_clock, 1000000);
	assert_int_equal(attr.phys_port_cnt_ex, 1);
	rdma_destroy_ep(id);
}

static void assert_no_queue(struct ibv_context *ctx, struct ibv_cq_init_attr_ex attr, int err)
{
	errno = 0;
	assert_null(ibv_create_cq_ex(ctx, &attr));
	assert_int_equal(errno, err);
}

static void extended_queues_with_what_the_device_lacks_are_refused(void **state)
{
	struct rdma_cm_id *id = bound();
	struct ibv_context *ctx = id->verbs;
	struct ibv_cq_init_attr_ex one = {.cqe = 1,
					  .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					  .flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED};
	struct ibv_cq_ex *cq;

	assert_no_queue(ctx, (struct ibv_cq_init_attr_ex){.cqe = 0}, EINVAL);
	assert_no_queue(ctx, (struct ibv_cq_init_attr_ex){.cqe = UINT32_MAX}, EINVAL);
	assert_no_queue(ctx,
			(struct ibv_cq_init_attr_ex){
				.cqe = 1, .comp_vector = (uint32_t)ctx->num_comp_vectors},
			EINVAL);
	assert_no_queue(ctx,
			(struct ibv_cq_init_attr_ex){.cqe = 1, .wc_flags = IBV_WC_EX_WITH_CVLAN},
			EOPNOTSUPP);
	assert_no_queue(ctx,
			(struct ibv_cq_init_attr_ex){.cqe = 1,
						     .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
						     .flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN},
			EOPNOTSUPP);
	cq = ibv_create_cq_ex(ctx, &one);
	assert_non_null(cq);
	assert_int_equal(ibv_start_poll(cq, &(struct ibv_poll_cq_attr){0}), ENOENT);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	rdma_destroy_ep(id);
}

/* --- sizes of queues ---------------------------------------------------------------------- */

static void a_queue_is_not_resized_below_what_it_holds(void **state)
{
	struct ends d;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_cq *cq;
	struct ibv_wc wc[4];
	char in[3];
	struct ibv_mr *mr;

	ends_open(&d);
	cq = d.server->recv_cq;
	mr = rdma_reg_msgs(d.server, in, sizeof(in));
	for (uintptr_t i = 0; i < 3; i++)
		assert_int_equal(rdma_post_recv(d.server, (void *)i, in + i, 1, mr), 0);
	assert_int_equal(ibv_modify_qp(d.server->qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(ibv_resize_cq(cq, 2), EINVAL);
	assert_int_equal(ibv_resize_cq(cq, 0), EINVAL);
	assert_int_equal(ibv_resize_cq(cq, INT32_MAX), EINVAL);
	assert_int_equal(ibv_resize_cq(cq, 3), 0);
	assert_int_equal(cq->cqe, 3);
	assert_int_equal(ibv_resize_cq(cq, 100), 0);
	assert_int_equal(cq->cqe, 100);
	assert_int_equal(ibv_poll_cq(cq, 4, wc), 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(wc[i].wr_id, i);
	assert_int_equal(rdma_dereg_mr(mr), 0);
	ends_close(&d);
}

static void moderation_of_events_is_accepted(void **state)
{
	struct rdma_cm_id *id = bound();
	struct ibv_cq *cq = ibv_create_cq(id->verbs, 4, NULL, NULL, 0);
	struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE,
					  .moderate = {.cq_count = 8, .cq_period = 16}};

	assert_int_equal(ibv_modify_cq(cq, &attr), 0);
	attr.attr_mask = IBV_CQ_ATTR_RESERVED;
	assert_int_equal(ibv_modify_cq(cq, &attr), EINVAL);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	rdma_destroy_ep(id);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_extended_queue_shows_one_completion_after_the_other),
		cmocka_unit_test(next_poll_goes_on_until_the_queue_is_empty),
		cmocka_unit_test(a_completion_has_the_time_at_which_it_was_queued),
		cmocka_unit_test(the_clock_of_completions_can_be_read),
		cmocka_unit_test(extended_queues_with_what_the_device_lacks_are_refused),
		cmocka_unit_test(a_queue_is_not_resized_below_what_it_holds),
		cmocka_unit_test(moderation_of_events_is_accepted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
