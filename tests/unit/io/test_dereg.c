/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_dereg.c -- a region is deregistered while a Write to it is placed, again and again. After
 * the call has returned, no byte of the region changes. SOFTRNIC_SHM chooses rings in shared memory
 * or TCP.
 *
 * $SYSTEM_RACES: the number of races. $SYSTEM_SEED: the seed.
 */
#include "ends.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define LEN      32768u /* one FPDU, so that the connection still works after most races */
#define WORDS    (LEN / 8)
#define POISON   0x6b6b6b6b6b6b6b6bull
#define RACES    4000u
#define DURING   100u /* at least one of this many races must happen during the placement */
#define EARLY    32u  /* one of this many races deregisters before any byte is visible */
#define HALT     256u /* after one of this many races the test posts nothing for some time */
#define PATIENCE 20000u
#define SLOW_NS  (60 * NSEC_PER_SEC) /* half of the test's time limit */

static struct {
	struct ends ends;
	bool open;
	struct ibv_mr *source;
	uint64_t *sent;
	_Atomic uint64_t *words; /* the region's memory; atomic, because the peer writes to it */
	uint64_t seed, next;
	unsigned before, during, behind, connections;
	/* poster: posts, while the main thread waits for the first byte in memory */
	pthread_t poster;
	atomic_uint asked, posted;
	atomic_bool ends_now, failed;
	uint32_t rkey;
} race;

/* The peer may be writing to this memory: hide the race from ThreadSanitizer. */
__attribute__((no_sanitize("thread"))) static uint64_t word(size_t at)
{
	return race.words[at];
}

static unsigned env_or(const char *name, unsigned dflt)
{
	const char *value = getenv(name);

	return value ? (unsigned)strtoul(value, NULL, 0) : dflt;
}

/* --- the connection ------------------------------------------------------------------------- */

static uint64_t shm_bytes(void)
{
	const char *const *names;
	uint64_t values[64];
	int n = softrnic_qp_counters(race.ends.client.id->qp, &names, values, 64);

	for (int i = 0; i < n; i++)
		if (!strcmp(names[i], "shm_tx_bytes"))
			return values[i];
	return 0;
}

static int post_write(uint32_t rkey, uint32_t len)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)race.sent, .length = len, .lkey = race.source->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {.remote_addr = (uintptr_t)race.words, .rkey = rkey}};
	struct ibv_send_wr *bad;

	return ibv_post_send(race.ends.client.id->qp, &wr, &bad);
}

/* Poll without a pause at the client, while the engine's thread places the bytes at the server. */
static enum ibv_wc_status wait_written(void)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(race.ends.client.cq, 1, &wc) == 0)
		;
	return wc.status;
}

static struct ibv_mr *region(void)
{
	struct ibv_mr *mr = softrnic_reg_mr(race.ends.server.pd, (void *)race.words, LEN,
					    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

	assert_non_null(mr);
	return mr;
}

static void go_over_to_rings(void)
{
	struct ibv_mr *mr;

	if (atoi(getenv("SOFTRNIC_SHM")) == 0)
		return;
	mr = region();
	for (unsigned i = 0; i < PATIENCE && shm_bytes() == 0; i++) {
		assert_int_equal(post_write(mr->rkey, 8), 0);
		assert_int_equal(wait_written(), IBV_WC_SUCCESS);
		usleep(100);
	}
	assert_true(shm_bytes() > 0);
	/* No other store may change the word until the last Write is placed. */
	race.words[0] = 0;
	race.sent[0] = ++race.next;
	assert_int_equal(post_write(mr->rkey, 8), 0);
	assert_int_equal(wait_written(), IBV_WC_SUCCESS);
	for (unsigned i = 0; i < PATIENCE && word(0) != race.next; i++)
		usleep(1000);
	assert_int_equal(word(0), race.next);
	assert_int_equal(softrnic_dereg_mr(mr), 0);
}

static void connect_ends(void)
{
	ends_open(&race.ends);
	assert_int_equal(softrnic_listen(race.ends.listener.id, 4), 0);
	assert_int_equal(softrnic_connect(race.ends.client.id, NULL), 0);
	ends_establish(&race.ends);
	race.source = softrnic_reg_mr(race.ends.client.pd, race.sent, LEN, 0);
	assert_non_null(race.source);
	race.open = true;
	race.connections++;
	go_over_to_rings();
}

static void disconnect_ends(void)
{
	assert_int_equal(softrnic_dereg_mr(race.source), 0);
	ends_close(&race.ends);
	race.open = false;
}

static void *post_all_the_time(void *arg)
{
	while (!atomic_load(&race.ends_now)) {
		unsigned asked = atomic_load(&race.asked);

		if (asked == atomic_load(&race.posted)) {
			sched_yield();
			continue;
		}
		if (post_write(race.rkey, LEN))
			atomic_store(&race.failed, true);
		atomic_store(&race.posted, asked);
	}
	return NULL;
}

static void ask_for_write(uint32_t rkey)
{
	race.rkey = rkey;
	atomic_fetch_add(&race.asked, 1);
}

static void wait_posted(void)
{
	while (atomic_load(&race.posted) != atomic_load(&race.asked))
		sched_yield();
	assert_false(atomic_load(&race.failed));
}

/* --- one race ------------------------------------------------------------------------------- */

/* Most races begin when some word of the Write is placed, usually one of the first words. */
static void wait_for_some(void)
{
	size_t at = (test_random(&race.seed) % WORDS) >> (test_random(&race.seed) % 13);
	unsigned spins = (unsigned)(test_random(&race.seed) % 20000);

	if (race.next % EARLY == 0) {
		while (spins-- > 0)
			atomic_signal_fence(memory_order_seq_cst);
		return;
	}
	/* If the thread that places bytes is not running, let it run. */
	for (uint64_t i = 0; word(at) != race.next; i++) {
		if (i % 1000000 == 999999)
			usleep(1000);
		assert_true(i < 10000ull * 1000000);
	}
}

static unsigned count_written(void)
{
	unsigned n = 0;

	for (size_t i = 0; i < WORDS; i++)
		n += word(i) == race.next;
	return n;
}

static void expect_poison(void)
{
	for (size_t i = 0; i < WORDS; i++)
		if (word(i) != POISON)
			fail_msg("word %zu was written after the deregistration", i);
}

static void poison(void)
{
	for (size_t i = 0; i < WORDS; i++)
		race.words[i] = POISON;
}

/* A Write to a region that no longer exists must fail. */
static void expect_refused(void)
{
	end_expect(&race.ends.server, RDMA_CM_EVENT_DISCONNECTED);
	expect_poison();
	disconnect_ends();
}

static void one_race(void)
{
	struct ibv_mr *mr;
	unsigned seen, placed;

	if (!race.open)
		connect_ends();
	mr = region();
	race.next++;
	for (size_t i = 0; i < WORDS; i++)
		race.sent[i] = race.next;
	ask_for_write(mr->rkey);
	wait_for_some();
	seen = word(WORDS - 1) == race.next;
	assert_int_equal(softrnic_dereg_mr(mr), 0);
	placed = count_written();
	poison();
	wait_posted();
	race.before += placed == 0;
	race.behind += seen;
	race.during += placed > 0 && !seen;
	if (placed < WORDS) {
		expect_refused();
		return;
	}
	assert_int_equal(wait_written(), IBV_WC_SUCCESS);
	if (test_random(&race.seed) % HALT == 0)
		usleep(500);
	expect_poison();
}

/*
 * A race is hit if one CPU places bytes while another one deregisters. On a busy machine it can
 * happen that the two threads do not run at the same time for thousands of races, so the test goes
 * on for SLOW_NS until it has enough hits. After SLOW_NS a quarter of the usual number of races is
 * enough.
 */
static bool goes_on(unsigned done, unsigned races, unsigned least, uint64_t begun)
{
	bool is_slow = clock_now_ns() - begun >= SLOW_NS;

	if (race.during < races / DURING)
		return !is_slow || done < least;
	return done < (is_slow ? least : races);
}

static void nothing_is_placed_when_a_deregistration_has_returned(void **state)
{
	unsigned races = env_or("SYSTEM_RACES", RACES);
	unsigned least = getenv("SYSTEM_RACES") ? races : races / 4;
	uint64_t begun = clock_now_ns();

	race.seed = env_or("SYSTEM_SEED", 10);
	race.sent = malloc(LEN);
	race.words = aligned_alloc(64, LEN);
	assert_true(race.sent && race.words);
	poison();
	assert_int_equal(pthread_create(&race.poster, NULL, post_all_the_time, NULL), 0);
	for (unsigned i = 0; goes_on(i, races, least, begun); i++)
		one_race();
	atomic_store(&race.ends_now, true);
	pthread_join(race.poster, NULL);
	expect_poison();
	if (race.open)
		disconnect_ends();
	printf("%u races: the deregistration came before the placing in %u, while it was under way in "
	       "%u, behind it in %u; %u connections\n",
	       race.before + race.during + race.behind, race.before, race.during, race.behind,
	       race.connections);
	assert_true(race.before > 0);
	assert_true(race.during >= races / DURING);
	free(race.sent);
	free((void *)race.words);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_placed_when_a_deregistration_has_returned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
