/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several connections share a completion queue. Several threads take completions from it, by polls
 * and by waits for the queue's events. Each completion must be returned exactly once. The
 * completions of each connection must be in order within one poll, and over all polls if only one
 * thread takes them. Meanwhile the connections move to rings.
 */
#include "ends.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

enum { CONNS = 3, THREADS = 4, OPS = 400, WINDOW = 48, BATCH = 4, LIVES = 8 };

#define LIMIT_MS 60000
#define LIMIT_NS (LIMIT_MS * NSEC_PER_MS)

static struct end listener[CONNS], client[CONNS], server[CONNS];
static struct ibv_mr *target[CONNS];
static struct ibv_cq *cq;
static struct ibv_comp_channel *channel;
static atomic_uchar taken[CONNS][OPS];
static atomic_uint collected[CONNS], twice, disordered, failed, missed, waiting;
static atomic_bool over;

/* is_alone: this run has only one thread, which takes all completions. */
static atomic_bool is_alone;
static int64_t last_of_all[CONNS];

/* --- threads ------------------------------------------------------------------------------- */

static void note(const struct ibv_wc *wc, int n)
{
	int64_t last[CONNS];

	for (int i = 0; i < CONNS; i++)
		last[i] = is_alone ? last_of_all[i] : -1;
	for (int i = 0; i < n; i++) {
		unsigned conn = (unsigned)(wc[i].wr_id >> 32);
		unsigned op = (unsigned)wc[i].wr_id;

		failed += wc[i].status != IBV_WC_SUCCESS;
		twice += atomic_exchange(&taken[conn][op], 1);
		disordered += (int64_t)op <= last[conn];
		last[conn] = op;
		if (is_alone)
			last_of_all[conn] = op;
		collected[conn]++;
	}
}

static int poll_once(void)
{
	struct ibv_wc wc[BATCH];
	int n = ibv_poll_cq(cq, BATCH, wc);

	note(wc, n);
	return n;
}

/* pause_us: pause between two polls; 0: no pause. */
static void *poll_all_the_time(void *pause_us)
{
	while (!over) {
		poll_once();
		if (pause_us)
			usleep((useconds_t)(uintptr_t)pause_us);
	}
	return NULL;
}

/* If an event is missing, this wait lasts until the time limit. */
static void *wait_all_the_time(void *arg)
{
	struct ibv_cq *which;
	void *context;

	while (!over) {
		ibv_req_notify_cq(cq, 0);
		while (poll_once() > 0)
			;
		if (softrnic_wait_cq_event(channel, LIMIT_MS, &which, &context))
			missed++;
		else
			softrnic_ack_cq_events(which, 1);
	}
	waiting--;
	return NULL;
}

/* --- posting ------------------------------------------------------------------------------- */

static void post(unsigned conn, unsigned op)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)client[conn].buf, .length = 8, .lkey = client[conn].mr->lkey};
	struct vext_wr wr = {.op = op % 2 ? VEXT_OP_FLUSH : VEXT_OP_VERBS,
			     .len = 64,
			     .type = VEXT_FLUSH_VISIBLE,
			     .wr = {.wr_id = (uint64_t)conn << 32 | op,
				    .opcode = op % 4 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
				    .send_flags = IBV_SEND_SIGNALED}};
	int posted;

	if (op % 2 == 0) {
		wr.wr.sg_list = &sge;
		wr.wr.num_sge = 1;
	}
	wr.wr.wr.rdma.remote_addr = (uintptr_t)server[conn].buf;
	wr.wr.wr.rdma.rkey = target[conn]->rkey;
	assert_int_equal(softrnic_post(client[conn].id->qp, &wr, 1, &posted), 0);
}

static void await(unsigned conn, unsigned ops, uint64_t until)
{
	while (collected[conn] < ops && clock_now_ns() < until)
		sched_yield();
	assert_true(collected[conn] >= ops);
}

static void post_all(unsigned window)
{
	uint64_t until = clock_now_ns() + LIMIT_NS;

	for (unsigned op = 0; op < OPS; op++) {
		for (unsigned conn = 0; conn < CONNS; conn++) {
			if (op >= window)
				await(conn, op - window + 1, until);
			post(conn, op);
		}
	}
	for (unsigned conn = 0; conn < CONNS; conn++)
		await(conn, OPS, until);
}

/* Wake each waiting thread once more, by an event of its own. */
static void end_threads(pthread_t *thread, int n)
{
	over = true;
	for (unsigned op = 0; waiting > 0; op = (op + 1) % OPS) {
		ibv_req_notify_cq(cq, 0);
		post(0, op);
		usleep(1000);
		poll_once();
	}
	while (n > 0)
		pthread_join(thread[--n], NULL);
	while (poll_once() > 0)
		;
}

/* --- the connections ------------------------------------------------------------------------ */

static void open_one(unsigned i)
{
	struct rdma_conn_param param = {.initiator_depth = 16, .responder_resources = 16};

	end_open(&listener[i]);
	end_open(&client[i]);
	if (i > 0) {
		assert_int_equal(softrnic_destroy_cq(client[i].cq), 0);
		client[i].cq = client[0].cq;
	}
	end_aim(&client[i], end_bind(&listener[i]));
	assert_int_equal(softrnic_listen(listener[i].id, 1), 0);
	assert_int_equal(softrnic_connect(client[i].id, &param), 0);
	end_take(&listener[i], &server[i]);
	assert_int_equal(softrnic_accept(server[i].id, &param), 0);
	end_expect(&client[i], RDMA_CM_EVENT_ESTABLISHED);
	end_expect(&server[i], RDMA_CM_EVENT_ESTABLISHED);
	target[i] = softrnic_reg_mr(server[i].pd, server[i].buf, END_BUF,
				    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					    IBV_ACCESS_REMOTE_READ);
	assert_non_null(target[i]);
}

static void open_all(void)
{
	memset(taken, 0, sizeof(taken));
	twice = disordered = failed = missed = waiting = 0;
	over = false;
	for (unsigned i = 0; i < CONNS; i++) {
		collected[i] = 0;
		last_of_all[i] = -1;
		open_one(i);
	}
	cq = client[0].cq;
	channel = client[0].completions;
}

static void close_one(unsigned i)
{
	assert_int_equal(softrnic_dereg_mr(target[i]), 0);
	if (i > 0)
		client[i].cq = NULL;
	end_close(&client[i]);
	end_close(&server[i]);
	end_close(&listener[i]);
}

static void close_all(void)
{
	for (unsigned i = CONNS; i-- > 0;)
		close_one(i);
}

static int start_threads(pthread_t thread[THREADS], int pollers, uintptr_t pause_us, int waiters)
{
	int n = 0;

	while (n < pollers)
		assert_int_equal(
			pthread_create(&thread[n++], NULL, poll_all_the_time, (void *)pause_us), 0);
	waiting = (unsigned)waiters;
	while (n < pollers + waiters)
		assert_int_equal(pthread_create(&thread[n++], NULL, wait_all_the_time, NULL), 0);
	return n;
}

static void run(int pollers, uintptr_t pause_us, int waiters, unsigned window)
{
	pthread_t thread[THREADS];
	int n;

	open_all();
	is_alone = pollers + waiters == 1;
	n = start_threads(thread, pollers, pause_us, waiters);
	post_all(window);
	is_alone = false;
	assert_int_equal(twice, 0);
	end_threads(thread, n);
	assert_int_equal(disordered, 0);
	assert_int_equal(failed, 0);
	assert_int_equal(missed, 0);
	close_all();
}

static void one_thread_polls_while_another_posts(void **state)
{
	run(1, 0, 0, WINDOW);
}

static void two_threads_poll(void **state)
{
	run(2, 0, 0, WINDOW);
}

static void two_threads_wait(void **state)
{
	run(0, 0, 2, WINDOW);
}

static void one_operation_at_a_time_is_waited_for(void **state)
{
	run(0, 0, 1, 1);
}

static void one_thread_polls_now_and_then_and_others_wait(void **state)
{
	run(1, 50, 2, WINDOW);
}

static void one_thread_polls_and_one_waits(void **state)
{
	run(1, 0, 1, 1);
}

/* The completions of the other connections still arrive. */
static void a_queue_pair_is_destroyed_while_two_threads_poll(void **state)
{
	pthread_t thread[THREADS];
	int n;

	open_all();
	n = start_threads(thread, 2, 0, 0);
	for (int life = 0; life < LIVES; life++) {
		for (unsigned op = 0; op < WINDOW; op++)
			post(1, op);
		close_one(1);
		open_one(1);
	}
	collected[0] = collected[1] = collected[2] = 0;
	memset(taken, 0, sizeof(taken));
	twice = 0;
	post_all(WINDOW);
	assert_int_equal(twice, 0);
	end_threads(thread, n);
	close_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_thread_polls_while_another_posts),
		cmocka_unit_test(two_threads_poll),
		cmocka_unit_test(two_threads_wait),
		cmocka_unit_test(one_operation_at_a_time_is_waited_for),
		cmocka_unit_test(one_thread_polls_now_and_then_and_others_wait),
		cmocka_unit_test(one_thread_polls_and_one_waits),
		cmocka_unit_test(a_queue_pair_is_destroyed_while_two_threads_poll),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
