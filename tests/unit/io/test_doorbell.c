/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_doorbell.c -- Writes that nobody awaits leave with what is posted behind them, and at the
 * latest when something says so. The clock stands still in most tests: then whatever follows comes
 * at once, and the timer, which looks at the clock, never sends anything; so each rule is seen to
 * do it alone.
 */
#include "ends.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "softrnic/rnic/qp.h"

enum { WORDS = END_BUF / 8, TEACH = 4 };

/* --- the clock ---------------------------------------------------------------------------- */

static atomic_bool stopped;
static struct timespec stopped_at;

int __real_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	if (clock != CLOCK_MONOTONIC || !atomic_load(&stopped))
		return __real_clock_gettime(clock, ts);
	*ts = stopped_at;
	return 0;
}

static void stop_clock(void)
{
	__real_clock_gettime(CLOCK_MONOTONIC, &stopped_at);
	atomic_store(&stopped, true);
}

static void start_clock(void)
{
	atomic_store(&stopped, false);
}

/* --- two ends, one of which writes to the other's memory ---------------------------------- */

struct pair {
	struct ends ends;
	struct ibv_mr *target; /* of words */
	_Atomic uint64_t words[WORDS];
	uint64_t addr; /* where the client writes to: the words */
	uint32_t rkey;
	uint64_t next; /* value to write */
};

static void pair_open(struct pair *p)
{
	struct rdma_conn_param param = {.initiator_depth = 16, .responder_resources = 16};

	memset(p, 0, sizeof(*p));
	end_signals_all = 0;
	ends_open(&p->ends);
	assert_int_equal(softrnic_listen(p->ends.listener.id, 4), 0);
	assert_int_equal(softrnic_connect(p->ends.client.id, &param), 0);
	end_take(&p->ends.listener, &p->ends.server);
	assert_int_equal(softrnic_accept(p->ends.server.id, &param), 0);
	end_expect(&p->ends.client, RDMA_CM_EVENT_ESTABLISHED);
	end_expect(&p->ends.server, RDMA_CM_EVENT_ESTABLISHED);
	p->target = softrnic_reg_mr(p->ends.server.pd, (void *)p->words, sizeof(p->words),
				    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					    IBV_ACCESS_REMOTE_READ);
	assert_non_null(p->target);
	p->addr = (uintptr_t)p->words;
	p->rkey = p->target->rkey;
}

static void pair_close(struct pair *p)
{
	start_clock();
	assert_int_equal(softrnic_dereg_mr(p->target), 0);
	ends_close(&p->ends);
}

static uint64_t counter(struct end *e, const char *name)
{
	const char *const *names;
	uint64_t values[64];
	int n = softrnic_qp_counters(e->id->qp, &names, values, 64);

	for (int i = 0; i < n; i++)
		if (!strcmp(names[i], name))
			return values[i];
	fail_msg("no such counter");
	return 0;
}

static uint64_t sends(struct pair *p)
{
	return counter(&p->ends.client, "tx_gathers");
}

/* The next value to the first word, or `len` bytes. */
static int post_write(struct pair *p, uint32_t len, unsigned flags)
{
	struct end *e = &p->ends.client;
	struct ibv_sge sge = {.addr = (uintptr_t)e->buf, .length = len, .lkey = e->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = flags},
			   *bad;

	wr.wr.rdma.remote_addr = p->addr;
	wr.wr.rdma.rkey = p->rkey;
	if (len == sizeof(p->next)) {
		p->next++;
		memcpy(e->buf, &p->next, sizeof(p->next));
		if (!(flags & IBV_SEND_SIGNALED)) /* so that the next one may change the word */
			wr.send_flags |= IBV_SEND_INLINE;
	}
	return ibv_post_send(e->id->qp, &wr, &bad);
}

static void write_quietly(struct pair *p)
{
	assert_int_equal(post_write(p, sizeof(p->next), 0), 0);
}

static void post_flush(struct pair *p)
{
	struct vext_wr wr = {.op = VEXT_OP_FLUSH,
			     .wr = {.send_flags = IBV_SEND_SIGNALED},
			     .len = sizeof(p->words),
			     .type = VEXT_FLUSH_VISIBLE};
	int posted = 0;

	wr.wr.wr.rdma.remote_addr = p->addr;
	wr.wr.wr.rdma.rkey = p->rkey;
	assert_int_equal(softrnic_post(p->ends.client.id->qp, &wr, 1, &posted), 0);
}

static void flush(struct pair *p)
{
	post_flush(p);
	assert_int_equal(end_wait_wc(&p->ends.client).status, IBV_WC_SUCCESS);
}

/* From here on Writes of this connection wait. */
static void teach(struct pair *p)
{
	stop_clock();
	for (int i = 0; i < TEACH; i++) {
		write_quietly(p);
		flush(p);
	}
}

/* A thread of the engine that looks at the connection late, for the answer before, sends what
 * waits: so a round in which that happens does not count. */
#define TRIES 100

/* A Write that waits, on a connection that learned to. */
static void pair_open_waiting(struct pair *p)
{
	uint64_t before;

	pair_open(p);
	teach(p);
	for (int i = 0; i < TRIES; i++) {
		before = sends(p);
		write_quietly(p);
		if (sends(p) == before)
			return;
		flush(p);
	}
	fail_msg("no Write waits");
}

static bool arrives(struct pair *p)
{
	for (int ms = 0; ms < 20000 && p->words[0] != p->next; ms++)
		usleep(1000);
	return p->words[0] == p->next;
}

/* --- what waits --------------------------------------------------------------------------- */

/* So many Writes and a flush: by how many sends? */
static uint64_t sends_of_round(struct pair *p, int writes)
{
	uint64_t before = sends(p);

	for (int i = 0; i < writes; i++)
		write_quietly(p);
	flush(p);
	assert_int_equal(p->words[0], p->next); /* that of the last one */
	return sends(p) - before;
}

static void check_one_send(int writes)
{
	struct pair p;
	int tries = 0;

	pair_open(&p);
	teach(&p);
	while (sends_of_round(&p, writes) != 1)
		assert_true(++tries < TRIES);
	pair_close(&p);
}

static void a_write_and_its_flush_leave_by_one_send(void **state)
{
	check_one_send(1);
}

static void many_writes_leave_by_one_send_in_their_order(void **state)
{
	check_one_send(63);
}

static void the_first_writes_of_a_connection_leave_at_once(void **state)
{
	struct pair p;
	uint64_t before;

	pair_open(&p);
	stop_clock();
	before = sends(&p);
	write_quietly(&p);
	assert_int_equal(sends(&p), before + 1);
	assert_true(arrives(&p));
	pair_close(&p);
}

static void where_nothing_follows_soon_writes_leave_at_once(void **state)
{
	struct pair p;
	uint64_t before;

	pair_open(&p);
	teach(&p);
	write_quietly(&p); /* waits, and the timer finds it */
	start_clock();
	assert_true(arrives(&p));
	for (int i = 0; i < 5; i++) {
		usleep(1000);
		before = sends(&p);
		write_quietly(&p);
		assert_int_equal(sends(&p), before + 1);
	}
	pair_close(&p);
}

/* --- at the latest ------------------------------------------------------------------------ */

static void a_signalled_write_sends(void **state)
{
	struct pair p;

	pair_open_waiting(&p);
	assert_int_equal(post_write(&p, sizeof(p.next), IBV_SEND_SIGNALED), 0);
	assert_true(arrives(&p));
	pair_close(&p);
}

static void a_posted_receive_sends(void **state)
{
	struct pair p;

	pair_open_waiting(&p);
	assert_int_equal(end_post_recv(&p.ends.client, 1), 0);
	assert_true(arrives(&p));
	pair_close(&p);
}

static void a_poll_sends(void **state)
{
	struct pair p;
	struct ibv_wc wc;

	pair_open_waiting(&p);
	assert_int_equal(ibv_poll_cq(p.ends.client.cq, 1, &wc), 0);
	assert_true(arrives(&p));
	pair_close(&p);
}

/* Also one that finds a completion, and so has no reason to look at connections. */
static void a_poll_that_finds_a_completion_sends(void **state)
{
	struct pair p;
	struct ibv_wc wc;

	pair_open(&p);
	teach(&p);
	assert_int_equal(post_write(&p, sizeof(p.next), IBV_SEND_SIGNALED), 0);
	assert_true(arrives(&p));
	write_quietly(&p);
	assert_int_equal(ibv_poll_cq(p.ends.client.cq, 1, &wc), 1);
	assert_true(arrives(&p));
	pair_close(&p);
}

static void an_armed_queue_sends(void **state)
{
	struct pair p;

	pair_open_waiting(&p);
	assert_int_equal(ibv_req_notify_cq(p.ends.client.cq, 0), 0);
	assert_true(arrives(&p));
	pair_close(&p);
}

static void enough_bytes_are_sent(void **state)
{
	struct pair p;
	uint64_t before;
	uint32_t bytes = 0;

	pair_open(&p);
	teach(&p);
	before = sends(&p);
	for (; bytes <= QP_PATIENT_MAX; bytes += END_BUF)
		assert_int_equal(post_write(&p, END_BUF, 0), 0);
	assert_true(sends(&p) > before);
	pair_close(&p);
}

/* Writes without a completion leave the queue when they are sent. */
static void a_full_queue_is_sent(void **state)
{
	struct pair p;

	pair_open(&p);
	teach(&p);
	for (int i = 0; i < 3 * END_DEPTH; i++)
		write_quietly(&p);
	flush(&p);
	assert_int_equal(p.words[0], p.next);
	pair_close(&p);
}

static void the_timer_sends(void **state)
{
	struct pair p;

	pair_open_waiting(&p);
	start_clock();
	assert_true(arrives(&p));
	pair_close(&p);
}

static void a_disconnect_sends(void **state)
{
	struct pair p;

	pair_open_waiting(&p);
	assert_int_equal(softrnic_disconnect(p.ends.client.id), 0);
	assert_true(arrives(&p));
	pair_close(&p);
}

static void a_failed_queue_pair_sends_before(void **state)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct pair p;

	pair_open_waiting(&p);
	assert_int_equal(softrnic_modify_qp(p.ends.client.id->qp, &attr, IBV_QP_STATE), 0);
	assert_true(arrives(&p));
	pair_close(&p);
}

static void a_destroyed_queue_pair_sends_before(void **state)
{
	struct pair p;

	pair_open_waiting(&p);
	softrnic_destroy_qp(p.ends.client.id);
	assert_true(arrives(&p));
	pair_close(&p);
}

static void deregistration_of_the_source_sends_before(void **state)
{
	struct pair p;

	pair_open(&p);
	teach(&p);
	memset(p.ends.client.buf, 7, END_BUF);
	assert_int_equal(post_write(&p, END_BUF, 0), 0);
	p.next = 0x0707070707070707;
	assert_int_equal(softrnic_dereg_mr(p.ends.client.mr), 0);
	p.ends.client.mr = NULL;
	assert_true(arrives(&p));
	pair_close(&p);
}

static void a_fork_sends_before(void **state)
{
	struct pair p;
	pid_t child;
	int status;

	pair_open_waiting(&p);
	child = fork();
	if (child == 0)
		_exit(0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(arrives(&p));
	pair_close(&p);
}

/* --- the end of the process --------------------------------------------------------------- */

struct where {
	uint16_t port;
	uint64_t addr;
	uint32_t rkey;
};

/* In a process of its own: what it writes last waits, and then it ends. */
static void write_and_exit(int from_parent)
{
	struct rdma_conn_param param = {.initiator_depth = 16};
	static struct pair p;
	struct where w;

	end_signals_all = 0;
	if (read(from_parent, &w, sizeof(w)) != sizeof(w))
		_exit(2);
	end_open(&p.ends.client);
	end_aim(&p.ends.client, w.port);
	assert_int_equal(softrnic_connect(p.ends.client.id, &param), 0);
	end_expect(&p.ends.client, RDMA_CM_EVENT_ESTABLISHED);
	if (read(from_parent, &w, sizeof(w)) != sizeof(w))
		_exit(3);
	p.addr = w.addr;
	p.rkey = w.rkey;
	teach(&p);
	write_quietly(&p);
	exit(0);
}

static void tell(int fd, const struct where *w)
{
	assert_int_equal(write(fd, w, sizeof(*w)), sizeof(*w));
}

static void the_end_of_the_process_sends_before(void **state)
{
	struct rdma_conn_param param = {.responder_resources = 16};
	struct where w = {0};
	int to_child[2], status;
	struct pair p = {0};
	pid_t child;

	assert_int_equal(pipe(to_child), 0);
	child = fork();
	if (child == 0)
		write_and_exit(to_child[0]);
	end_open(&p.ends.listener);
	w.port = end_bind(&p.ends.listener);
	assert_int_equal(softrnic_listen(p.ends.listener.id, 4), 0);
	tell(to_child[1], &w);
	end_take(&p.ends.listener, &p.ends.server);
	assert_int_equal(softrnic_accept(p.ends.server.id, &param), 0);
	end_expect(&p.ends.server, RDMA_CM_EVENT_ESTABLISHED);
	p.target = softrnic_reg_mr(p.ends.server.pd, (void *)p.words, sizeof(p.words),
				   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					   IBV_ACCESS_REMOTE_READ);
	assert_non_null(p.target);
	w.addr = (uintptr_t)p.words;
	w.rkey = p.target->rkey;
	tell(to_child[1], &w);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(
		WIFEXITED(status)); /* with any status: it closes nothing, which sanitizers see */
	p.next = TEACH + 1;
	assert_true(arrives(&p));
	close(to_child[0]);
	close(to_child[1]);
	pair_close(&p);
}

/* --- threads ------------------------------------------------------------------------------ */

enum { ROUNDS = 20000 };

static void *poll_all_the_time(void *arg)
{
	struct pair *p = arg;
	struct ibv_wc wc;

	while (p->words[1] == 0)
		(void)ibv_poll_cq(p->ends.client.cq, 1, &wc);
	return NULL;
}

/* The poster, the poller and the timer compete; nothing is lost. */
static void writes_of_one_thread_are_sent_by_any(void **state)
{
	uint64_t seed = 1;
	pthread_t poller;
	struct pair p;

	pair_open(&p);
	assert_int_equal(pthread_create(&poller, NULL, poll_all_the_time, &p), 0);
	for (int i = 0; i < ROUNDS; i++) {
		write_quietly(&p);
		if (test_random(&seed) % 64 == 0)
			usleep(test_random(&seed) % 100);
	}
	assert_true(arrives(&p));
	p.words[1] = 1;
	pthread_join(poller, NULL);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_write_and_its_flush_leave_by_one_send),
		cmocka_unit_test(many_writes_leave_by_one_send_in_their_order),
		cmocka_unit_test(the_first_writes_of_a_connection_leave_at_once),
		cmocka_unit_test(where_nothing_follows_soon_writes_leave_at_once),
		cmocka_unit_test(a_signalled_write_sends),
		cmocka_unit_test(a_posted_receive_sends),
		cmocka_unit_test(a_poll_sends),
		cmocka_unit_test(a_poll_that_finds_a_completion_sends),
		cmocka_unit_test(an_armed_queue_sends),
		cmocka_unit_test(enough_bytes_are_sent),
		cmocka_unit_test(a_full_queue_is_sent),
		cmocka_unit_test(the_timer_sends),
		cmocka_unit_test(a_disconnect_sends),
		cmocka_unit_test(a_failed_queue_pair_sends_before),
		cmocka_unit_test(a_destroyed_queue_pair_sends_before),
		cmocka_unit_test(deregistration_of_the_source_sends_before),
		cmocka_unit_test(a_fork_sends_before),
		cmocka_unit_test(the_end_of_the_process_sends_before),
		cmocka_unit_test(writes_of_one_thread_are_sent_by_any),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
