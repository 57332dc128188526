/* SPDX-License-Identifier: BSD-3-Clause */
/* A link of a given speed with a queue, in virtual time. Flushes and a resync share it. */
#include "lib/unit.h"
#include "mirror/core/resync_rate.h"
#include "sim/prng.h"

#define PIECE   (64u << 10)
#define SECOND  1000000ull
#define BASE_US 400 /* latency of a flush on an idle link, in microseconds */

struct piece {
	uint64_t sent, end, len;
};

static struct link {
	struct resync_rate rate;
	uint64_t speed;        /* bytes per second */
	uint64_t now, free_at; /* now: present time; free_at: time at which the queue is empty */
	struct piece pieces[4096];
	unsigned first, count;
	uint64_t sent, in_flight;
	bool is_queue_shared; /* a flush waits in the queue behind pieces of the resync */
	/* extra_us: added latency of flushes while more than `tolerated` bytes are in flight */
	uint64_t extra_us;
	uint64_t tolerated;
	/* noise_us: added latency from other work, doubled for a tenth of the flushes */
	uint64_t noise_us;
	struct prng prng; /* state 0: latencies have no random variation */
	struct resync_latencies seen;
} l;

static void begin(uint64_t speed, uint64_t min_rate, uint64_t max_rate, uint64_t calm_us)
{
	struct resync_limits limits = {min_rate, max_rate};

	l = (struct link){.speed = speed, .is_queue_shared = true};
	resync_rate_init(&l.rate, &limits, PIECE, calm_us, 0);
}

static void send_what_is_permitted(void)
{
	uint64_t wake, len = l.rate.piece;

	while (l.count < 4096 && resync_rate_permits(&l.rate, l.in_flight, len, l.now, &wake)) {
		l.free_at = (l.free_at > l.now ? l.free_at : l.now) + len * SECOND / l.speed;
		l.pieces[(l.first + l.count++) % 4096] =
			(struct piece){l.now, l.free_at + BASE_US, len};
		l.in_flight += len;
		l.sent += len;
		resync_rate_on_sent(&l.rate, len, l.now);
		len = l.rate.piece;
	}
}

static void take_what_has_come(void)
{
	while (l.count && l.pieces[l.first % 4096].end <= l.now) {
		resync_rate_on_done(&l.rate, l.now - l.pieces[l.first % 4096].sent);
		l.in_flight -= l.pieces[l.first % 4096].len;
		l.first++;
		l.count--;
	}
}

/* The machine has other work, too: some flushes take up to three times as long. */
static uint64_t latency(void)
{
	uint64_t took = BASE_US + (l.in_flight >= l.tolerated ? l.extra_us : 0);

	if (l.prng.state)
		took += prng_below(&l.prng, BASE_US / 4);
	if (l.noise_us)
		took += prng_below(&l.prng, l.noise_us) * (prng_below(&l.prng, 10) ? 1 : 2);
	if (l.prng.state && prng_below(&l.prng, 100) < 3)
		took += prng_below(&l.prng, 2 * BASE_US);
	if (l.is_queue_shared && l.free_at > l.now)
		took += l.free_at - l.now;
	return took;
}

/* Run for this time; a flush begins every 500 us. */
static void run(uint64_t us)
{
	for (uint64_t end = l.now + us; l.now < end; l.now += 50) {
		take_what_has_come();
		send_what_is_permitted();
		if (l.now % 500 == 0) {
			uint64_t took = latency();

			resync_latencies_add(&l.seen, took);
			resync_rate_on_flush(&l.rate, took, l.now);
		}
	}
}

static uint64_t rate_of(uint64_t us)
{
	uint64_t before = l.sent;

	run(us);
	return (l.sent - before) * SECOND / us;
}

static void test_the_99th_percentile_is_right_to_an_eighth(void **state)
{
	struct resync_latencies few = {0}, many = {0};

	assert_int_equal(resync_latencies_p99(&few), 0);
	resync_latencies_add(&few, 5);
	assert_int_equal(resync_latencies_p99(&few), 5);
	for (uint64_t us = 1; us <= 10000; us++)
		resync_latencies_add(&many, us);
	assert_in_range(resync_latencies_p99(&many), 9900, 9900 * 9 / 8);
	resync_latencies_add(&few, 1ull << 60);
	assert_true(resync_latencies_p99(&few) > 10 * SECOND);
}

/* A class of latencies is named by its largest value; each value from 8 to 15 is a class of its
 * own. */
static void test_a_latency_of_a_class_of_its_own_is_exact(void **state)
{
	for (uint64_t us = 8; us < 16; us++) {
		struct resync_latencies one = {0};

		resync_latencies_add(&one, us);
		assert_int_equal(resync_latencies_p99(&one), us);
	}
}

static void test_without_flushes_that_suffer_it_fills_the_link(void **state)
{
	begin(1ull << 30, 0, 0, BASE_US);
	l.is_queue_shared = false;
	run(5 * SECOND);
	assert_true(rate_of(SECOND) > (1ull << 30) * 9 / 10);
	assert_true(l.rate.window <= RESYNC_WINDOW_MAX);
}

/* At 10 Gbit/s a piece takes 52 us on the link. */
static void test_flushes_stay_below_twice_their_calm_latency(void **state)
{
	begin(1250000000, 20u << 20, 0, BASE_US);
	run(5 * SECOND);
	l.seen = (struct resync_latencies){0};
	assert_true(rate_of(10 * SECOND) > 1250000000ull * 7 / 10);
	assert_true(resync_latencies_p99(&l.seen) <= 2 * BASE_US * 9 / 8);
}

/* At 1 Gbit/s 64 KiB take 524 us on the link, longer than a flush. */
static void test_a_slow_link_is_used_in_small_turns(void **state)
{
	uint64_t speed = 125000000;

	begin(speed, 20u << 20, 0, BASE_US);
	run(20 * SECOND);
	l.seen = (struct resync_latencies){0};
	assert_true(rate_of(10 * SECOND) > speed * 7 / 10);
	assert_true(resync_latencies_p99(&l.seen) <= 2 * BASE_US * 9 / 8);
}

/* A short resync lasts little longer than a second, so the rate of its first second matters. */
static void test_it_begins_with_little_while_an_application_flushes(void **state)
{
	uint64_t speed = 125000000;

	begin(speed, 20u << 20, 0, BASE_US);
	assert_true(rate_of(SECOND) > speed / 2);
	assert_true(resync_latencies_p99(&l.seen) <= 2 * BASE_US * 9 / 8);
}

static void test_single_slow_flushes_do_not_stop_it(void **state)
{
	uint64_t calm, speed = 125000000;

	begin(speed, 0, 1, 0);
	l.prng = (struct prng){1};
	run(5 * SECOND);
	calm = resync_latencies_p99(&l.seen);
	begin(speed, 0, 0, calm);
	l.prng = (struct prng){2};
	run(20 * SECOND);
	l.seen = (struct resync_latencies){0};
	assert_true(rate_of(20 * SECOND) > speed * 7 / 10);
	assert_true(resync_latencies_p99(&l.seen) <= 2 * calm * 9 / 8);
}

static void test_the_rate_falls_when_flushes_suffer_and_recovers(void **state)
{
	uint64_t before, during;

	begin(1ull << 30, 1u << 20, 0, BASE_US);
	l.is_queue_shared = false;
	run(3 * SECOND);
	before = rate_of(SECOND);
	l.extra_us = 2 * BASE_US;
	l.tolerated = 32 << 10;
	run(3 * SECOND);
	during = rate_of(SECOND);
	assert_true(during < before / 4);
	l.extra_us = 0;
	run(20 * SECOND);
	assert_true(rate_of(SECOND) > before / 2);
}

static void test_it_is_never_below_the_lowest_rate(void **state)
{
	begin(1ull << 30, 20u << 20, 0, BASE_US);
	l.extra_us = 10 * BASE_US;
	for (unsigned i = 0; i < 10; i++)
		assert_true(rate_of(SECOND) >= (20u << 20) * 9 / 10);
}

static void test_flushes_that_suffer_decide(void **state)
{
	begin(1ull << 30, 1u << 20, 0, BASE_US);
	l.is_queue_shared = false;
	l.extra_us = 10 * BASE_US;
	l.tolerated = 32 << 10;
	run(5 * SECOND);
	/* A piece takes 400 us plus its time on the link. */
	assert_in_range(rate_of(10 * SECOND), 16u << 20, (32ull << 10) * SECOND / BASE_US);
}

/* The flushes are slow for another reason, so slowing the resync down would not help them. */
static void test_it_goes_on_where_less_does_not_help(void **state)
{
	begin(1ull << 30, 1u << 20, 0, BASE_US);
	l.is_queue_shared = false;
	l.extra_us = 10 * BASE_US;
	run(20 * SECOND);
	assert_true(rate_of(SECOND) > 1ull << 29);
}

/* Other work has slowed the flushes since the resync began. */
static void test_what_other_work_does_is_not_taken_for_the_resyncs(void **state)
{
	begin(125000000, 20u << 20, 0, BASE_US);
	l.prng = (struct prng){3};
	l.noise_us = 10 * BASE_US;
	assert_true(rate_of(2 * SECOND) > 125000000ull * 7 / 10);
}

/* After the other work ends, the measured latency without a resync is as before. */
static void test_what_is_calm_is_found_again_after_other_work(void **state)
{
	begin(125000000, 20u << 20, 0, BASE_US);
	l.prng = (struct prng){4};
	l.noise_us = 10 * BASE_US;
	run(5 * SECOND);
	assert_true(l.rate.calm_us > 5 * BASE_US);
	l.noise_us = 0;
	l.prng.state = 0;
	run(30 * SECOND);
	assert_in_range(l.rate.calm_us, BASE_US, BASE_US * 5 / 4);
	assert_true(rate_of(5 * SECOND) > 125000000ull * 7 / 10);
}

static void test_it_is_never_above_the_highest_rate(void **state)
{
	begin(1ull << 30, 20u << 20, 50u << 20, BASE_US);
	l.is_queue_shared = false;
	for (unsigned i = 0; i < 5; i++) {
		uint64_t rate = rate_of(SECOND);

		assert_in_range(rate, (50u << 20) * 9 / 10, (50u << 20) + 2 * PIECE);
	}
}

static void test_a_link_that_is_slower_than_the_lowest_rate_is_not_flooded(void **state)
{
	begin(5u << 20, 20u << 20, 0, BASE_US);
	l.is_queue_shared = false;
	l.extra_us = 10 * BASE_US;
	run(5 * SECOND);
	assert_true(l.in_flight <= (20u << 20) / 4 + PIECE);
}

static void test_what_is_calm_is_learned_from_the_first_flushes(void **state)
{
	begin(1ull << 30, 0, 0, 0);
	run(SECOND);
	assert_in_range(l.rate.calm_us, BASE_US, 3 * BASE_US);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_99th_percentile_is_right_to_an_eighth),
		cmocka_unit_test(test_a_latency_of_a_class_of_its_own_is_exact),
		cmocka_unit_test(test_without_flushes_that_suffer_it_fills_the_link),
		cmocka_unit_test(test_flushes_stay_below_twice_their_calm_latency),
		cmocka_unit_test(test_a_slow_link_is_used_in_small_turns),
		cmocka_unit_test(test_it_begins_with_little_while_an_application_flushes),
		cmocka_unit_test(test_single_slow_flushes_do_not_stop_it),
		cmocka_unit_test(test_the_rate_falls_when_flushes_suffer_and_recovers),
		cmocka_unit_test(test_it_is_never_below_the_lowest_rate),
		cmocka_unit_test(test_flushes_that_suffer_decide),
		cmocka_unit_test(test_it_goes_on_where_less_does_not_help),
		cmocka_unit_test(test_what_other_work_does_is_not_taken_for_the_resyncs),
		cmocka_unit_test(test_what_is_calm_is_found_again_after_other_work),
		cmocka_unit_test(test_it_is_never_above_the_highest_rate),
		cmocka_unit_test(test_a_link_that_is_slower_than_the_lowest_rate_is_not_flooded),
		cmocka_unit_test(test_what_is_calm_is_learned_from_the_first_flushes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
