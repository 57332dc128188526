/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The effect of the policy on nine kinds of programs, on a machine whose clock and costs the test
 * sets: how many sends are made, how often the alarm is set, how often the engine is woken, and how
 * late a Write is sent. The machine keeps the alarm and the leases as conn_watch.c does.
 */
#include "lib/unit.h"

#include <string.h>

#include "base/clock.h"
#include "softrnic/io/policy.h"

#define US NSEC_PER_US

enum { CONNS = 64, ROUNDS = 2000 };

#define POST_NS   300u
#define POLL_NS   200u
#define SEND_NS   (3 * US)
#define ANSWER_NS (15 * US) /* time from the send of a flush to its answer */

struct sim_conn {
	struct policy_send send;
	uint64_t since; /* time at which the wait of a Write began; 0: no Write waits */
	struct policy_lookers l;
	unsigned polls, seen; /* these members mean the same as in struct conn_policy */
	uint64_t answer_at;   /* time at which an answer arrives; 0: none is under way */
	uint64_t write_at;    /* time at which a Write of the peer arrives; 0: none is under way */
	uint64_t waited_at;
	struct policy_news news;
	struct policy_lease lease;
};

struct machine {
	uint64_t now, cost_ns; /* now: the present time; cost_ns: the cost of setting the alarm */
	uint64_t due, look_at, average_ns;
	struct sim_conn conn[CONNS];
	unsigned conns, cq_polls;
	uint64_t polls_at;
	/* counts of posts, sends, settings and expiries of the alarm, and reports to the engine */
	unsigned posts, sends, sets, expiries, reports;
	uint64_t latest_ns; /* the longest time that a Write waited */
	uint64_t missed_ns; /* total time for which arrived Writes of the peer were not placed */
};

static void machine_init(struct machine *m, unsigned conns, uint64_t cost_ns)
{
	memset(m, 0, sizeof(*m));
	m->now = 1000 * US;
	m->cost_ns = cost_ns;
	m->conns = conns;
	for (unsigned i = 0; i < conns; i++)
		policy_send_init(&m->conn[i].send);
}

/* --- the engine ----------------------------------------------------------------------------- */

static uint64_t write_pace(const struct machine *m)
{
	return policy_pace(POLICY_WRITE, m->average_ns);
}

static uint64_t lease_pace(const struct machine *m, enum policy_use use)
{
	return policy_pace(use, m->average_ns);
}

static void set_alarm(struct machine *m, uint64_t at)
{
	uint64_t ahead = at - m->now;

	if (m->due == at)
		return;
	m->sets++;
	m->now += m->cost_ns;
	m->average_ns = policy_cost(m->average_ns, m->cost_ns, ahead);
	m->due = at;
}

static void leave(struct machine *m, struct sim_conn *c)
{
	uint64_t late = c->since ? m->now - c->since : 0;

	if (late > m->latest_ns)
		m->latest_ns = late;
	c->since = 0;
	m->sends++;
}

/* Take the answers and Writes that have arrived. */
static void receive(struct machine *m, struct sim_conn *c)
{
	if (c->answer_at && c->answer_at <= m->now) {
		c->answer_at = 0;
		c->news.completed++;
	}
	if (c->write_at && c->write_at <= m->now) {
		m->missed_ns += m->now - c->write_at;
		c->write_at = 0;
		c->news.written++;
	}
}

static void end_lease(struct machine *m, struct sim_conn *c)
{
	struct policy_news before = c->news;

	c->l.leased = c->l.waits = false;
	policy_look_ends(&c->lease, &c->news);
	receive(m, c);
	policy_lease_unused(&c->lease, &before, &c->news);
}

static void look_at_leases(struct machine *m, enum policy_use use)
{
	unsigned leases = 0;

	for (unsigned i = 0; i < m->conns; i++) {
		struct sim_conn *c = &m->conn[i];

		if (c->l.leased && c->polls == c->seen)
			end_lease(m, c);
		c->seen = c->polls;
		leases += c->l.leased;
	}
	m->look_at = leases ? m->now + 2 * lease_pace(m, use) : 0;
}

static void expire(struct machine *m)
{
	uint64_t next = 0;

	m->due = 0;
	m->expiries++;
	if (m->look_at && m->look_at <= m->now)
		look_at_leases(m, POLICY_WAITS);
	for (unsigned i = 0; i < m->conns; i++) {
		struct sim_conn *c = &m->conn[i];

		if (!c->since)
			continue;
		if (policy_is_overdue(c->since, m->now, write_pace(m))) {
			policy_sent_by_alarm(&c->send);
			leave(m, c);
		} else {
			next = m->now + 2 * write_pace(m);
		}
	}
	if (m->look_at && (!next || m->look_at < next))
		next = m->look_at;
	if (next)
		set_alarm(m, next);
}

/* Let time pass; the engine handles the events that become due. */
static void pass(struct machine *m, uint64_t ns)
{
	uint64_t end = m->now + ns;

	while (m->due && m->due <= end) {
		m->now = m->due;
		expire(m);
	}
	if (m->now < end)
		m->now = end;
	for (unsigned i = 0; i < m->conns; i++) {
		struct sim_conn *c = &m->conn[i];

		if (!policy_link_reports(&c->l))
			continue;
		/* the link reports the bytes, so a thread of the engine wakes up and takes them */
		m->reports += (c->answer_at && c->answer_at <= m->now) ||
			      (c->write_at && c->write_at <= m->now);
		receive(m, c);
	}
}

/* --- actions of programs -------------------------------------------------------------------- */

static void wait_for_more(struct machine *m, struct sim_conn *c)
{
	bool others = false;

	for (unsigned i = 0; i < m->conns; i++)
		others |= m->conn[i].since != 0;
	c->since = m->now;
	if (!policy_alarm_fits(m->due, m->now, write_pace(m), others)) {
		uint64_t at = m->now + 2 * write_pace(m);

		set_alarm(m, m->look_at && m->look_at < at ? m->look_at : at);
	}
}

static void post(struct machine *m, struct sim_conn *c, bool may_wait)
{
	enum policy_write todo = policy_on_post(&c->send, may_wait ? POLICY_A_WRITE : POLICY_OTHER,
						c->since, m->now);

	m->posts++;
	if (todo == POLICY_WAIT)
		wait_for_more(m, c);
	if (todo == POLICY_SEND) {
		pass(m, SEND_NS);
		leave(m, c);
		if (may_wait)
			policy_sent(&c->send, m->now);
	}
	pass(m, POST_NS);
}

static void post_write(struct machine *m, struct sim_conn *c)
{
	post(m, c, true);
}

static void post_flush(struct machine *m, struct sim_conn *c)
{
	post(m, c, false);
	c->answer_at = m->now + ANSWER_NS;
}

static void begin_lease(struct machine *m, struct sim_conn *c)
{
	if (c->l.leased || !policy_may_lease(&c->lease))
		return;
	c->l.leased = true;
	c->seen = c->polls - 1;
	if (!m->look_at) {
		m->look_at = m->now + 2 * lease_pace(m, POLICY_WAITS);
		if (!m->due || m->due > m->look_at)
			set_alarm(m, m->look_at);
	}
}

static void renew_leases(struct machine *m, enum policy_use use)
{
	uint64_t before = m->look_at;
	bool waits = false;

	if (!policy_is_look_due(m->look_at, m->now, lease_pace(m, use)))
		return;
	look_at_leases(m, use);
	for (unsigned i = 0; i < m->conns; i++)
		waits |= m->conn[i].since != 0;
	if (m->look_at && !policy_keeps_alarm(m->due, before, m->look_at, waits))
		set_alarm(m, m->look_at);
}

static void look(struct machine *m, struct sim_conn *c, bool loop)
{
	bool learns = !c->l.leased;

	if (learns)
		policy_look_begins(&c->lease, &c->news);
	if (loop)
		begin_lease(m, c);
	receive(m, c);
	if (learns)
		policy_look_ends(&c->lease, &c->news);
}

/* Poll the CQ of all connections once. */
static void poll(struct machine *m)
{
	bool loop = false;

	pass(m, POLL_NS);
	m->cq_polls++;
	if (m->cq_polls % POLICY_LOOP == 0 && m->conns <= POLICY_CONNS) {
		loop = policy_is_loop(m->cq_polls, m->polls_at, m->now);
		m->polls_at = m->now;
	}
	for (unsigned i = 0; i < m->conns && i < POLICY_CONNS; i++) {
		struct sim_conn *c = &m->conn[i];

		c->polls++;
		if (c->since)
			leave(m, c);
		look(m, c, loop);
	}
	if (m->cq_polls % POLICY_LOOP == 0)
		renew_leases(m, POLICY_POLLS);
}

static void poll_until_answered(struct machine *m, struct sim_conn *c)
{
	while (c->answer_at)
		poll(m);
}

/* Wait by poll(2) for the link's descriptor: the link reports nothing to the engine, and the thread
 * takes the bytes. */
static void wait_until_answered(struct machine *m, struct sim_conn *c)
{
	if (!c->l.leased)
		policy_look_begins(&c->lease, &c->news);
	if (policy_waits_again(c->waited_at, m->now)) {
		begin_lease(m, c);
		c->l.waits = c->l.leased;
	}
	c->waited_at = m->now;
	c->polls++;
	c->l.waiting++;
	renew_leases(m, POLICY_WAITS);
	pass(m, c->answer_at - m->now);
	receive(m, c);
	if (!c->l.leased)
		policy_look_ends(&c->lease, &c->news);
	c->l.waiting--;
}

/* The program watches its memory, to which the peer writes after this time. */
static void await_write(struct machine *m, struct sim_conn *c, uint64_t after)
{
	c->write_at = m->now + after;
	while (c->write_at)
		pass(m, POLL_NS);
}

/* --- nine kinds of programs ------------------------------------------------------------------- */

/*
 * Setting the alarm may take at most 1 / share of the time, and a little more until the average
 * cost is known.
 */
static void expect_cheap_alarms(const struct machine *m, unsigned share)
{
	assert_true(m->sets * m->cost_ns <= (m->now - 1000 * US) / share + 20 * m->cost_ns);
}

static void run_waits(uint64_t cost_ns)
{
	struct machine m;

	machine_init(&m, 1, cost_ns);
	for (unsigned i = 0; i < ROUNDS; i++) {
		post_write(&m, m.conn);
		post_flush(&m, m.conn);
		wait_until_answered(&m, m.conn);
	}
	assert_int_equal(m.sends, ROUNDS + 2); /* only the first two Writes were sent alone */
	assert_int_equal(m.reports, 0);
	assert_in_range(m.expiries, 0, ROUNDS / 100);
	expect_cheap_alarms(&m, 7);
}

static void a_program_that_waits_wakes_itself_only(void **state)
{
	run_waits(1 * US);
	run_waits(16 * US);
}

static void run_polls(uint64_t cost_ns)
{
	struct machine m;

	machine_init(&m, 1, cost_ns);
	for (unsigned i = 0; i < ROUNDS; i++) {
		post_write(&m, m.conn);
		post_flush(&m, m.conn);
		poll_until_answered(&m, m.conn);
	}
	assert_int_equal(m.sends, ROUNDS + 2);
	/* a few reports come before the policy recognizes the loop of polls */
	assert_in_range(m.reports, 0, 2);
	assert_in_range(m.expiries, 0, ROUNDS / 100);
	assert_true(m.conn->l.leased);
	expect_cheap_alarms(&m, 30);
	/* The program stops polling. After two checks of the engine the link reports again. */
	pass(&m, 4 * lease_pace(&m, POLICY_POLLS));
	assert_true(policy_link_reports(&m.conn->l));
	assert_int_equal(m.due, 0);
}

static void a_program_that_polls_is_the_only_one_that_looks(void **state)
{
	run_polls(1 * US);
	run_polls(16 * US);
}

static void a_program_that_polls_rarely_leaves_arrivals_to_the_engine(void **state)
{
	struct machine m;

	machine_init(&m, 1, 1 * US);
	for (unsigned i = 0; i < ROUNDS; i++) {
		post_flush(&m, m.conn);
		pass(&m, 2000 * US);
		poll(&m);
	}
	assert_int_equal(m.reports, ROUNDS);
	assert_int_equal(m.sets, 0);
	assert_int_equal(m.expiries, 0);
}

static void a_program_of_batches_needs_no_alarm_for_writes(void **state)
{
	struct machine m;

	machine_init(&m, 1, 16 * US);
	for (unsigned i = 0; i < ROUNDS; i++) {
		post_flush(&m, m.conn); /* the 16 Writes and the flush are sent together */
		wait_until_answered(&m, m.conn);
	}
	assert_int_equal(m.sends, ROUNDS);
	assert_int_equal(m.reports, 0);
	expect_cheap_alarms(&m, 7);
}

static void run_stream(uint64_t cost_ns)
{
	struct machine m;

	machine_init(&m, 1, cost_ns);
	for (unsigned i = 0; i < ROUNDS; i++) {
		for (unsigned k = 0; k < 63; k++)
			post_write(&m, m.conn);
		post_flush(&m, m.conn);
		poll_until_answered(&m, m.conn);
	}
	assert_in_range(m.sends, ROUNDS, ROUNDS + ROUNDS / 20);
	expect_cheap_alarms(&m, 30);
	/* The last Write has no post after it. */
	post_write(&m, m.conn);
	pass(&m, 5000 * US);
	assert_int_equal(m.conn->since, 0);
	assert_true(m.latest_ns <= 2 * write_pace(&m) + cost_ns);
}

static void a_stream_of_writes_leaves_by_one_send_a_flush(void **state)
{
	run_stream(1 * US);
	run_stream(16 * US);
}

static void run_many(uint64_t cost_ns)
{
	struct machine m;

	machine_init(&m, CONNS, cost_ns);
	for (unsigned i = 0; i < ROUNDS; i++) {
		for (unsigned k = 0; k < CONNS; k++) {
			post_write(&m, &m.conn[k]);
			post_flush(&m, &m.conn[k]);
		}
		poll(&m);
	}
	assert_in_range(m.sends, CONNS * ROUNDS, CONNS * (ROUNDS + 3));
	assert_true(m.reports >= (CONNS - POLICY_CONNS) * (ROUNDS - 1));
	assert_true(m.latest_ns <= 2 * write_pace(&m) + cost_ns);
	expect_cheap_alarms(&m, 30);
}

static void many_connections_share_one_alarm(void **state)
{
	run_many(1 * US);
	run_many(16 * US);
}

/* Pairs of a Write and a flush, and sometimes a single Write that the peer awaits in its memory. */
static void a_lone_write_now_and_then_is_late_a_few_times(void **state)
{
	struct machine m;
	unsigned late = 0;

	machine_init(&m, 1, 16 * US);
	for (unsigned i = 0; i < ROUNDS / 50; i++) {
		for (unsigned k = 0; k < 600; k++) {
			post_write(&m, m.conn);
			post_flush(&m, m.conn);
			poll_until_answered(&m, m.conn);
		}
		post_write(&m, m.conn);
		late += m.conn->since != 0;
		pass(&m, 2000 * US);
	}
	assert_in_range(late, 1, 3);
}

/* The program polls or waits for the Acks of its Writes, and then watches its memory for the peer's
 * Write. */
static void run_looks_at_memory(uint64_t cost_ns,
				void (*until_answered)(struct machine *, struct sim_conn *))
{
	struct machine m;

	machine_init(&m, 1, cost_ns);
	for (unsigned i = 0; i < ROUNDS; i++) {
		post_flush(&m, m.conn);
		until_answered(&m, m.conn);
		await_write(&m, m.conn, 5 * US);
	}
	/* At most one lease delayed a Write. */
	assert_in_range(m.missed_ns, 0, 4 * lease_pace(&m, POLICY_POLLS) + ROUNDS * POLL_NS);
	assert_in_range(m.sets, 0, 10);
}

static void a_program_that_looks_at_its_memory_is_served_at_once(void **state)
{
	run_looks_at_memory(1 * US, poll_until_answered);
	run_looks_at_memory(16 * US, poll_until_answered);
	run_looks_at_memory(1 * US, wait_until_answered);
	run_looks_at_memory(16 * US, wait_until_answered);
}

/* The peer also writes to the program's memory, at any time. */
static void a_program_that_only_polls_keeps_its_lease_when_writes_come(void **state)
{
	struct machine m;

	machine_init(&m, 1, 1 * US);
	for (unsigned i = 0; i < ROUNDS; i++) {
		post_flush(&m, m.conn);
		if (!m.conn->write_at)
			m.conn->write_at = m.now + i % 31 * US;
		poll_until_answered(&m, m.conn);
	}
	/* a few reports come before the policy recognizes the loop of polls */
	assert_in_range(m.reports, 0, 4);
	assert_true(m.conn->l.leased);
}

/* The program waits for a message, then arms its empty queue, and only then answers. The Ack of the
 * message is handled as a Write is, so an Ack can be deferred until the arming, but no longer. */
static void run_arms_before_it_answers(uint64_t cost_ns)
{
	struct machine m;
	unsigned deferred = 0;

	machine_init(&m, 1, cost_ns);
	for (unsigned i = 0; i < ROUNDS; i++) {
		m.conn->answer_at = m.now + ANSWER_NS; /* the time at which the message arrives */
		wait_until_answered(&m, m.conn);
		post_write(&m, m.conn);
		if (m.conn->since) {
			deferred++;
			policy_in_vain(&m.conn->send);
			leave(&m, m.conn);
		}
		post(&m, m.conn, false);
	}
	assert_int_equal(m.sends, 2 * ROUNDS);
	assert_int_equal(deferred, 3); /* after 2, 32 and 512 answers */
	expect_cheap_alarms(&m, 7);
}

static void a_program_that_arms_before_it_answers_loses_nothing(void **state)
{
	run_arms_before_it_answers(1 * US);
	run_arms_before_it_answers(16 * US);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_that_waits_wakes_itself_only),
		cmocka_unit_test(a_program_that_polls_is_the_only_one_that_looks),
		cmocka_unit_test(a_program_that_polls_rarely_leaves_arrivals_to_the_engine),
		cmocka_unit_test(a_program_of_batches_needs_no_alarm_for_writes),
		cmocka_unit_test(a_stream_of_writes_leaves_by_one_send_a_flush),
		cmocka_unit_test(many_connections_share_one_alarm),
		cmocka_unit_test(a_lone_write_now_and_then_is_late_a_few_times),
		cmocka_unit_test(a_program_that_looks_at_its_memory_is_served_at_once),
		cmocka_unit_test(a_program_that_only_polls_keeps_its_lease_when_writes_come),
		cmocka_unit_test(a_program_that_arms_before_it_answers_loses_nothing),
	};

	return cmocka_run_group_tests_name("policy_sim", tests, NULL, NULL);
}
