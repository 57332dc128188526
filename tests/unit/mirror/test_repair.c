/* SPDX-License-Identifier: BSD-3-Clause */
/* A member becomes equal to the primary's copy: after an absence, after a crash, and while flushes
 * go on. */
#include "mirror/repair_impl.h"

#include "mapped.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PATIENCE_MS = 30000, BLOCK = 4096 };

static int flush_range(size_t offset, size_t len)
{
	struct rpmirror_range range = {addr + offset, len};

	return rpmirror_flush(m, &range, 1, 0, NULL);
}

static void store(size_t offset, size_t len, int value)
{
	memset(addr + offset, value, len);
	assert_int_equal(flush_range(offset, len), 0);
}

/* Wait until exactly the members of the mask are in-sync. */
static void await_insync(unsigned mask)
{
	struct timespec pause = {0, 5000000};
	struct rpmirror_state st = {.size = sizeof(st)};

	for (int waited = 0; waited < PATIENCE_MS / 5; waited++) {
		assert_int_equal(rpmirror_get_state(m, &st), 0);
		if (st.insync_mask == mask)
			return;
		nanosleep(&pause, NULL);
	}
	fail_msg("in-sync members are %#x, not %#x: %s / %s", st.insync_mask, mask,
		 st.members[1].reason, st.members[2].reason);
}

static void await_asked(unsigned slot, unsigned type, unsigned count)
{
	struct timespec pause = {0, 5000000};

	for (int waited = 0; standin_asked(s, slot, type) < count; waited += 5) {
		assert_true(waited < PATIENCE_MS);
		nanosleep(&pause, NULL);
	}
}

static struct resync_progress progress_of(unsigned slot)
{
	struct resync_progress p = {0};

	pthread_mutex_lock(&m->lock);
	if (m->repair->members[slot])
		resync_get_progress(&m->repair->members[slot]->rs, &p);
	pthread_mutex_unlock(&m->lock);
	return p;
}

static void test_a_member_that_returns_gets_what_differs(void **state)
{
	store(0, BLOCK, 1);
	standin_cut(s, 2);
	store(3 * BLOCK, 2 * BLOCK, 2);
	store(2 << 20, 8, 3);
	await_insync(3);
	standin_mend(s, 2);
	await_insync(7);
	assert_memory_equal(standin_copy(s, 2), standin_copy(s, 0), STANDIN_SIZE);
	assert_memory_equal(standin_copy(s, 2), addr, STANDIN_SIZE);
	/*
	 * Only two kinds of blocks may be copied: blocks flushed while the member was away, and
	 * blocks of flushes that were under way when it was lost.
	 */
	assert_true(progress_of(2).copied <= 4 * BLOCK);
	assert_true(standin_asked(s, 2, MESSAGE_RESYNC_BEGIN) > 0);
	assert_true(standin_asked(s, 2, MESSAGE_RESYNC_END) > 0);
	store(8 * BLOCK, BLOCK, 4);
	assert_flushed(7, 8 * BLOCK, BLOCK);
}

#define BAD_FROM (STANDIN_SIZE - 16 * BLOCK)

/* The data that were flushed while the member was away belong to pages of the member's file that
 * cannot be written. */
static void return_with_bad_pages(int error)
{
	store(0, BLOCK, 1);
	standin_cut(s, 2);
	store(BAD_FROM + BLOCK, 2 * BLOCK, 2);
	store(3 * BLOCK, BLOCK, 3);
	await_insync(3);
	standin_set_bad(s, 2, BAD_FROM, error);
	standin_mend(s, 2);
}

static void test_pages_that_cannot_be_stored_into_are_cleared_first(void **state)
{
	return_with_bad_pages(0);
	await_insync(7);
	assert_true(standin_asked(s, 2, MESSAGE_CLEAR_ERRORS) > 0);
	assert_memory_equal(standin_copy(s, 2) + BAD_FROM, addr + BAD_FROM, 16 * BLOCK);
	assert_memory_equal(standin_copy(s, 2), addr, STANDIN_SIZE);
	store(BAD_FROM + BLOCK, BLOCK, 4);
	assert_flushed(7, BAD_FROM + BLOCK, BLOCK);
}

static void await_reason(const char *words)
{
	struct rpmirror_state st = {.size = sizeof(st)};

	for (int waited = 0; !strstr(st.members[2].reason, words); waited += 5) {
		const struct timespec pause = {0, 5000000};

		assert_true(waited < PATIENCE_MS);
		nanosleep(&pause, NULL);
		assert_int_equal(rpmirror_get_state(m, &st), 0);
	}
	assert_int_equal(st.insync_mask, 3);
}

/* The member is excluded, and reports the reason and the remedy. */
static void test_pages_that_cannot_be_cleared_keep_a_member_out(void **state)
{
	char words[128];

	return_with_bad_pages(EIO);
	await_asked(2, MESSAGE_CLEAR_ERRORS, 1);
	snprintf(words, sizeof(words), "block at %u of its copy cannot be overwritten (errno 5)",
		 BAD_FROM);
	await_reason(words);
	await_reason("'rpmirror member replace'");
	store(5 * BLOCK, BLOCK, 5);
	standin_set_bad(s, 2, BAD_FROM, ENOSPC); /* no copy has to be replaced after this error */
	await_reason("No space left on device");
	standin_set_bad(s, 2, BAD_FROM, 0);
	await_insync(7);
	assert_memory_equal(standin_copy(s, 2) + BAD_FROM, addr + BAD_FROM, 16 * BLOCK);
	assert_memory_equal(standin_copy(s, 2), addr, STANDIN_SIZE);
}

static void restart(void)
{
	assert_int_equal(rpmirror_unmap(&m), 0);
	map_set();
}

/*
 * Three blocks were flushed before the restart, one after it. The resync sends and compares no
 * other block.
 */
static void test_what_a_member_lacks_is_known_after_a_restart(void **state)
{
	standin_cut(s, 2);
	store(5 * BLOCK, BLOCK, 1);
	store(9 * BLOCK, 8, 2);
	store((4 << 20) + BLOCK, BLOCK, 3);
	await_insync(3);
	restart();
	store(7 * BLOCK, 8, 4);
	standin_mend(s, 2);
	await_insync(7);
	assert_memory_equal(standin_copy(s, 2), addr, STANDIN_SIZE);
	assert_int_equal(progress_of(2).copied, 4 * BLOCK);
	assert_int_equal(progress_of(2).equal, 0);
	/* the member is in-sync, so no block is recorded as missing on it */
	assert_int_equal(m->counted, 0);
}

/* The bitmap belongs to another epoch and does not show what the member lacks, so the primary
 * compares all blocks. */
static void test_a_bitmap_that_counts_from_another_epoch_is_not_used(void **state)
{
	standin_cut(s, 2);
	store(5 * BLOCK, BLOCK, 1);
	await_insync(3);
	restart();
	standin_forget_epoch(s, 2);
	standin_mend(s, 2);
	await_insync(7);
	assert_memory_equal(standin_copy(s, 2), addr, STANDIN_SIZE);
	assert_int_equal(progress_of(2).copied, BLOCK);
	assert_int_equal(progress_of(2).equal, STANDIN_SIZE - BLOCK);
}

/* The restart happens in the middle of a resync that compares all blocks. */
static void test_a_resync_goes_on_after_a_restart(void **state)
{
	standin_cut(s, 2);
	memset(addr, 7, 256 * BLOCK);
	assert_int_equal(flush_range(0, 256 * BLOCK), 0);
	await_insync(3);
	restart();
	standin_forget_epoch(s, 2);
	standin_mend(s, 2);
	await_asked(2, MESSAGE_RESYNC_BEGIN, 1);
	standin_cut(s, 2);
	restart();
	store(300 * BLOCK, 8, 8);
	standin_mend(s, 2);
	await_insync(7);
	assert_memory_equal(standin_copy(s, 2), addr, STANDIN_SIZE);
}

/* After a planned end there are no records, so no block is compared or read. */
static void test_after_a_clean_end_nothing_is_compared(void **state)
{
	store(5 * BLOCK, BLOCK, 1);
	restart();
	assert_false(m->repair->has_thread);
	for (unsigned slot = 0; slot < 3; slot++)
		assert_int_equal(standin_asked(s, slot, MESSAGE_GET_RANGES), 0);
	store(6 * BLOCK, BLOCK, 2);
	assert_flushed(7, 5 * BLOCK, 2 * BLOCK);
}

static int setup_records(void **state)
{
	struct mirror_range range = {16 * BLOCK, 4 * BLOCK};

	setup(state);
	standin_set_unclean(s);
	standin_set_records(s, 1, range);
	memset((uint8_t *)standin_copy(s, 1) + 17 * BLOCK, 9, BLOCK);
	map_set();
	return 0;
}

/* The members' records name the ranges that an earlier primary may have written. */
static void test_copies_are_equal_before_the_application_reads(void **state)
{
	for (unsigned slot = 1; slot < 3; slot++)
		assert_memory_equal(standin_copy(s, slot), addr, STANDIN_SIZE);
	assert_int_equal(addr[17 * BLOCK], 0);
	/* On this host the hot slots serve as the record. The process that maps the copy writes
	 * them itself. */
	assert_int_equal(standin_asked(s, 0, MESSAGE_RECORD_RANGES), 0);
	assert_true(standin_asked(s, 1, MESSAGE_RECORD_RANGES) > 0);
	assert_true(standin_asked(s, 2, MESSAGE_RECORD_RANGES) > 0);
	assert_true(progress_of(1).copied <= BLOCK);
	assert_int_equal(progress_of(2).copied, 0);
}

static int setup_many_records(void **state)
{
	setup(state);
	standin_set_unclean(s);
	standin_set_records(s, 1, (struct mirror_range){0, STANDIN_SIZE});
	memset((uint8_t *)standin_copy(s, 1) + 17 * BLOCK, 9, BLOCK);
	map_set();
	return 0;
}

/*
 * There are more records than this host's table has slots. So this host's daemon records that all
 * bytes may differ.
 */
static void test_records_that_do_not_fit_are_all_of_the_file(void **state)
{
	assert_memory_equal(standin_copy(s, 1), addr, STANDIN_SIZE);
	assert_true(standin_asked(s, 0, MESSAGE_RECORD_RANGES) > 0);
	/* the slots were cleared when the primary began to serve */
	assert_int_equal(m->hot.meta.hot_count, 0);
}

struct flusher {
	pthread_t thread;
	unsigned id;
	bool stop;
	uint64_t flushes;
};

/* Each thread flushes its own words, in blocks that all threads share. */
static void *flush_words(void *arg)
{
	struct flusher *f = arg;
	uint64_t random = 0x9e3779b97f4a7c15ull * (f->id + 1);

	while (!__atomic_load_n(&f->stop, __ATOMIC_RELAXED)) {
		struct rpmirror_range range;
		size_t at;

		random ^= random << 13, random ^= random >> 7, random ^= random << 17;
		at = random % (STANDIN_SIZE / 64) * 64 + f->id * 8;
		range = (struct rpmirror_range){addr + at, 8};
		memcpy(addr + at, &random, 8);
		if (rpmirror_flush(m, &range, 1, 0, NULL))
			return (void *)1;
		f->flushes++;
	}
	return NULL;
}

static void test_members_return_while_flushes_go_on(void **state)
{
	struct flusher flushers[2] = {{.id = 0}, {.id = 1}};

	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(
			pthread_create(&flushers[i].thread, NULL, flush_words, &flushers[i]), 0);
	for (unsigned round = 0; round < 3; round++) {
		unsigned slot = 1 + round % 2;

		standin_cut(s, slot);
		await_insync(7 & ~(1u << slot));
		standin_mend(s, slot);
		await_insync(7);
	}
	for (unsigned i = 0; i < 2; i++) {
		void *failed;

		__atomic_store_n(&flushers[i].stop, true, __ATOMIC_RELAXED);
		assert_int_equal(pthread_join(flushers[i].thread, &failed), 0);
		assert_null(failed);
		assert_true(flushers[i].flushes > 0);
	}
	for (unsigned slot = 0; slot < 3; slot++)
		assert_memory_equal(standin_copy(s, slot), addr, STANDIN_SIZE);
}

/* Cut the resync again and again, at random moments. */
static void test_a_resync_that_is_cut_off_goes_on(void **state)
{
	struct timespec pause = {0, 0};

	standin_cut(s, 1);
	for (size_t at = 0; at < STANDIN_SIZE; at += 2 * BLOCK)
		memset(addr + at, (int)(at >> 12), BLOCK);
	assert_int_equal(flush_range(0, STANDIN_SIZE), 0);
	await_insync(5);
	for (unsigned round = 1; round <= 4; round++) {
		standin_mend(s, 1);
		pause.tv_nsec = (long)round * 3000000;
		nanosleep(&pause, NULL);
		standin_cut(s, 1);
		assert_int_equal(flush_range(0, 8), 0);
	}
	standin_mend(s, 1);
	await_insync(7);
	assert_memory_equal(standin_copy(s, 1), addr, STANDIN_SIZE);
}

static void test_two_members_return_at_once(void **state)
{
	standin_cut(s, 1);
	standin_cut(s, 2);
	store(0, 256 * BLOCK, 5);
	await_insync(1);
	standin_mend(s, 1);
	standin_mend(s, 2);
	await_insync(7);
	for (unsigned slot = 1; slot < 3; slot++)
		assert_memory_equal(standin_copy(s, slot), addr, STANDIN_SIZE);
}

static int setup_two_copies(void **state)
{
	setup(state);
	standin_set_min_copies(s, 2);
	map_set();
	return 0;
}

static uint64_t start_flush(size_t offset, int value)
{
	struct rpmirror_range range = {addr + offset, BLOCK};
	uint64_t ticket = 0;

	memset(addr + offset, value, BLOCK);
	assert_int_equal(rpmirror_flush_start(m, &range, 1, 0, &ticket), 0);
	return ticket;
}

/*
 * Flushes wait for a lost copy that cannot be excluded. Meanwhile a third copy joins. Until these
 * flushes are acknowledged, the third copy records the parts of them that its resync carried.
 */
static void test_a_third_copy_takes_the_place_of_the_only_other_one(void **state)
{
	struct rpmirror_result res = {0};
	unsigned retired;
	uint64_t ticket;

	standin_cut(s, 2);
	store(0, BLOCK, 1);
	await_insync(3);
	retired = standin_asked(s, 2, MESSAGE_RETIRE);
	standin_cut(s, 1);
	ticket = start_flush(3 * BLOCK, 2);
	assert_int_equal(rpmirror_flush_wait(m, ticket, 20, NULL), RPMIRROR_E_AGAIN);
	assert_int_equal(standin_asked(s, 2, MESSAGE_RECORD_RANGES), 0);
	standin_mend(s, 2);
	assert_int_equal(rpmirror_flush_wait(m, ticket, PATIENCE_MS, &res), 0);
	assert_int_equal(res.durable_mask, 5);
	assert_flushed(5, 3 * BLOCK, BLOCK);
	assert_true(standin_asked(s, 2, MESSAGE_RECORD_RANGES) > 0);
	await_asked(2, MESSAGE_RETIRE, retired + 1);
	standin_mend(s, 1);
	await_insync(7);
	assert_memory_equal(standin_copy(s, 1), addr, STANDIN_SIZE);
}

static void *unmap_set(void *arg)
{
	struct rpmirror *set = m;

	return rpmirror_unmap(&set) ? arg : NULL;
}

/* A member that returns while the set is being unmapped still gets the data that it missed. */
static void test_a_flush_under_way_ends_before_the_set_is_given_up(void **state)
{
	pthread_t thread;
	void *failed;
	uint8_t wanted[BLOCK];

	standin_cut(s, 2);
	store(0, BLOCK, 1);
	await_insync(3);
	standin_cut(s, 1);
	start_flush(5 * BLOCK, 2);
	memset(wanted, 2, BLOCK);
	assert_int_equal(pthread_create(&thread, NULL, unmap_set, &failed), 0);
	for (bool begun = false; !begun;) {
		pthread_mutex_lock(&m->lock);
		begun = m->primary.state == PRIMARY_QUIESCING;
		pthread_mutex_unlock(&m->lock);
	}
	standin_mend(s, 1);
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	m = NULL;
	assert_memory_equal(standin_copy(s, 1) + 5 * BLOCK, wanted, BLOCK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		MAPPED(test_a_member_that_returns_gets_what_differs),
		MAPPED(test_pages_that_cannot_be_stored_into_are_cleared_first),
		MAPPED(test_pages_that_cannot_be_cleared_keep_a_member_out),
		MAPPED(test_what_a_member_lacks_is_known_after_a_restart),
		MAPPED(test_a_bitmap_that_counts_from_another_epoch_is_not_used),
		MAPPED(test_a_resync_goes_on_after_a_restart),
		MAPPED(test_after_a_clean_end_nothing_is_compared),
		cmocka_unit_test_setup_teardown(test_copies_are_equal_before_the_application_reads,
						setup_records, teardown),
		cmocka_unit_test_setup_teardown(test_records_that_do_not_fit_are_all_of_the_file,
						setup_many_records, teardown),
		MAPPED(test_members_return_while_flushes_go_on),
		MAPPED(test_a_resync_that_is_cut_off_goes_on),
		MAPPED(test_two_members_return_at_once),
		cmocka_unit_test_setup_teardown(
			test_a_third_copy_takes_the_place_of_the_only_other_one, setup_two_copies,
			teardown),
		cmocka_unit_test_setup_teardown(
			test_a_flush_under_way_ends_before_the_set_is_given_up, setup_two_copies,
			teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
