/* SPDX-License-Identifier: BSD-3-Clause */
/* While a thread polls or waits, only this thread checks for arrived bytes; afterwards the engine
 * checks again. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "ends.h"
#include "link_pair.h"
#include "softrnic/io/conn_impl.h"
#include "softrnic/io/conn_watch.h"
#include "softrnic/verbs/id.h"

#define LIMIT_NS (10 * NSEC_PER_SEC)

static void connect_ends(struct ends *e)
{
	ends_open(e);
	assert_int_equal(softrnic_listen(e->listener.id, 1), 0);
	assert_int_equal(softrnic_connect(e->client.id, NULL), 0);
	ends_establish(e);
}

/* Connect with a completion queue that this client shares with another client. */
static void connect_to_share(struct ends *e, const struct end *with)
{
	end_open(&e->listener);
	end_open(&e->client);
	memset(&e->server, 0, sizeof(e->server));
	assert_int_equal(softrnic_destroy_cq(e->client.cq), 0);
	e->client.cq = with->cq;
	end_aim(&e->client, end_bind(&e->listener));
	assert_int_equal(softrnic_listen(e->listener.id, 1), 0);
	assert_int_equal(softrnic_connect(e->client.id, NULL), 0);
	ends_establish(e);
}

static void poll_empty(struct end *e)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), 0);
}

/* Poll in a loop until the link of this end no longer reports arrived bytes to the engine. */
static void poll_until_owned(struct end *e)
{
	uint64_t until = clock_now_ns() + LIMIT_NS;
	int silent;

	while ((silent = pair_silent()) == 0 && clock_now_ns() < until)
		poll_empty(e);
	assert_int_equal(silent, 1);
}

/* A thread that polled or waited at short intervals keeps the connection for a short time after its
 * last poll or wait. */
static void expect_given_back(void)
{
	uint64_t until = clock_now_ns() + LIMIT_NS;

	while (pair_silent() != 0 && clock_now_ns() < until)
		usleep(100);
	assert_int_equal(pair_silent(), 0);
}

/* Read the server's buffer, while no thread of the server makes a call. */
static void read_of_the_server(struct ends *e)
{
	struct ibv_mr *source = softrnic_reg_mr(e->server.pd, e->server.buf, END_BUF,
						IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	struct ibv_sge sge = {
		.addr = (uintptr_t)e->client.buf, .length = 6, .lkey = e->client.mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ,
				 .send_flags = IBV_SEND_SIGNALED,
				 .sg_list = &sge,
				 .num_sge = 1},
			   *bad;

	assert_non_null(source);
	strcpy(e->server.buf, "there");
	memset(e->client.buf, 0, 6);
	wr.wr.rdma.remote_addr = (uintptr_t)e->server.buf;
	wr.wr.rdma.rkey = source->rkey;
	assert_int_equal(ibv_post_send(e->client.id->qp, &wr, &bad), 0);
	assert_int_equal(end_wait_wc(&e->client).status, IBV_WC_SUCCESS);
	assert_string_equal(e->client.buf, "there");
	assert_int_equal(softrnic_dereg_mr(source), 0);
}

static void a_read_is_served_after_polling_stopped(void **state)
{
	struct ends e;

	connect_ends(&e);
	poll_until_owned(&e.server);
	read_of_the_server(&e);
	ends_close(&e);
}

/* The list holds a reference, so a connection that stayed in it would leak. */
static void the_alarm_forgets_a_connection_that_is_polled_no_more(void **state)
{
	uint64_t until = clock_now_ns() + LIMIT_NS;
	struct ends e;

	connect_ends(&e);
	poll_until_owned(&e.server);
	expect_given_back();
	while (watch_count() > 0 && clock_now_ns() < until)
		usleep(100);
	assert_int_equal(watch_count(), 0);
	ends_close(&e);
}

static void a_few_polls_take_nothing_over(void **state)
{
	struct ends e;

	connect_ends(&e);
	for (int i = 0; i < 10; i++)
		poll_empty(&e.server);
	assert_int_equal(pair_silent(), 0);
	read_of_the_server(&e);
	ends_close(&e);
}

static void arming_gives_back_at_once(void **state)
{
	struct ends e;

	connect_ends(&e);
	poll_until_owned(&e.server);
	assert_int_equal(ibv_req_notify_cq(e.server.cq, 0), 0);
	assert_int_equal(pair_silent(), 0);
	ends_close(&e);
}

/* The polling thread receives the bytes that arrive, without the help of other threads. */
static void what_comes_while_it_polls_arrives(void **state)
{
	struct ends e;

	connect_ends(&e);
	for (uint64_t i = 1; i <= 20; i++) {
		assert_int_equal(end_post_recv(&e.server, i), 0);
		poll_until_owned(&e.server);
		assert_int_equal(end_post_send(&e.client, 100 + i, 6), 0);
		assert_int_equal(end_wait_wc(&e.server).wr_id, i);
	}
	ends_close(&e);
}

static void a_queue_pair_is_destroyed_while_it_is_polled(void **state)
{
	struct ends e;

	connect_ends(&e);
	poll_until_owned(&e.server);
	ends_close(&e);
}

static void the_end_of_the_peer_is_noticed_after_polling_stopped(void **state)
{
	struct ends e;

	connect_ends(&e);
	poll_until_owned(&e.server);
	assert_int_equal(softrnic_disconnect(e.client.id), 0);
	end_expect(&e.server, RDMA_CM_EVENT_DISCONNECTED);
	end_expect(&e.client, RDMA_CM_EVENT_DISCONNECTED);
	ends_close(&e);
}

/* The child's copies of the objects count as removed, and the parent's connection continues. */
static void a_child_forked_while_polling_leaves_the_parent_alone(void **state)
{
	struct ends e;
	int status = 0;
	pid_t child;

	connect_ends(&e);
	poll_until_owned(&e.server);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(softrnic_destroy_id(e.server.id) || softrnic_destroy_id(e.client.id));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	read_of_the_server(&e);
	ends_close(&e);
}

/* Register a shared mapping of a file; threads of the application must not receive into such
 * memory. */
static struct ibv_mr *register_file(struct end *e)
{
	char name[] = "own-XXXXXX";
	int fd = mkstemp(name);
	struct ibv_mr *mr;
	void *map;

	assert_true(fd >= 0);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(ftruncate(fd, 4096), 0);
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(map != MAP_FAILED);
	close(fd);
	mr = softrnic_reg_mr(e->pd, map, 4096, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	return mr;
}

static void a_file_registered_while_it_is_polled_gives_the_connection_back(void **state)
{
	uint64_t until = clock_now_ns() + LIMIT_NS;
	struct ibv_mr *mr;
	struct ends e;
	void *map;

	connect_ends(&e);
	poll_until_owned(&e.server);
	mr = register_file(&e.server);
	map = mr->addr;
	while (pair_silent() > 0 && clock_now_ns() < until)
		poll_empty(&e.server);
	assert_int_equal(pair_silent(), 0);
	assert_int_equal(end_post_recv(&e.server, 1), 0);
	assert_int_equal(end_post_send(&e.client, 2, 6), 0);
	assert_int_equal(end_wait_wc(&e.server).wr_id, 1);
	assert_int_equal(softrnic_dereg_mr(mr), 0);
	munmap(map, 4096);
	ends_close(&e);
}

/* --- a thread polls while another one has the connection ------------------------------------- */

static atomic_uint yields;

/* Replaces libc's sched_yield(), and counts its calls. */
int sched_yield(void)
{
	atomic_fetch_add(&yields, 1);
	return (int)syscall(SYS_sched_yield);
}

struct holder {
	struct conn *c;
	atomic_bool holds, release;
};

static void *hold_connection(void *arg)
{
	struct holder *h = arg;

	conn_enter(h->c);
	atomic_store(&h->holds, true);
	while (!atomic_load(&h->release))
		usleep(100);
	conn_leave(h->c);
	return NULL;
}

/* These polls make no other system call, so without a yield the polling thread would keep the CPU
 * to itself. */
static void a_polling_thread_gives_way_to_the_owner_of_the_connection(void **state)
{
	struct holder h = {0};
	pthread_t thread;
	struct ends e;
	unsigned before;

	connect_ends(&e);
	h.c = container_of(e.server.id, struct cmid, pub)->conn;
	assert_int_equal(pthread_create(&thread, NULL, hold_connection, &h), 0);
	while (!atomic_load(&h.holds))
		usleep(100);
	before = atomic_load(&yields);
	for (int i = 0; i < 640; i++)
		poll_empty(&e.server);
	assert_int_equal(atomic_load(&yields) - before, 10);
	atomic_store(&h.release, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	ends_close(&e);
}

static void write_to_the_client(struct ends *e, const struct ibv_mr *target)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)e->server.buf, .length = 6, .lkey = e->server.mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED,
				 .sg_list = &sge,
				 .num_sge = 1},
			   *bad;

	strcpy(e->server.buf, "there");
	memset(e->client.buf, 0, 6);
	wr.wr.rdma.remote_addr = (uintptr_t)e->client.buf;
	wr.wr.rdma.rkey = target->rkey;
	assert_int_equal(ibv_post_send(e->server.id->qp, &wr, &bad), 0);
	assert_int_equal(end_wait_wc(&e->server).status, IBV_WC_SUCCESS);
}

static void await_owned_together(struct end *e)
{
	uint64_t until = clock_now_ns() + LIMIT_NS;

	while (pair_silent() < 2 && clock_now_ns() < until)
		poll_empty(e);
	assert_true(clock_now_ns() < until);
}

/* A Write arrived at one of two clients, then a Send at the other. Returns true if the Write was
 * placed when the poll returned the Send. */
static bool is_placed_at_once(struct ends *written, const struct ibv_mr *target, struct ends *sent)
{
	uint64_t until = clock_now_ns() + LIMIT_NS;
	struct ibv_wc wc;
	bool placed;

	assert_int_equal(end_post_recv(&sent->client, 1), 0);
	await_owned_together(&sent->client);
	write_to_the_client(written, target);
	assert_int_equal(end_post_send(&sent->server, 2, 6), 0);
	while (ibv_poll_cq(sent->client.cq, 1, &wc) == 0 && clock_now_ns() < until)
		;
	placed = written->client.buf[0];
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(end_wait_wc(&sent->server).status, IBV_WC_SUCCESS);
	while (!((volatile char *)written->client.buf)[4] && clock_now_ns() < until)
		poll_empty(&written->client);
	assert_string_equal(written->client.buf, "there");
	return placed;
}

/* Receiving a megabyte from another connection of the queue must not delay a completion. The test
 * cannot determine which connection a poll serves first. */
static void what_completes_is_returned_before_the_next_connection_has_its_turn(void **state)
{
	struct ends e[2];
	struct ibv_mr *target[2];
	int placed = 0;

	connect_ends(&e[0]);
	connect_to_share(&e[1], &e[0].client);
	for (int i = 0; i < 2; i++) {
		target[i] = softrnic_reg_mr(e[i].client.pd, e[i].client.buf, END_BUF,
					    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
		assert_non_null(target[i]);
	}
	for (int i = 0; i < 20; i++)
		placed += is_placed_at_once(&e[i % 2], target[i % 2], &e[1 - i % 2]);
	assert_in_range(placed, 0, 19);
	for (int i = 0; i < 2; i++)
		assert_int_equal(softrnic_dereg_mr(target[i]), 0);
	e[1].client.cq = NULL;
	ends_close(&e[1]);
	ends_close(&e[0]);
}

/* The link did not report the Write when it arrived, so the engine receives it when the lease
 * ends. */
static void a_lease_in_vain(struct ends *e, const struct ibv_mr *target)
{
	uint64_t until = clock_now_ns() + LIMIT_NS;

	poll_until_owned(&e->client);
	write_to_the_client(e, target);
	while (!((volatile char *)e->client.buf)[4] && clock_now_ns() < until)
		usleep(100);
	assert_string_equal(e->client.buf, "there");
	expect_given_back();
}

static bool begins_lease(struct end *e)
{
	for (int i = 0; i < 640; i++) {
		poll_empty(e);
		if (pair_silent())
			return true;
	}
	return false;
}

static void a_program_that_looks_at_its_memory_is_not_taken_for_one_that_polls(void **state)
{
	struct ibv_mr *target;
	struct ends e;
	int tries = 0;

	connect_ends(&e);
	target = softrnic_reg_mr(e.client.pd, e.client.buf, END_BUF,
				 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	assert_non_null(target);
	/* if the lease ends before the Write arrives, this thread was held up: repeat */
	do
		a_lease_in_vain(&e, target);
	while (begins_lease(&e.client) && ++tries < 20);
	assert_in_range(tries, 0, 19);
	/* From now on the client only polls. */
	poll_until_owned(&e.client);
	assert_int_equal(softrnic_dereg_mr(target), 0);
	ends_close(&e);
}

/* --- threads that wait -------------------------------------------------------------------- */

struct waiter {
	struct end *e;
	pthread_t thread;
	pid_t id;
	int result;
};

static void *wait_for_event(void *arg)
{
	struct waiter *w = arg;
	struct ibv_cq *cq;
	void *context;

	w->id = gettid();
	w->result = softrnic_get_cq_event(w->e->completions, &cq, &context);
	if (!w->result)
		softrnic_ack_cq_events(cq, 1);
	return NULL;
}

static void waiter_create(struct waiter *w, struct end *e)
{
	*w = (struct waiter){.e = e};
	assert_int_equal(ibv_req_notify_cq(e->cq, 0), 0);
	assert_int_equal(pthread_create(&w->thread, NULL, wait_for_event, w), 0);
}

/*
 * Start a thread that waits for a completion. The link of its end reports no bytes to the engine,
 * because the thread itself checks for bytes. As long as the engine owns the connection, the thread
 * leaves the bytes to the engine.
 */
static void waiter_start(struct waiter *w, struct end *e)
{
	uint64_t until = clock_now_ns() + LIMIT_NS;
	unsigned before = pair_waits();

	usleep(50000);
	waiter_create(w, e);
	/* The first wait may find earlier bytes, and end immediately. */
	while ((pair_waits() == before || pair_silent() != 1) && clock_now_ns() < until)
		usleep(100);
	assert_int_equal(pair_silent(), 1);
}

static void the_thread_that_waits_receives(void **state)
{
	struct waiter w;
	struct ends e;

	connect_ends(&e);
	assert_int_equal(end_post_recv(&e.server, 1), 0);
	waiter_start(&w, &e.server);
	assert_int_equal(end_post_send(&e.client, 2, 6), 0);
	assert_int_equal(pthread_join(w.thread, NULL), 0);
	assert_int_equal(w.result, 0);
	assert_int_equal(pair_looker(), w.id);
	expect_given_back();
	assert_int_equal(end_wait_wc(&e.server).wr_id, 1);
	ends_close(&e);
}

static void a_read_is_served_while_a_thread_waits_and_after(void **state)
{
	struct waiter w;
	struct ends e;

	connect_ends(&e);
	waiter_start(&w, &e.server);
	read_of_the_server(&e);
	assert_int_equal(end_post_recv(&e.server, 1), 0);
	assert_int_equal(end_post_send(&e.client, 2, 6), 0);
	assert_int_equal(pthread_join(w.thread, NULL), 0);
	assert_int_equal(end_wait_wc(&e.client).wr_id, 2);
	read_of_the_server(&e);
	ends_close(&e);
}

static void a_cancelled_wait_gives_back(void **state)
{
	void *result = NULL;
	struct waiter w;
	struct ends e;

	connect_ends(&e);
	waiter_start(&w, &e.server);
	assert_int_equal(pthread_cancel(w.thread), 0);
	assert_int_equal(pthread_join(w.thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	expect_given_back();
	read_of_the_server(&e);
	ends_close(&e);
}

static void a_wait_that_times_out_gives_back(void **state)
{
	struct ibv_cq *cq;
	struct ends e;
	void *context;

	connect_ends(&e);
	assert_int_equal(softrnic_wait_cq_event(e.server.completions, 5, &cq, &context), -1);
	assert_int_equal(errno, ETIMEDOUT);
	assert_true(pair_waits() > 0);
	expect_given_back();
	ends_close(&e);
}

/* More Sends than can be parked stay in the link until receives are posted. */
static void bytes_that_cannot_be_taken_do_not_wake_again_and_again(void **state)
{
	struct ibv_cq *cq;
	struct ends e;
	unsigned before;
	void *context;

	connect_ends(&e);
	for (uint64_t i = 0; i < 80; i++)
		assert_int_equal(end_post_send(&e.client, i, END_BUF), 0);
	while (softrnic_wait_cq_event(e.server.completions, 20, &cq, &context) == 0)
		softrnic_ack_cq_events(cq, 1);
	before = pair_waits();
	assert_int_equal(softrnic_wait_cq_event(e.server.completions, 50, &cq, &context), -1);
	assert_true(pair_waits() - before <= 3);
	ends_close(&e);
}

static void two_threads_wait_for_one_queue(void **state)
{
	struct waiter w[2];
	struct ends e;

	connect_ends(&e);
	waiter_start(&w[0], &e.server);
	waiter_create(&w[1], &e.server);
	usleep(50000);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(end_post_recv(&e.server, 1), 0);
		assert_int_equal(ibv_req_notify_cq(e.server.cq, 0), 0);
		assert_int_equal(end_post_send(&e.client, 2, 6), 0);
		assert_int_equal(end_wait_wc(&e.server).wr_id, 1);
	}
	assert_int_equal(pthread_join(w[0].thread, NULL), 0);
	assert_int_equal(pthread_join(w[1].thread, NULL), 0);
	expect_given_back();
	ends_close(&e);
}

/* --- threads that wait again and again ---------------------------------------------------- */

/* Sends a message each time the server has probably begun to wait for a message. */
struct sender {
	struct ends *e;
	atomic_uint wanted;
	atomic_bool over;
	pthread_t thread;
};

static void send_a_message(struct sender *s)
{
	struct ibv_wc wc;

	assert_int_equal(end_post_send(&s->e->client, 0, 6), 0);
	while (ibv_poll_cq(s->e->client.cq, 1, &wc) > 0)
		;
}

static void *send_what_is_wanted(void *arg)
{
	struct sender *s = arg;
	uint64_t until, seed = 1;
	unsigned sent = 0;

	while (!atomic_load(&s->over)) {
		sched_yield();
		if (sent == atomic_load(&s->wanted))
			continue;
		until = clock_now_ns() + test_random(&seed) % (50 * NSEC_PER_US);
		while (clock_now_ns() < until)
			sched_yield();
		send_a_message(s);
		sent++;
	}
	return NULL;
}

static void want_a_message(struct sender *s)
{
	atomic_fetch_add(&s->wanted, 1);
}

static void wait_for_a_message(struct sender *s, void (*ask)(struct sender *s))
{
	struct end *e = &s->e->server;
	struct ibv_cq *cq;
	void *context;

	assert_int_equal(end_post_recv(e, 1), 0);
	assert_int_equal(ibv_req_notify_cq(e->cq, 0), 0);
	ask(s);
	assert_int_equal(softrnic_get_cq_event(e->completions, &cq, &context), 0);
	softrnic_ack_cq_events(cq, 1);
	assert_int_equal(end_wait_wc(e).wr_id, 1);
}

/*
 * Waits count as frequent if the next wait begins within 150 us. On a busy machine the sender's
 * thread may get no CPU within this time. So the two threads alternate every 50 ms: the waiting
 * thread itself sends the messages in every other interval.
 */
static bool is_the_sender_asked(uint64_t until)
{
	return (until - clock_now_ns()) / (50 * NSEC_PER_MS) % 2 != 0;
}

/* Arm the server's completion queue, or (1) do what the arming of a second queue would do. */
static void arm(struct ends *e, int queue, unsigned *second)
{
	struct conn *c = container_of(e->server.id, struct cmid, pub)->conn;

	if (queue == 0)
		assert_int_equal(ibv_req_notify_cq(e->server.cq, 0), 0);
	else
		conn_own_arm(c, second, true);
}

/* Repeat until the link reports no bytes even while no thread waits. Returns true if the link still
 * reports none after `arms` further calls that arm the queues in turns. */
static bool wait_until_owned(struct ends *e, int arms, int queues)
{
	uint64_t until = clock_now_ns() + LIMIT_NS;
	unsigned second = 0;
	struct sender s = {.e = e};
	bool silent;

	assert_int_equal(pthread_create(&s.thread, NULL, send_what_is_wanted, &s), 0);
	do
		wait_for_a_message(&s,
				   is_the_sender_asked(until) ? want_a_message : send_a_message);
	while (pair_silent() == 0 && clock_now_ns() < until);
	for (int i = 0; i < arms; i++)
		arm(e, i % queues, &second);
	silent = pair_silent();
	atomic_store(&s.over, true);
	assert_int_equal(pthread_join(s.thread, NULL), 0);
	assert_true(clock_now_ns() < until);
	return silent;
}

static void a_read_is_served_after_the_last_of_many_waits(void **state)
{
	struct ends e;

	connect_ends(&e);
	wait_until_owned(&e, 0, 1);
	read_of_the_server(&e);
	ends_close(&e);
}

/* On a busy machine the engine may have taken the connection back by the time of the check. */
static void arming_between_waits_keeps_the_connection(void **state)
{
	bool kept = false;
	struct ends e;

	connect_ends(&e);
	for (int i = 0; i < 1000 && !kept; i++)
		kept = wait_until_owned(&e, 1, 1);
	assert_true(kept);
	ends_close(&e);
}

static void arming_twice_gives_back_at_once(void **state)
{
	bool kept = true;
	struct ends e;

	connect_ends(&e);
	for (int i = 0; i < 1000 && kept; i++)
		kept = wait_until_owned(&e, 2, 1);
	assert_false(kept);
	ends_close(&e);
}

static void arming_each_of_two_queues_keeps_the_connection(void **state)
{
	bool kept = false;
	struct ends e;

	connect_ends(&e);
	for (int i = 0; i < 1000 && !kept; i++)
		kept = wait_until_owned(&e, 2, 2);
	assert_true(kept);
	for (int i = 0; i < 1000 && kept; i++)
		kept = wait_until_owned(&e, 3, 2);
	assert_false(kept);
	ends_close(&e);
}

static void the_end_of_the_peer_is_noticed_after_the_last_of_many_waits(void **state)
{
	struct ends e;

	connect_ends(&e);
	wait_until_owned(&e, 0, 1);
	assert_int_equal(softrnic_disconnect(e.client.id), 0);
	end_expect(&e.server, RDMA_CM_EVENT_DISCONNECTED);
	end_expect(&e.client, RDMA_CM_EVENT_DISCONNECTED);
	ends_close(&e);
}

/* --- no completion is lost while threads begin and stop polling --------------------------- */

enum { READS = 300 };

struct visitor {
	struct end *e;
	atomic_bool over;
};

/* Poll, wait and sleep by turns, for random times. */
static void *come_and_go(void *arg)
{
	struct visitor *v = arg;
	uint64_t seed = 1;
	struct ibv_cq *cq;
	void *context;

	while (!atomic_load(&v->over)) {
		struct ibv_wc wc;

		for (uint64_t n = test_random(&seed) % 100; n > 0; n--)
			ibv_poll_cq(v->e->cq, 1, &wc);
		ibv_req_notify_cq(v->e->cq, 0);
		for (uint64_t n = test_random(&seed) % 4; n > 0; n--)
			if (!softrnic_wait_cq_event(v->e->completions, 1, &cq, &context))
				softrnic_ack_cq_events(cq, 1);
		usleep(test_random(&seed) % 600);
	}
	return NULL;
}

static void reads_are_served_by_any_thread(void **state)
{
	struct visitor v = {0};
	struct ends e;
	pthread_t thread;

	connect_ends(&e);
	v.e = &e.server;
	assert_int_equal(pthread_create(&thread, NULL, come_and_go, &v), 0);
	for (int i = 0; i < READS; i++)
		read_of_the_server(&e);
	atomic_store(&v.over, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	ends_close(&e);
}

static int on_tcp(void **state)
{
	end_host = INADDR_LOOPBACK;
	return 0;
}

static int on_a_pair(void **state)
{
	end_host = PAIR_IN_PLACE;
	pair_allow(SIZE_MAX);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_read_is_served_after_polling_stopped),
		cmocka_unit_test(the_alarm_forgets_a_connection_that_is_polled_no_more),
		cmocka_unit_test(a_few_polls_take_nothing_over),
		cmocka_unit_test(arming_gives_back_at_once),
		cmocka_unit_test(what_comes_while_it_polls_arrives),
		cmocka_unit_test(a_queue_pair_is_destroyed_while_it_is_polled),
		cmocka_unit_test(the_end_of_the_peer_is_noticed_after_polling_stopped),
		cmocka_unit_test(a_child_forked_while_polling_leaves_the_parent_alone),
		cmocka_unit_test(a_file_registered_while_it_is_polled_gives_the_connection_back),
		cmocka_unit_test(a_polling_thread_gives_way_to_the_owner_of_the_connection),
		cmocka_unit_test(
			what_completes_is_returned_before_the_next_connection_has_its_turn),
		cmocka_unit_test(
			a_program_that_looks_at_its_memory_is_not_taken_for_one_that_polls),
		cmocka_unit_test(the_thread_that_waits_receives),
		cmocka_unit_test(a_read_is_served_while_a_thread_waits_and_after),
		cmocka_unit_test(a_cancelled_wait_gives_back),
		cmocka_unit_test(a_wait_that_times_out_gives_back),
		cmocka_unit_test(bytes_that_cannot_be_taken_do_not_wake_again_and_again),
		cmocka_unit_test(two_threads_wait_for_one_queue),
		cmocka_unit_test(a_read_is_served_after_the_last_of_many_waits),
		cmocka_unit_test(arming_between_waits_keeps_the_connection),
		cmocka_unit_test(arming_twice_gives_back_at_once),
		cmocka_unit_test(arming_each_of_two_queues_keeps_the_connection),
		cmocka_unit_test(the_end_of_the_peer_is_noticed_after_the_last_of_many_waits),
		cmocka_unit_test_setup(reads_are_served_by_any_thread, on_a_pair),
		cmocka_unit_test_setup(reads_are_served_by_any_thread, on_tcp),
	};

	/* The links are those of the test, so no connection may move to rings. */
	assert_int_equal(setenv("SOFTRNIC_SHM", "0", 1), 0);
	return cmocka_run_group_tests_name("own", tests, on_a_pair, NULL);
}
