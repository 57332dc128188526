/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows: which memory they open to which queue pair, and that no memory is open after a
 * window's end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/post.h"
#include "lib/qp_bench.h"
#include "lib/unit.h"
#include "softrnic/rnic/mw.h"

#define LEN  (1u << 20)
#define AT   4096u  /* offset of the window in the region */
#define SIZE 65536u /* length of the window */

static struct bench t;
static struct mr *home; /* b's region, which peers can access only through windows */
static struct mw *window;
static struct ibv_send_wr wr, *bad;

static void open_as(enum ibv_mw_type type, bool acks, bool unreliable)
{
	struct pair_options o = pair_defaults();

	o.acks = acks;
	o.unreliable = unreliable;
	bench_open(&t, &o, LEN);
	home = end_reg(t.b, t.mb, LEN, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	assert_int_equal(mw_new(t.b->mrs, &t.b->pd, type, &window), 0);
	/* only the call ibv_bind_mw() binds a window of type 1 */
	window->in_call = type == IBV_MW_TYPE_1;
}

/* Destroy a window as its owner does. */
static void give_back(void)
{
	struct mr *binding = mw_kill(window);

	qp_detach_mr(t.b->qp, binding, false);
	qp_detach_mr(t.a->qp, binding, false);
	mr_wait_idle(binding);
	mw_unbind(binding);
	mr_unref(binding);
	mw_delete(window);
	window = NULL;
}

static void close_all(void)
{
	if (window)
		give_back();
	assert_int_equal(mr_try_kill(home), 0);
	qp_detach_mr(t.b->qp, home, false);
	mr_wait_idle(home);
	mr_delete(home);
	bench_close(&t);
}

static int post_bind(uint32_t key, size_t at, size_t len, unsigned access)
{
	wr = (struct ibv_send_wr){
		.wr_id = 70,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {.mw = &window->ibv,
			    .rkey = key,
			    .bind_info = {.mr = &home->ibv,
					  .addr = (uintptr_t)t.mb + at,
					  .length = len,
					  .mw_access_flags = access}},
	};
	return qp_post_send(t.b->qp, &wr, &bad);
}

static uint32_t bind_part(unsigned access)
{
	uint32_t key = ibv_inc_rkey(window->ibv.rkey);

	assert_int_equal(post_bind(key, AT, SIZE, access), 0);
	pair_run(&t.p);
	expect_wc(&t.b->scq, 70, IBV_WC_SUCCESS);
	return key;
}

static uint32_t bind_for_writes(void)
{
	return bind_part(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			 IBV_ACCESS_REMOTE_ATOMIC);
}

/* Post a request of `a` that uses the window's key for the memory at offset `at` of b. */
static int post_to(enum ibv_wr_opcode opcode, uint32_t key, size_t at, size_t len)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)t.ma, .length = (uint32_t)len, .lkey = t.mra->ibv.lkey};

	wr = (struct ibv_send_wr){.wr_id = 1,
				  .opcode = opcode,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED};
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.rkey = key;
		wr.wr.atomic.remote_addr = (uintptr_t)t.mb + at;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.rkey = key;
		wr.wr.rdma.remote_addr = (uintptr_t)t.mb + at;
	}
	return qp_post_send(t.a->qp, &wr, &bad);
}

static void expect_to_work(enum ibv_wr_opcode opcode, uint32_t key, size_t at, size_t len)
{
	assert_int_equal(post_to(opcode, key, at, len), 0);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
}

/* The stream ends, so a test must call this last. */
static void expect_refused(enum ibv_wr_opcode opcode, uint32_t key, size_t at, size_t len)
{
	uint8_t before[64];

	memcpy(before, t.mb + at, sizeof(before));
	assert_int_equal(post_to(opcode, key, at, len), 0);
	pair_run(&t.p);
	assert_int_equal(next_wc(&t.a->scq).status, IBV_WC_REM_ACCESS_ERR);
	assert_true(qp_is_failed(t.b->qp));
	assert_memory_equal(before, t.mb + at, sizeof(before));
}

/* --- what a window opens -------------------------------------------------------------------- */

static void writes_reads_and_atomics_go_through(bool acks, enum ibv_mw_type type)
{
	uint32_t key;

	open_as(type, acks, false);
	key = bind_for_writes();
	expect_to_work(IBV_WR_RDMA_WRITE, key, AT, SIZE);
	assert_memory_equal(t.mb + AT, t.ma, SIZE);
	expect_to_work(IBV_WR_RDMA_WRITE, key, AT + SIZE - 1, 1);
	memset(t.ma, 0, SIZE);
	expect_to_work(IBV_WR_RDMA_READ, key, AT, SIZE);
	assert_memory_equal(t.mb + AT, t.ma, SIZE);
	memset(t.mb + AT, 0, 8);
	expect_to_work(IBV_WR_ATOMIC_FETCH_AND_ADD, key, AT, 8);
	assert_int_equal(t.mb[AT], 1);
	close_all();
}

static void a_window_opens_a_part_of_its_region(void **state)
{
	writes_reads_and_atomics_go_through(false, IBV_MW_TYPE_1);
	writes_reads_and_atomics_go_through(true, IBV_MW_TYPE_1);
	writes_reads_and_atomics_go_through(false, IBV_MW_TYPE_2);
	writes_reads_and_atomics_go_through(true, IBV_MW_TYPE_2);
}

static void nothing_else_is_open(void **state)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		size_t at, len;
		unsigned access;
	} cases[] = {
		{IBV_WR_RDMA_WRITE, AT - 1, 1, IBV_ACCESS_REMOTE_WRITE},
		{IBV_WR_RDMA_WRITE, AT + SIZE, 1, IBV_ACCESS_REMOTE_WRITE},
		{IBV_WR_RDMA_WRITE, AT + SIZE - 7, 8, IBV_ACCESS_REMOTE_WRITE},
		{IBV_WR_RDMA_WRITE, AT, 8, IBV_ACCESS_REMOTE_READ},
		{IBV_WR_RDMA_WRITE, AT, 8, IBV_ACCESS_LOCAL_WRITE},
		{IBV_WR_RDMA_READ, AT, 8, IBV_ACCESS_REMOTE_WRITE},
		{IBV_WR_RDMA_READ, AT - 8, 16, IBV_ACCESS_REMOTE_READ},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, AT, 8, IBV_ACCESS_REMOTE_WRITE},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, AT + SIZE, 8, IBV_ACCESS_REMOTE_ATOMIC},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		open_as(IBV_MW_TYPE_2, true, false);
		expect_refused(cases[i].opcode, bind_part(cases[i].access), cases[i].at,
			       cases[i].len);
		close_all();
	}
}

static void the_queue_pair_must_permit_it_too(void **state)
{
	open_as(IBV_MW_TYPE_2, true, false);
	qp_permit(t.b->qp, IBV_ACCESS_REMOTE_READ);
	expect_refused(IBV_WR_RDMA_WRITE, bind_for_writes(), AT, 8);
	close_all();
}

static void a_window_may_be_zero_based(void **state)
{
	uint32_t key;

	open_as(IBV_MW_TYPE_2, true, false);
	key = bind_part(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED);
	t.mb[AT + 3] = (uint8_t)~t.ma[0];
	expect_to_work(IBV_WR_RDMA_WRITE, key, (size_t)3 - (uintptr_t)t.mb, 1);
	assert_int_equal(t.mb[AT + 3], t.ma[0]);
	close_all();
}

/* This end cannot use a window's STag for its own local memory. */
static void a_window_is_no_local_memory(void **state)
{
	struct mr *mr;
	void *ptr;

	open_as(IBV_MW_TYPE_1, false, false);
	uint32_t key = bind_for_writes();

	assert_int_equal(mr_hold(t.b->mrs, &t.b->pd, key, (uintptr_t)t.mb + AT, 8, 0, &mr, &ptr),
			 MR_BAD_PD);
	close_all();
}

/* b has opened the window to its own peer. `a` stands for another queue pair of b's domain, and
 * must get no access. */
static void type_2_is_for_one_queue_pair(void **state)
{
	struct mr_need need;
	struct mr_near near = {.mr = NULL};
	uint32_t key;
	void *ptr;

	open_as(IBV_MW_TYPE_2, false, false);
	key = bind_for_writes();
	need = (struct mr_need){.pd = &t.b->pd,
				.to = (uintptr_t)t.mb + AT,
				.len = 8,
				.all = IBV_ACCESS_REMOTE_WRITE};
	assert_int_equal(mw_hold_near(t.b->mrs, &near, key, need, UINT64_MAX, &ptr), MR_BAD_PD);
	assert_null(mw_invalidate(t.b->mrs, &t.b->pd, UINT64_MAX, key));
	assert_null(mw_invalidate(t.b->mrs, &t.a->pd, window->now->only, key));
	need.pd = &t.a->pd;
	assert_int_equal(mw_hold_near(t.b->mrs, &near, key, need, window->now->only, &ptr),
			 MR_BAD_PD);
	expect_to_work(IBV_WR_RDMA_WRITE, key, AT, 8);
	close_all();
}

/* --- which binds are permitted -------------------------------------------------------------- */

static void expect_bind_to_fail(bool acks)
{
	pair_run(&t.p);
	assert_int_equal(next_wc(&t.b->scq).status, IBV_WC_MW_BIND_ERR);
	assert_true(qp_is_failed(t.b->qp));
	if (acks)
		assert_true(qp_is_failed(t.a->qp));
	close_all();
}

static void a_window_gets_no_more_than_its_region_has(void **state)
{
	const unsigned write = IBV_ACCESS_REMOTE_WRITE;

	for (int i = 0; i < 8; i++) {
		open_as(IBV_MW_TYPE_2, i & 1, false);
		uint32_t key = ibv_inc_rkey(window->ibv.rkey);

		if (i / 2 == 0) /* the range is not in the region */
			assert_int_equal(post_bind(key, LEN - 10, 11, write), 0);
		else if (i / 2 == 1) /* the region lacks the right to flush */
			assert_int_equal(post_bind(key, 0, 8, VEXT_ACCESS_FLUSH_PERSISTENT), 0);
		else if (i / 2 == 2) /* the STag of another window */
			assert_int_equal(post_bind(key ^ 0x100, 0, 8, write), 0);
		else /* a length of 0, which only type 1 permits */
			assert_int_equal(post_bind(key, 0, 0, write), 0);
		expect_bind_to_fail(i & 1);
	}
}

static void a_region_must_be_registered_for_windows(void **state)
{
	open_as(IBV_MW_TYPE_2, false, false);
	wr = (struct ibv_send_wr){
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {.mw = &window->ibv,
			    .rkey = ibv_inc_rkey(window->ibv.rkey),
			    .bind_info = {.mr = &t.mrb->ibv,
					  .addr = (uintptr_t)t.mb,
					  .length = 8,
					  .mw_access_flags = IBV_ACCESS_REMOTE_READ}},
	};
	assert_int_equal(qp_post_send(t.b->qp, &wr, &bad), 0);
	expect_bind_to_fail(false);
}

static void type_2_is_bound_again_only_after_its_end(void **state)
{
	open_as(IBV_MW_TYPE_2, false, false);
	uint32_t key = bind_for_writes();

	assert_int_equal(post_bind(ibv_inc_rkey(key), 0, 8, IBV_ACCESS_REMOTE_READ), 0);
	expect_bind_to_fail(false);
}

static void type_1_is_bound_again_and_the_former_key_ends(void **state)
{
	open_as(IBV_MW_TYPE_1, true, false);
	uint32_t key = bind_for_writes(), next = ibv_inc_rkey(key);

	assert_int_equal(post_bind(next, 0, 8, IBV_ACCESS_REMOTE_WRITE), 0);
	pair_run(&t.p);
	expect_wc(&t.b->scq, 70, IBV_WC_SUCCESS);
	expect_to_work(IBV_WR_RDMA_WRITE, next, 0, 8);
	expect_refused(IBV_WR_RDMA_WRITE, key, AT, 8);
	close_all();
}

static void type_1_of_length_0_is_unbound(void **state)
{
	open_as(IBV_MW_TYPE_1, true, false);
	uint32_t key = bind_for_writes();

	assert_int_equal(mr_try_kill(home), -EBUSY);
	assert_int_equal(post_bind(ibv_inc_rkey(key), 0, 0, 0), 0);
	pair_run(&t.p);
	expect_wc(&t.b->scq, 70, IBV_WC_SUCCESS);
	expect_refused(IBV_WR_RDMA_WRITE, ibv_inc_rkey(key), AT, 8);
	assert_int_equal(mr_try_kill(home), 0);
	close_all();
}

/* --- the end of a window -------------------------------------------------------------------- */

static void post_local_inv(uint32_t key)
{
	wr = (struct ibv_send_wr){.wr_id = 71,
				  .opcode = IBV_WR_LOCAL_INV,
				  .send_flags = IBV_SEND_SIGNALED,
				  .invalidate_rkey = key};
	assert_int_equal(qp_post_send(t.b->qp, &wr, &bad), 0);
}

static void a_local_invalidate_ends_it(void **state)
{
	open_as(IBV_MW_TYPE_2, true, false);
	uint32_t key = bind_for_writes();

	assert_int_equal(mr_try_kill(home), -EBUSY);
	post_local_inv(key);
	pair_run(&t.p);
	expect_wc(&t.b->scq, 71, IBV_WC_SUCCESS);
	expect_refused(IBV_WR_RDMA_WRITE, key, AT, 8);
	assert_int_equal(mr_try_kill(home), 0); /* the region can be deregistered now */
	close_all();
}

static void a_local_invalidate_of_no_window_fails(void **state)
{
	open_as(IBV_MW_TYPE_2, false, false);
	post_local_inv(home->ibv.rkey);
	pair_run(&t.p);
	expect_wc(&t.b->scq, 71, IBV_WC_MW_BIND_ERR);
	close_all();
}

static void send_inv(uint32_t key)
{
	assert_int_equal(end_recv(t.b, 72, t.mrb, 0, 8), 0);
	wr = (struct ibv_send_wr){.wr_id = 1,
				  .opcode = IBV_WR_SEND_WITH_INV,
				  .send_flags = IBV_SEND_SIGNALED,
				  .invalidate_rkey = key};
	assert_int_equal(qp_post_send(t.a->qp, &wr, &bad), 0);
	pair_run(&t.p);
}

static void the_peer_may_invalidate_it(void **state)
{
	open_as(IBV_MW_TYPE_2, true, false);
	uint32_t key = bind_for_writes();
	struct ibv_wc wc;

	send_inv(key);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	wc = next_wc(&t.b->rcq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV);
	assert_int_equal(wc.invalidated_rkey, key);
	assert_int_equal(post_bind(ibv_inc_rkey(key), AT, 8, IBV_ACCESS_REMOTE_WRITE), 0);
	pair_run(&t.p);
	expect_wc(&t.b->scq, 70, IBV_WC_SUCCESS); /* the window can be bound again */
	expect_to_work(IBV_WR_RDMA_WRITE, ibv_inc_rkey(key), AT, 8);
	expect_refused(IBV_WR_RDMA_WRITE, key, AT, 8);
	close_all();
}

static void the_peer_cannot_invalidate_type_1(void **state)
{
	open_as(IBV_MW_TYPE_1, true, false);
	send_inv(bind_for_writes());
	assert_true(qp_is_failed(t.b->qp));
	assert_int_equal(mr_try_kill(home), -EBUSY);
	close_all();
}

/* The answer to the Read is built but not sent: the answer keeps the earlier bytes. */
static void a_read_under_way_keeps_its_bytes(void **state)
{
	uint8_t *before = malloc(SIZE);

	open_as(IBV_MW_TYPE_2, false, false);
	uint32_t key = bind_for_writes();

	memcpy(before, t.mb + AT, SIZE);
	assert_int_equal(post_to(IBV_WR_RDMA_READ, key, AT, SIZE), 0);
	end_send_all(t.a);
	while (end_take(t.b, SIZE_MAX) > 0)
		;
	end_gather(t.b, 100, &(int){0}); /* a part of the answer */
	post_local_inv(key);
	pair_run(&t.p);
	expect_wc(&t.b->scq, 71, IBV_WC_SUCCESS);
	memset(t.mb + AT, 0, SIZE);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	assert_memory_equal(t.ma, before, SIZE);
	free(before);
	close_all();
}

/* A large Write is half received when the window ends: the rest is not placed. */
static void the_rest_of_a_write_is_refused_after_the_end(void **state)
{
	open_as(IBV_MW_TYPE_2, true, false);
	uint32_t key = bind_for_writes();

	assert_int_equal(post_to(IBV_WR_RDMA_WRITE, key, AT, SIZE), 0);
	end_send_all(t.a);
	end_take(t.b, 20000);
	give_back();
	memset(t.mb, 0, LEN);
	pair_run(&t.p);
	for (size_t i = 0; i < LEN; i++)
		assert_int_equal(t.mb[i], 0);
	assert_int_equal(next_wc(&t.a->scq).status, IBV_WC_REM_ACCESS_ERR);
	close_all();
}

/* Placed bytes are recorded for the region, so destroying the window does not affect them. */
static void what_came_through_it_is_flushed_with_the_region(void **state)
{
	open_as(IBV_MW_TYPE_1, false, false);
	uint32_t key = bind_for_writes();

	window->now->backing.persist = home; /* treat the memory as if it had a medium */
	window->now->backing.durable = home->backing.durable = true;
	home->backing.persist = home;
	expect_to_work(IBV_WR_RDMA_WRITE, key, AT, 100);
	give_back();
	bench_flush_all(&t, 5);
	pair_run(&t.p);
	expect_wc(&t.a->scq, 5, IBV_WC_SUCCESS);
	assert_int_equal(t.b->wb_count, 1);
	bench_expect_wb(t.b, 0, t.mb + AT, 100);
	close_all();
}

/* --- the end of a window whose bytes are being digested -------------------------------------- */

/* Begin a digest of the window's bytes. The test has to end the digest. Returns the window's
 * key. */
static uint32_t begin_digest(struct vext_digest *digest)
{
	uint32_t key = bind_for_writes();

	t.b->wb_hold = true;
	t.b->wb_answer = (struct vext_digest){.alg = VEXT_DIGEST_BLAKE2B,
					      .source = VEXT_DIGEST_FROM_MEDIUM,
					      .durability = VEXT_DURABILITY_FILE,
					      .len = SIZE};
	assert_int_equal(
		qp_verify(t.a->qp, 9, key, (uintptr_t)t.mb + AT, SIZE, VEXT_DIGEST_BLAKE2B, digest),
		0);
	pair_run(&t.p);
	assert_true(t.b->wb_running);
	assert_int_equal(t.b->wb.kind, QP_JOB_DIGEST);
	return key;
}

static void a_window_is_not_idle_before_its_digest_ends(void **state)
{
	struct vext_digest digest;
	struct mr *binding;

	open_as(IBV_MW_TYPE_2, true, false);
	(void)begin_digest(&digest);
	binding = mw_kill(window);
	qp_detach_mr(t.b->qp, binding, false);
	assert_false(mr_is_idle(binding));
	end_finish_writeback(t.b, 0);
	assert_true(mr_is_idle(binding));
	mr_unref(binding);
	close_all();
}

/* The window is destroyed before the job of the digest is fetched: no digest is computed. */
static void no_digest_begins_after_the_end(void **state)
{
	struct vext_digest digest;
	uint32_t key;

	open_as(IBV_MW_TYPE_2, true, false);
	key = bind_for_writes();
	assert_int_equal(qp_verify(t.a->qp, 9, key, (uintptr_t)t.mb + AT, SIZE, VEXT_DIGEST_BLAKE2B,
				   &digest),
			 0);
	end_send_all(t.a);
	while (end_take(t.b, SIZE_MAX) > 0)
		;
	give_back();
	pair_run(&t.p);
	assert_int_equal(t.b->wb_count, 0);
	assert_int_equal(next_wc(&t.a->scq).status, IBV_WC_REM_ACCESS_ERR);
	close_all();
}

static void a_local_invalidate_awaits_the_digest(void **state)
{
	struct vext_digest digest;
	uint64_t acks;
	uint32_t key;

	open_as(IBV_MW_TYPE_2, true, false);
	key = begin_digest(&digest);
	post_local_inv(key);
	pair_run(&t.p);
	expect_no_wc(&t.b->scq);
	/* the end of the window waits for the digest */
	assert_false(qp_due(t.b->qp) & QP_DUE_SEND);
	assert_int_equal(mr_try_kill(home), -EBUSY);
	acks = qp_counters(t.b->qp)->acks_out;
	assert_int_equal(post_to(IBV_WR_RDMA_WRITE, t.mrb->ibv.rkey, 0, 64), 0);
	pair_run(&t.p);
	/* the Ack of the Write is sent meanwhile */
	assert_true(qp_counters(t.b->qp)->acks_out > acks);
	end_finish_writeback(t.b, 0);
	pair_run(&t.p);
	expect_wc(&t.b->scq, 71, IBV_WC_SUCCESS);
	expect_wc(&t.a->scq, 9, IBV_WC_SUCCESS);
	expect_wc(&t.a->scq, 1, IBV_WC_SUCCESS);
	assert_int_equal(mr_try_kill(home), 0);
	close_all();
}

/* The peer must wait for the digest before it invalidates the window. */
static void the_peer_cannot_invalidate_it_while_it_is_digested(void **state)
{
	struct vext_digest digest;

	open_as(IBV_MW_TYPE_2, true, false);
	send_inv(begin_digest(&digest));
	assert_true(qp_is_failed(t.b->qp));
	assert_int_not_equal(next_wc(&t.b->rcq).status, IBV_WC_SUCCESS);
	assert_int_equal(mr_try_kill(home), -EBUSY);
	end_finish_writeback(t.b, 0);
	pair_run(&t.p);
	/* the peer breaks the rule, and gets no digest */
	assert_int_not_equal(next_wc(&t.a->scq).status, IBV_WC_SUCCESS);
	close_all();
}

/* --- windows and other requests ------------------------------------------------------------- */

static void requests_complete_in_their_order(bool acks)
{
	open_as(IBV_MW_TYPE_2, acks, false);
	uint32_t key = ibv_inc_rkey(window->ibv.rkey);

	for (int i = 0; i < 3; i++) {
		assert_int_equal(end_write(t.b, 60, t.mrb, 0, 50000, t.mra, 0), 0);
		assert_int_equal(post_bind(key, AT, SIZE, IBV_ACCESS_REMOTE_WRITE), 0);
		post_local_inv(key);
		key = ibv_inc_rkey(key);
	}
	pair_run_chunked(&t.p, 3000);
	for (int i = 0; i < 3; i++) {
		expect_wc(&t.b->scq, 60, IBV_WC_SUCCESS);
		expect_wc(&t.b->scq, 70, IBV_WC_SUCCESS);
		expect_wc(&t.b->scq, 71, IBV_WC_SUCCESS);
	}
	assert_true(qp_is_idle(t.b->qp));
	close_all();
}

static void binds_go_with_other_requests(void **state)
{
	requests_complete_in_their_order(false);
	requests_complete_in_their_order(true);
}

static void an_unreliable_peer_loses_what_a_window_refuses(void **state)
{
	open_as(IBV_MW_TYPE_2, false, true);
	uint32_t key = bind_for_writes();

	expect_to_work(IBV_WR_RDMA_WRITE, key, AT, SIZE);
	assert_memory_equal(t.mb + AT, t.ma, SIZE);
	/* the Write ends past the window, but the sender cannot detect this */
	expect_to_work(IBV_WR_RDMA_WRITE, key, AT + 1, SIZE);
	assert_int_equal(qp_counters(t.b->qp)->lost_in, 1);
	close_all();
}

/* The request has copies of the window's values, so it does not access a destroyed window. */
static void a_bind_of_a_window_that_is_gone_fails(void **state)
{
	open_as(IBV_MW_TYPE_1, false, false);
	assert_int_equal(post_bind(ibv_inc_rkey(window->ibv.rkey), AT, 8, IBV_ACCESS_REMOTE_READ),
			 0);
	give_back();
	pair_run(&t.p);
	expect_wc(&t.b->scq, 70, IBV_WC_MW_BIND_ERR);
	close_all();
}

static void a_region_with_a_window_cannot_be_invalidated(void **state)
{
	open_as(IBV_MW_TYPE_1, false, false);
	(void)bind_for_writes();
	home->access |= VEXT_ACCESS_REMOTE_INVALIDATE;
	assert_int_equal(mr_invalidate(t.b->mrs, &t.b->pd, home->ibv.rkey), MR_BAD_ACCESS);
	give_back();
	assert_int_equal(mr_invalidate(t.b->mrs, &t.b->pd, home->ibv.rkey), MR_OK);
	close_all();
}

/* --- queue pairs without a stream ------------------------------------------------------------- */

static void what_needs_no_peer_is_executed_without_a_stream(void **state)
{
	uint32_t key;

	open_as(IBV_MW_TYPE_2, false, true);
	key = bind_for_writes();
	qp_give_away(t.b->qp); /* the stream has ended */
	post_local_inv(key);
	qp_give_away(t.b->qp); /* from now on the owner calls this after each post */
	expect_wc(&t.b->scq, 71, IBV_WC_SUCCESS);
	assert_true(window->now->killed);
	key = ibv_inc_rkey(key);
	assert_int_equal(post_bind(key, AT, SIZE, IBV_ACCESS_REMOTE_WRITE), 0);
	qp_give_away(t.b->qp);
	expect_wc(&t.b->scq, 70, IBV_WC_SUCCESS);
	assert_int_equal(window->now->ibv.rkey, key);
	close_all();
}

static void what_was_posted_when_the_stream_ends_is_executed(void **state)
{
	uint32_t key;

	open_as(IBV_MW_TYPE_1, false, true);
	key = ibv_inc_rkey(window->ibv.rkey);
	assert_int_equal(end_send(t.b, 1, t.mrb, 0, 8), 0);
	assert_int_equal(post_bind(key, AT, SIZE, IBV_ACCESS_REMOTE_WRITE), 0);
	qp_give_away(t.b->qp);
	expect_wc(&t.b->scq, 1, IBV_WC_SUCCESS);
	expect_wc(&t.b->scq, 70, IBV_WC_SUCCESS);
	assert_int_equal(window->now->ibv.rkey, key);
	close_all();
}

static void what_fails_without_a_stream_is_reported(void **state)
{
	open_as(IBV_MW_TYPE_2, false, true);
	qp_give_away(t.b->qp);
	post_local_inv(window->ibv.rkey + 1);
	assert_int_equal(end_send(t.b, 1, t.mrb, 0, 8), 0);
	qp_give_away(t.b->qp);
	expect_wc(&t.b->scq, 71, IBV_WC_MW_BIND_ERR);
	expect_wc(&t.b->scq, 1, IBV_WC_WR_FLUSH_ERR);
	assert_true(qp_is_failed(t.b->qp));
	close_all();
}

/* Another connection still uses the former binding. */
static void a_bind_without_a_stream_waits_for_the_former_binding(void **state)
{
	struct mr_near other = {.mr = NULL};
	struct mr_need need = {.len = 8};
	uint32_t key;
	void *ptr;

	open_as(IBV_MW_TYPE_1, false, true);
	key = bind_for_writes();
	need.pd = &t.b->pd;
	need.to = (uintptr_t)t.mb + AT;
	assert_int_equal(mw_hold_near(t.b->mrs, &other, key, need, 0, &ptr), MR_OK);
	qp_give_away(t.b->qp);
	assert_int_equal(post_bind(key + 1, AT, SIZE, IBV_ACCESS_REMOTE_WRITE), 0);
	assert_int_equal(end_send(t.b, 1, t.mrb, 0, 8), 0);
	qp_give_away(t.b->qp);
	expect_no_wc(&t.b->scq);
	assert_true(qp_has_posted(t.b->qp));
	mr_release_near(&other);
	qp_give_away(t.b->qp);
	expect_wc(&t.b->scq, 70, IBV_WC_SUCCESS);
	expect_wc(&t.b->scq, 1, IBV_WC_SUCCESS);
	assert_int_equal(window->now->ibv.rkey, key + 1);
	close_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_needs_no_peer_is_executed_without_a_stream),
		cmocka_unit_test(what_was_posted_when_the_stream_ends_is_executed),
		cmocka_unit_test(what_fails_without_a_stream_is_reported),
		cmocka_unit_test(a_bind_without_a_stream_waits_for_the_former_binding),
		cmocka_unit_test(a_window_is_not_idle_before_its_digest_ends),
		cmocka_unit_test(no_digest_begins_after_the_end),
		cmocka_unit_test(a_local_invalidate_awaits_the_digest),
		cmocka_unit_test(the_peer_cannot_invalidate_it_while_it_is_digested),
		cmocka_unit_test(a_window_opens_a_part_of_its_region),
		cmocka_unit_test(nothing_else_is_open),
		cmocka_unit_test(the_queue_pair_must_permit_it_too),
		cmocka_unit_test(a_window_may_be_zero_based),
		cmocka_unit_test(a_window_is_no_local_memory),
		cmocka_unit_test(type_2_is_for_one_queue_pair),
		cmocka_unit_test(a_window_gets_no_more_than_its_region_has),
		cmocka_unit_test(a_region_must_be_registered_for_windows),
		cmocka_unit_test(type_2_is_bound_again_only_after_its_end),
		cmocka_unit_test(type_1_is_bound_again_and_the_former_key_ends),
		cmocka_unit_test(type_1_of_length_0_is_unbound),
		cmocka_unit_test(a_local_invalidate_ends_it),
		cmocka_unit_test(a_local_invalidate_of_no_window_fails),
		cmocka_unit_test(the_peer_may_invalidate_it),
		cmocka_unit_test(the_peer_cannot_invalidate_type_1),
		cmocka_unit_test(a_read_under_way_keeps_its_bytes),
		cmocka_unit_test(the_rest_of_a_write_is_refused_after_the_end),
		cmocka_unit_test(what_came_through_it_is_flushed_with_the_region),
		cmocka_unit_test(binds_go_with_other_requests),
		cmocka_unit_test(an_unreliable_peer_loses_what_a_window_refuses),
		cmocka_unit_test(a_bind_of_a_window_that_is_gone_fails),
		cmocka_unit_test(a_region_with_a_window_cannot_be_invalidated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
