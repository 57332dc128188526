/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_ack_joins.c -- when a poll returns a message, the Ack of the message is sent with the
 * program's answer, or earlier if a rule demands it. The same holds for a wait. The clock stands
 * still in these tests. So no time passes between two calls, the alarm sends nothing, and a lease
 * does not end. Only the test's thread receives.
 */
#include "writes.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/shm_state.h"

enum { POLLS = 64, ROUNDS = 4, PATIENCE_MS = 10000 };

static void poll_empty(struct end *e)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), 0);
}

static bool uses_rings(struct end *e)
{
	return counter_of(e, "shm_state") == SHM_USED;
}

/* If the environment demands rings, wait until both ends use them. */
static void await_rings(struct pair *p)
{
	const char *shm = getenv("SOFTRNIC_SHM");

	for (int ms = 0; strcmp(shm, "0") != 0; ms++) {
		if (uses_rings(&p->ends.client) && uses_rings(&p->ends.server))
			break;
		assert_true(ms < PATIENCE_MS);
		usleep(1000);
	}
}

static void open_polled(struct pair *p)
{
	end_signals_all = 1;
	ends_open(&p->ends);
	assert_int_equal(softrnic_listen(p->ends.listener.id, 4), 0);
	assert_int_equal(softrnic_connect(p->ends.client.id, NULL), 0);
	ends_establish(&p->ends);
	await_rings(p);
	stop_clock();
	for (int i = 0; i < POLLS; i++) {
		poll_empty(&p->ends.client);
		poll_empty(&p->ends.server);
	}
}

static void close_polled(struct pair *p)
{
	start_clock();
	ends_close(&p->ends);
}

static void expect(struct end *e, uint64_t wr_id)
{
	struct ibv_wc wc = end_wait_wc(e);

	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

/* The client sends a message, and the server polls until it gets the message. */
static void receive(struct pair *p)
{
	assert_int_equal(end_post_recv(&p->ends.server, 1), 0);
	assert_int_equal(end_post_send(&p->ends.client, 2, 6), 0);
	expect(&p->ends.server, 1);
}

/* The server answers, and both ends poll until all requests are complete. */
static void answer(struct pair *p)
{
	assert_int_equal(end_post_recv(&p->ends.client, 3), 0);
	assert_int_equal(end_post_send(&p->ends.server, 4, 6), 0);
	expect(&p->ends.client, 2);
	expect(&p->ends.client, 3);
	poll_empty(&p->ends.client); /* this poll sends the client's Ack */
	expect(&p->ends.server, 4);
}

/* Returns how often the server sends in one round of message and answer. */
static uint64_t sends_of_round(struct pair *p)
{
	uint64_t before = sends_of(&p->ends.server);

	receive(p);
	answer(p);
	return sends_of(&p->ends.server) - before;
}

static void teach_answers(struct pair *p)
{
	for (int i = 0; i < ROUNDS; i++)
		sends_of_round(p);
}

static void an_ack_leaves_with_the_answer(void **state)
{
	struct pair p;
	int tries = 0;

	open_polled(&p);
	/* the policy has not yet seen that a post follows */
	assert_int_equal(sends_of_round(&p), 2);
	assert_int_equal(sends_of_round(&p), 2);
	while (sends_of_round(&p) != 1)
		assert_true(++tries < TRIES);
	close_polled(&p);
}

/* Receive a message whose Ack is deferred. Returns the number of sends so far. */
static uint64_t open_waiting(struct pair *p)
{
	uint64_t before;

	open_polled(p);
	teach_answers(p);
	for (int tries = 0; tries < TRIES; tries++) {
		before = sends_of(&p->ends.server);
		receive(p);
		if (sends_of(&p->ends.server) == before)
			return before;
		answer(p);
	}
	fail_msg("no Ack waits");
	return 0;
}

static void expect_sent(struct pair *p, uint64_t before)
{
	assert_int_equal(sends_of(&p->ends.server), before + 1);
	expect(&p->ends.client, 2);
	close_polled(p);
}

static void it_leaves_when_a_poll_finds_nothing(void **state)
{
	struct pair p;
	uint64_t before = open_waiting(&p);

	poll_empty(&p.ends.server);
	expect_sent(&p, before);
}

static void it_leaves_when_the_queue_is_armed(void **state)
{
	struct pair p;
	uint64_t before = open_waiting(&p);

	assert_int_equal(ibv_req_notify_cq(p.ends.server.cq, 0), 0);
	expect_sent(&p, before);
}

static void a_posted_receive_does_not_send_it(void **state)
{
	struct pair p;
	uint64_t before = open_waiting(&p);

	assert_int_equal(end_post_recv(&p.ends.server, 5), 0);
	assert_int_equal(sends_of(&p.ends.server), before);
	answer(&p);
	assert_int_equal(sends_of(&p.ends.server), before + 1);
	close_polled(&p);
}

static void the_timer_sends_it(void **state)
{
	struct pair p;

	open_waiting(&p);
	start_clock();
	expect(&p.ends.client, 2);
	close_polled(&p);
}

static void a_disconnect_sends_it_before(void **state)
{
	struct pair p;

	open_waiting(&p);
	assert_int_equal(softrnic_disconnect(p.ends.server.id), 0);
	expect(&p.ends.client, 2);
	close_polled(&p);
}

static void a_failed_queue_pair_sends_it_before(void **state)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct pair p;

	open_waiting(&p);
	assert_int_equal(softrnic_modify_qp(p.ends.server.id->qp, &attr, IBV_QP_STATE), 0);
	expect(&p.ends.client, 2);
	close_polled(&p);
}

/* If a program answers no message, none of its Acks is deferred. */
static void where_nothing_is_answered_acks_leave_at_once(void **state)
{
	struct pair p;

	open_polled(&p);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t before = sends_of(&p.ends.server);

		receive(&p);
		assert_int_equal(sends_of(&p.ends.server), before + 1);
		expect(&p.ends.client, 2);
		advance_clock(50 * NSEC_PER_US);
	}
	close_polled(&p);
}

/* --- a program that watches its memory ------------------------------------------------------- */

/* No thread polls in a loop, so there is no lease, and the engine receives the server's Writes. */
static void open_watching(struct pair *p)
{
	*p = (struct pair){0};
	end_signals_all = 1;
	ends_open(&p->ends);
	assert_int_equal(softrnic_listen(p->ends.listener.id, 4), 0);
	assert_int_equal(softrnic_connect(p->ends.client.id, NULL), 0);
	ends_establish(&p->ends);
	pair_register(p);
	await_rings(p);
	stop_clock();
}

static void close_watching(struct pair *p)
{
	start_clock();
	assert_int_equal(softrnic_dereg_mr(p->target), 0);
	ends_close(&p->ends);
}

/*
 * Give the engine time to receive the completion: an earlier poll finds nothing, and then the
 * thread seems to wait for the completion instead of watching its memory. The clock advances,
 * because quick polls would begin a lease, which does not end while the clock stands still.
 */
static void await_own_completion(struct end *e)
{
	struct ibv_wc wc;
	int tries = 0;

	do {
		assert_true(tries++ < TRIES);
		advance_clock(NSEC_PER_MS);
		usleep(5000);
	} while (ibv_poll_cq(e->cq, 1, &wc) == 0);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	poll_empty(e);
}

/* The client writes, and the server sees the bytes in its memory. Returns true if the Ack is
 * deferred. */
static bool watched_write(struct pair *p)
{
	uint64_t before = sends_of(&p->ends.server);

	assert_int_equal(post_write(p, sizeof(p->next), IBV_SEND_SIGNALED), 0);
	assert_true(arrives(p));
	usleep(5000); /* an Ack that is not deferred follows immediately */
	return sends_of(&p->ends.server) == before;
}

static void answer_write(struct pair *p)
{
	assert_int_equal(end_post_recv(&p->ends.client, 3), 0);
	assert_int_equal(end_post_send(&p->ends.server, 4, 6), 0);
	expect(&p->ends.client, 0);
	expect(&p->ends.client, 3);
	poll_empty(&p->ends.client); /* this poll sends the client's Ack */
	await_own_completion(&p->ends.server);
}

static void open_with_deferred_ack(struct pair *p)
{
	int rounds = 0;

	open_watching(p);
	while (!watched_write(p)) {
		answer_write(p);
		assert_true(++rounds < TRIES);
	}
	/* Two rounds show that the program watches its memory, and two more rounds show that it
	 * answers immediately. */
	assert_true(rounds >= 4);
}

static void the_ack_of_a_watched_write_leaves_with_the_answer(void **state)
{
	struct pair p;
	uint64_t before;

	open_with_deferred_ack(&p);
	before = sends_of(&p.ends.server);
	answer_write(&p);
	assert_int_equal(sends_of(&p.ends.server), before + 1);
	close_watching(&p);
}

static void the_timer_sends_the_ack_of_a_watched_write(void **state)
{
	struct pair p;

	open_with_deferred_ack(&p);
	start_clock();
	expect(&p.ends.client, 0);
	close_watching(&p);
}

static void a_poll_sends_the_ack_of_a_watched_write(void **state)
{
	struct pair p;
	uint64_t before;

	open_with_deferred_ack(&p);
	before = sends_of(&p.ends.server);
	poll_empty(&p.ends.server);
	assert_int_equal(sends_of(&p.ends.server), before + 1);
	expect(&p.ends.client, 0);
	close_watching(&p);
}

/* --- a program that waits ------------------------------------------------------------------- */

/* Sends the client's message after the server has probably begun to wait. If the server has not
 * begun, the engine receives the message, and the Ack is not deferred. */
struct sender {
	struct pair *p;
	bool awaits_ack; /* of the previous message, which must come before the server's next post */
	bool got_ack;
	pthread_t thread;
};

static void sender_await_ack(struct sender *s)
{
	struct ibv_wc wc = {0};

	for (int ms = 0; ms < PATIENCE_MS; ms++) {
		if (ibv_poll_cq(s->p->ends.client.cq, 1, &wc) > 0)
			break;
		usleep(1000);
	}
	s->got_ack = wc.wr_id == 2 && wc.status == IBV_WC_SUCCESS;
}

static void *send_later(void *arg)
{
	struct sender *s = arg;

	usleep(5000);
	if (s->awaits_ack)
		sender_await_ack(s);
	end_post_send(&s->p->ends.client, 2, 6);
	return NULL;
}

static void await_event(struct end *e)
{
	struct ibv_cq *cq;
	void *context;

	assert_int_equal(softrnic_get_cq_event(e->completions, &cq, &context), 0);
	softrnic_ack_cq_events(cq, 1);
}

/* Take an event, arm the queue, and then poll, as ibv_rc_pingpong and perftest do. */
static void take(struct end *e, uint64_t wr_id)
{
	struct ibv_wc wc;

	await_event(e);
	assert_int_equal(ibv_req_notify_cq(e->cq, 0), 0);
	assert_int_equal(ibv_poll_cq(e->cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

/* The server waits for a message of the client. Returns true if the client got the Ack of its
 * previous message. */
static bool receive_by_waiting(struct pair *p, bool awaits_ack)
{
	struct sender s = {.p = p, .awaits_ack = awaits_ack};

	assert_int_equal(end_post_recv(&p->ends.server, 1), 0);
	assert_int_equal(pthread_create(&s.thread, NULL, send_later, &s), 0);
	take(&p->ends.server, 1);
	assert_int_equal(pthread_join(s.thread, NULL), 0);
	return s.got_ack;
}

static void answer_and_wait(struct pair *p)
{
	assert_int_equal(end_post_recv(&p->ends.client, 3), 0);
	assert_int_equal(end_post_send(&p->ends.server, 4, 6), 0);
	expect(&p->ends.client, 2);
	expect(&p->ends.client, 3);
	poll_empty(&p->ends.client); /* this poll sends the client's Ack */
	take(&p->ends.server, 4);
}

static uint64_t sends_of_waiting_round(struct pair *p)
{
	uint64_t before = sends_of(&p->ends.server);

	receive_by_waiting(p, false);
	answer_and_wait(p);
	return sends_of(&p->ends.server) - before;
}

static void open_sleeping(struct pair *p)
{
	*p = (struct pair){0};
	end_signals_all = 1;
	ends_open(&p->ends);
	assert_int_equal(softrnic_listen(p->ends.listener.id, 4), 0);
	assert_int_equal(softrnic_connect(p->ends.client.id, NULL), 0);
	ends_establish(&p->ends);
	await_rings(p);
	stop_clock();
	assert_int_equal(ibv_req_notify_cq(p->ends.server.cq, 0), 0);
}

/* Repeat rounds until an Ack has left with its answer. From then on the server has a lease between
 * its waits, which does not end while the clock stands still, so the engine receives nothing. */
static void open_sleeping_and_teach(struct pair *p)
{
	int tries = 0;

	open_sleeping(p);
	/* the policy has not yet seen that a post follows */
	assert_int_equal(sends_of_waiting_round(p), 2);
	assert_int_equal(sends_of_waiting_round(p), 2);
	while (sends_of_waiting_round(p) != 1)
		assert_true(++tries < TRIES);
}

static void the_ack_of_a_waiting_thread_leaves_with_the_answer(void **state)
{
	struct pair p;

	open_sleeping_and_teach(&p);
	for (int i = 0; i < ROUNDS; i++)
		assert_int_equal(sends_of_waiting_round(&p), 1);
	close_polled(&p);
}

/* Returns the number of sends so far. The Ack of the last message is deferred. */
static uint64_t open_sleeping_with_deferred_ack(struct pair *p)
{
	uint64_t before;

	open_sleeping_and_teach(p);
	before = sends_of(&p->ends.server);
	receive_by_waiting(p, false);
	assert_int_equal(sends_of(&p->ends.server), before);
	return before;
}

static void arming_an_empty_queue_sends_the_ack_of_a_waiting_thread(void **state)
{
	struct pair p;
	uint64_t before = open_sleeping_with_deferred_ack(&p);

	assert_int_equal(ibv_req_notify_cq(p.ends.server.cq, 0), 0);
	expect_sent(&p, before);
}

static void the_next_wait_sends_the_ack_of_a_waiting_thread(void **state)
{
	struct pair p;

	open_sleeping_with_deferred_ack(&p);
	assert_true(receive_by_waiting(&p, true));
	close_polled(&p);
}

static void the_timer_sends_the_ack_of_a_waiting_thread(void **state)
{
	struct pair p;

	open_sleeping_with_deferred_ack(&p);
	start_clock();
	expect(&p.ends.client, 2);
	close_polled(&p);
}

static void a_disconnect_sends_the_ack_of_a_waiting_thread_before(void **state)
{
	struct pair p;

	open_sleeping_with_deferred_ack(&p);
	assert_int_equal(softrnic_disconnect(p.ends.server.id), 0);
	expect(&p.ends.client, 2);
	close_polled(&p);
}

/* Two answered messages are no longer enough. */
static void after_a_wait_in_vain_more_answers_are_necessary(void **state)
{
	struct pair p;

	open_sleeping_with_deferred_ack(&p);
	assert_true(receive_by_waiting(&p, true));
	answer_and_wait(&p);
	for (int i = 0; i < 2 * ROUNDS; i++)
		assert_int_equal(sends_of_waiting_round(&p), 2);
	close_polled(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ack_leaves_with_the_answer),
		cmocka_unit_test(it_leaves_when_a_poll_finds_nothing),
		cmocka_unit_test(it_leaves_when_the_queue_is_armed),
		cmocka_unit_test(a_posted_receive_does_not_send_it),
		cmocka_unit_test(the_timer_sends_it),
		cmocka_unit_test(a_disconnect_sends_it_before),
		cmocka_unit_test(a_failed_queue_pair_sends_it_before),
		cmocka_unit_test(where_nothing_is_answered_acks_leave_at_once),
		cmocka_unit_test(the_ack_of_a_watched_write_leaves_with_the_answer),
		cmocka_unit_test(the_timer_sends_the_ack_of_a_watched_write),
		cmocka_unit_test(a_poll_sends_the_ack_of_a_watched_write),
		cmocka_unit_test(the_ack_of_a_waiting_thread_leaves_with_the_answer),
		cmocka_unit_test(arming_an_empty_queue_sends_the_ack_of_a_waiting_thread),
		cmocka_unit_test(the_next_wait_sends_the_ack_of_a_waiting_thread),
		cmocka_unit_test(the_timer_sends_the_ack_of_a_waiting_thread),
		cmocka_unit_test(a_disconnect_sends_the_ack_of_a_waiting_thread_before),
		cmocka_unit_test(after_a_wait_in_vain_more_answers_are_necessary),
	};

	/* unless the environment demands rings from the first message on; a later move would cost
	 * sends that the test does not expect */
	setenv("SOFTRNIC_SHM", "0", 0);
	/* while the clock stands still, a leader that spins would not stop */
	setenv("SOFTRNIC_SPIN_US", "0", 1);
	setenv("SOFTRNIC_ACK", "1", 1);
	return cmocka_run_group_tests_name("ack_joins", tests, NULL, NULL);
}
