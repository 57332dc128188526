/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon gets SIGKILL at a random time. When the pool is opened again, it must have all
 * acknowledged bytes, and no bytes that were never sent. Each round has a seed: SYSTEM_ROUNDS is
 * the number of rounds, SYSTEM_SEED repeats one round.
 *
 * These tests check only the daemon's promise; the tests of softrnic (tests/vm) check the medium
 * after a power failure.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>

#include "base/clock.h"

#include "system/lib/check.h"
#include "system/rpmemd/peer.h"

#define ROUNDS   24
#define LANES    3
#define SLOTS    64 /* slots of a lane, which are written in turn */
#define SLOT     4096u
#define LANE_AT  (SLOTS * SLOT)
#define OPS_MAX  400
#define SHORT_NS 3000000ull /* the kill occurs within this time, or after an operation */

static struct peer peer;

/* xorshift64*: gives the same numbers on every machine. */
static uint64_t test_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dull;
}

static int teardown(void **state)
{
	peer_end(&peer);
	peer_folder_remove();
	return 0;
}

/* The content of a lane's slots: for each slot the number of the operation that wrote it, or 0 for
 * zeros. */
struct history {
	uint32_t acknowledged[SLOTS], begun[SLOTS];
};

struct worker {
	pthread_t thread;
	unsigned lane;
	uint32_t first, ops; /* number of the lane's first operation, and limit of its operations */
	struct history *history;
};

static void fill(uint8_t *slot, unsigned lane, uint32_t number)
{
	for (unsigned i = 0; i < SLOT / 8; i++) {
		uint64_t word = (uint64_t)lane << 56 | (uint64_t)number << 16 | i;

		memcpy(slot + i * 8, &word, 8);
	}
}

static uint64_t slot_at(unsigned lane, unsigned slot)
{
	return 8192 + lane * (uint64_t)LANE_AT + slot * (uint64_t)SLOT;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (uint32_t n = w->first; n < w->first + w->ops; n++) {
		unsigned slot = n % SLOTS;

		fill(peer.memory + slot_at(w->lane, slot), w->lane, n);
		w->history->begun[slot] = n;
		if (peer_persist(&peer, w->lane, slot_at(w->lane, slot), SLOT))
			return NULL;
		w->history->acknowledged[slot] = n;
	}
	return NULL;
}

/* Each word of 8 bytes must be written by the acknowledged operation, or by the operation that had
 * begun. */
static void check_slot(const uint8_t *got, unsigned lane, const struct history *h, unsigned slot)
{
	static uint8_t old[SLOT], new[SLOT];

	memset(old, 0, sizeof(old));
	if (h->acknowledged[slot])
		fill(old, lane, h->acknowledged[slot]);
	memcpy(new, old, sizeof(new));
	if (h->begun[slot])
		fill(new, lane, h->begun[slot]);
	for (unsigned i = 0; i < SLOT; i += 8)
		if (memcmp(got + i, old + i, 8) != 0 && memcmp(got + i, new + i, 8) != 0)
			fail_msg("lane %u slot %u byte %u: acknowledged %u, begun %u", lane, slot,
				 i, h->acknowledged[slot], h->begun[slot]);
}

/* Check in the part's file that each slot has its acknowledged content, or the content whose flush
 * was begun. */
static void check(struct history *histories)
{
	uint8_t *got = malloc(PEER_SIZE);
	int fd = open(peer_path("a.set.part"), O_RDONLY);

	assert_true(got && fd >= 0);
	assert_int_equal(pread(fd, got, PEER_SIZE, 0), PEER_SIZE);
	close(fd);
	for (unsigned lane = 0; lane < LANES; lane++)
		for (unsigned slot = 0; slot < SLOTS; slot++)
			check_slot(got + slot_at(lane, slot), lane, &histories[lane], slot);
	/* settle() writes the begun content again, so the next round begins with it. */
	for (unsigned lane = 0; lane < LANES; lane++)
		memcpy(histories[lane].acknowledged, histories[lane].begun,
		       sizeof(histories[lane].begun));
	free(got);
}

/* Write torn slots again, so that the next round begins with a known content. */
static void settle(const struct history *histories)
{
	for (unsigned lane = 0; lane < LANES; lane++)
		for (unsigned slot = 0; slot < SLOTS; slot++) {
			if (!histories[lane].begun[slot])
				continue;
			fill(peer.memory + slot_at(lane, slot), lane, histories[lane].begun[slot]);
			assert_int_equal(peer_persist(&peer, lane, slot_at(lane, slot), SLOT), 0);
		}
}

static void open_lanes(void)
{
	for (unsigned lane = 0; lane < LANES; lane++)
		assert_int_equal(peer_lane_up(&peer, lane), 0);
}

static void begin(bool create, const char *const options[])
{
	unsigned status;

	peer_start(&peer, options);
	status = create ? peer_create(&peer, "a.set", PEER_SIZE, LANES)
			: peer_open(&peer, "a.set", PEER_SIZE, LANES);
	if (status)
		fail_msg("status %u: %s", status, peer.answer.text);
}

static void one_round(uint64_t *seed, struct history *histories, uint32_t first)
{
	struct worker workers[LANES];
	uint64_t until;

	for (unsigned i = 0; i < LANES; i++) {
		workers[i] = (struct worker){.lane = i,
					     .first = first,
					     .ops = 1 + test_random(seed) % OPS_MAX,
					     .history = &histories[i]};
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	until = clock_now_ns() + test_random(seed) % SHORT_NS;
	while (clock_now_ns() < until)
		;
	kill(peer.pid, SIGKILL);
	peer_wait(&peer);
	for (unsigned i = 0; i < LANES; i++)
		pthread_join(workers[i].thread, NULL);
	peer_end(&peer);
}

static void rounds_of(const char *const options[], unsigned rounds)
{
	static struct history histories[LANES];
	unsigned dflt = (unsigned)clock_now_ns();
	uint64_t seed = env_or("SYSTEM_SEED", dflt ? dflt : 1);

	print_message("SYSTEM_SEED=%lu\n", (unsigned long)seed);
	memset(histories, 0, sizeof(histories));
	peer_make_set("a.set", PEER_SIZE);
	begin(true, options);
	open_lanes();
	for (unsigned round = 0; round < rounds; round++) {
		one_round(&seed, histories, 1 + round * OPS_MAX);
		check(histories);
		begin(false, options);
		open_lanes();
		settle(histories);
	}
}

static void nothing_acknowledged_is_missing_after_a_kill(void **state)
{
	rounds_of(NULL, env_or("SYSTEM_ROUNDS", ROUNDS));
}

static void nor_with_the_general_method(void **state)
{
	static const char *const options[] = {"--persist-native=no", NULL};

	rounds_of(options, env_or("SYSTEM_ROUNDS", ROUNDS));
}

/* The daemon is killed while a session begins. The pool can then be opened, or created again. */
static void a_kill_while_a_pool_is_made_leaves_one_that_can_be_made(void **state)
{
	unsigned rounds = env_or("SYSTEM_ROUNDS", ROUNDS), dflt = (unsigned)clock_now_ns();
	uint64_t seed = env_or("SYSTEM_SEED", dflt ? dflt : 1);
	struct wire_pool_request req = {
		.pool_size = PEER_SIZE, .lanes = 1, .method = WIRE_METHOD_NATIVE, .name = "a.set"};
	uint8_t buf[WIRE_BODY_MAX];

	print_message("SYSTEM_SEED=%lu\n", (unsigned long)seed);
	peer_make_set("a.set", PEER_SIZE);
	for (unsigned round = 0; round < rounds; round++) {
		uint64_t until;

		peer_start(&peer, NULL);
		assert_int_equal(wire_stream_send(&peer.stream, WIRE_CREATE, buf,
						  wire_pool_request_encode(&req, buf), UINT64_MAX),
				 0);
		until = clock_now_ns() + test_random(&seed) % SHORT_NS;
		while (clock_now_ns() < until)
			;
		kill(peer.pid, SIGKILL);
		peer_wait(&peer);
		peer_end(&peer);

		/* remove the pool that is left, as an operator would */
		if (!access(peer_path("a.set.part"), F_OK)) {
			peer_start(&peer, NULL);
			if (peer_open(&peer, "a.set", PEER_SIZE, 1))
				fail_msg("status %u: %s", peer.answer.status, peer.answer.text);
			peer_end(&peer);
			assert_int_equal(unlink(peer_path("a.set.part")), 0);
		}
		begin(true, NULL);
		assert_int_equal(peer_close(&peer, WIRE_CLOSE_REMOVE), WIRE_OK);
		peer_end(&peer);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_teardown(name, teardown)
		TEST(nothing_acknowledged_is_missing_after_a_kill),
		TEST(nor_with_the_general_method),
		TEST(a_kill_while_a_pool_is_made_leaves_one_that_can_be_made),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
