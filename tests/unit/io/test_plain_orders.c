/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two queue pairs without rdma_cm are moved between states in random orders, while dials, replies
 * and resets are under way. Afterwards they must connect, and a message must arrive in each
 * direction. ROUNDS and SEED are read from the environment.
 */
#include "plain.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t random_state;

static unsigned below(unsigned n)
{
	return (unsigned)(test_random(&random_state) >> 33) % n;
}

static unsigned long from_environment(const char *name, unsigned long otherwise)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 10) : otherwise;
}

/* Two of five calls return immediately. The others wait for a random time of up to 50 us, 300 us or
 * 3 ms. */
static void pass_time(void)
{
	static const long at_most_ns[] = {1, 1, 50000, 300000, 3000000};
	const struct timespec t = {.tv_nsec = below((unsigned)at_most_ns[below(5)])};

	if (t.tv_nsec > 0)
		nanosleep(&t, NULL);
}

static struct plain *reset_last;

static void reset(struct plain *p)
{
	plain_reset(p);
	reset_last = p;
}

static void to_err(struct plain *p)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	assert_int_equal(softrnic_modify_qp(p->qp, &attr, IBV_QP_STATE), 0);
}

/* Make one step: to the next state, or back to RESET. */
static void move(struct plain *p, const struct plain *peer)
{
	enum ibv_qp_state state = plain_state(p);

	if (state == IBV_QPS_ERR || (state != IBV_QPS_RESET && below(4) == 0))
		reset(p);
	else if (state == IBV_QPS_RESET)
		plain_init(p);
	else if (below(8) == 0)
		to_err(p);
	else if (state == IBV_QPS_INIT)
		plain_rtr(p, peer->qp->qp_num);
	else if (state == IBV_QPS_RTR)
		plain_rts(p);
}

static void go_on_to_rts(struct plain *p, const struct plain *peer)
{
	if (plain_state(p) == IBV_QPS_ERR)
		reset(p);
	if (plain_state(p) == IBV_QPS_RESET)
		plain_init(p);
	if (plain_state(p) == IBV_QPS_INIT)
		plain_rtr(p, peer->qp->qp_num);
	if (plain_state(p) == IBV_QPS_RTR)
		plain_rts(p);
}

static void drop_completions(struct plain *p)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(p->cq, 1, &wc) > 0)
		;
}

static void begin_round(struct plain *p)
{
	reset(p);
	drop_completions(p);
}

/* Neither user sends a message, so each end may be reset alone. */
static void without_messages(struct plain *a, struct plain *b)
{
	for (unsigned n = below(12); n > 0; n--) {
		if (below(2))
			move(a, b);
		else
			move(b, a);
		pass_time();
	}
	go_on_to_rts(a, b);
	go_on_to_rts(b, a);
}

/* Exchange messages, and reset both ends afterwards. If only one end is reset, the other end keeps
 * messages of the earlier connection. */
static void with_messages(struct plain *a, struct plain *b)
{
	for (unsigned n = below(12); n > 0; n--) {
		struct plain *p = below(2) ? a : b;

		if (below(3) && plain_state(p) == IBV_QPS_RTS) {
			plain_recv(p, 1);
			plain_send(p, 2, "of the past");
		} else {
			move(p, p == a ? b : a);
		}
		drop_completions(p);
		pass_time();
	}
	begin_round(a);
	begin_round(b);
	go_on_to_rts(a, b);
	pass_time();
	go_on_to_rts(b, a);
}

/*
 * Send first from the end that was reset last, which has no former stream. If the other end has not
 * noticed the end of its former stream, a message that it sends now could be lost with that stream.
 */
static void talk(struct plain *a, struct plain *b)
{
	plain_talk(reset_last, reset_last == a ? b : a);
}

static void run_rounds(void (*round)(struct plain *, struct plain *), unsigned long rounds)
{
	struct plain a, b;

	plain_pair_open(&a, &b);
	for (unsigned long i = 0; i < rounds; i++) {
		begin_round(&a);
		begin_round(&b);
		round(&a, &b);
		talk(&a, &b);
	}
	plain_close(&a);
	plain_close(&b);
}

static int seed(void **state)
{
	random_state = from_environment("SEED", 1);
	printf("SEED=%lu\n", (unsigned long)random_state);
	return 0;
}

static void they_meet_after_every_order_of_moves(void **state)
{
	run_rounds(without_messages, from_environment("ROUNDS", 100));
}

static void they_meet_after_connections_of_the_past(void **state)
{
	run_rounds(with_messages, from_environment("ROUNDS", 100));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(they_meet_after_every_order_of_moves, seed),
		cmocka_unit_test_setup(they_meet_after_connections_of_the_past, seed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
