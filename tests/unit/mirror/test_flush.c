/* SPDX-License-Identifier: BSD-3-Clause */
/* Flushes without failures; the tests check the copies of the members. */
#include "mirror/set.h"

#include "mapped.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <librpma.h>

#include "base/clock.h"
#include "lib/medium.h"
#include "mirror/wire/message.h"

enum { THREADS = 4, FLUSHES = 200, MANY = 1000, SHARERS = 8, SHARED_FLUSHES = 20, SYNC_US = 2000 };
enum { COMPARED = 20 };

static void test_a_flush_is_on_every_copy(void **state)
{
	struct rpmirror_range range = {addr + 100, 64};
	struct rpmirror_result res;

	memset(addr + 100, 0x5a, 64);
	assert_int_equal(rpmirror_flush(m, &range, 1, 0, &res), 0);
	assert_int_equal(res.seq, 1);
	assert_int_equal(res.durable_mask, 7);
	assert_int_equal(res.failed_mask, 0);
	assert_int_equal(res.flags, 0);
	assert_flushed(7, 100, 64);
}

static void test_what_is_not_flushed_reaches_no_copy(void **state)
{
	static const uint8_t zeros[64];
	struct rpmirror_range range = {addr + 3, 7};

	memset(addr, 1, 64);
	assert_int_equal(rpmirror_flush(m, &range, 1, 0, NULL), 0);
	assert_flushed(7, 3, 7);
	for (unsigned slot = 0; slot < 3; slot++) {
		assert_memory_equal(standin_copy(s, slot), zeros, 3);
		assert_memory_equal(standin_copy(s, slot) + 10, zeros, 54);
	}
}

static void test_nothing_to_flush_is_no_error(void **state)
{
	struct rpmirror_range empty[2] = {{addr, 0}, {NULL, 0}};
	struct rpmirror_result res;

	assert_int_equal(rpmirror_flush(m, NULL, 0, 0, &res), 0);
	assert_int_equal(res.seq, 0);
	assert_int_equal(rpmirror_flush(m, empty, 2, 0, &res), 0);
	assert_int_equal(res.seq, 0);
}

static void test_wrong_ranges_change_nothing(void **state)
{
	static const uint8_t zeros[64];
	struct rpmirror_range v[2] = {{addr, 64}, {addr + STANDIN_SIZE - 8, 9}};
	struct rpmirror_state st = {.size = sizeof(st)};

	memset(addr, 1, 64);
	assert_int_equal(rpmirror_flush(m, v, 2, 0, NULL), RPMIRROR_E_INVAL);
	v[1].addr = addr - 1;
	v[1].len = 1;
	assert_int_equal(rpmirror_flush(m, v, 2, 0, NULL), RPMIRROR_E_INVAL);
	v[1].addr = addr + 8;
	v[1].len = SIZE_MAX;
	assert_int_equal(rpmirror_flush(m, v, 2, 0, NULL), RPMIRROR_E_INVAL);
	assert_non_null(strstr(rpmirror_errormsg(), "not inside"));
	assert_int_equal(rpmirror_flush(m, v, 1, 1, NULL), RPMIRROR_E_INVAL);
	assert_int_equal(rpmirror_flush(NULL, v, 1, 0, NULL), RPMIRROR_E_INVAL);
	for (unsigned slot = 0; slot < 3; slot++)
		assert_memory_equal(standin_copy(s, slot), zeros, 64);
	assert_int_equal(rpmirror_get_state(m, &st), 0);
	assert_int_equal(st.flush_seq, 0);
}

static void test_ranges_of_all_sizes_and_places(void **state)
{
	static struct rpmirror_range v[MANY];
	static uint8_t expected[STANDIN_SIZE];
	unsigned seed = 1;

	for (size_t i = 0; i < STANDIN_SIZE; i++)
		addr[i] = (uint8_t)rand_r(&seed);
	for (unsigned i = 0; i < MANY; i++) {
		size_t at = (size_t)rand_r(&seed) % STANDIN_SIZE, n = (size_t)rand_r(&seed) % 200;

		v[i].len = n < STANDIN_SIZE - at ? n : STANDIN_SIZE - at;
		v[i].addr = addr + at;
		memcpy(expected + at, addr + at, v[i].len);
	}
	assert_int_equal(rpmirror_flush(m, v, MANY, 0, NULL), 0);
	for (unsigned slot = 0; slot < 3; slot++)
		assert_memory_equal(standin_copy(s, slot), expected, STANDIN_SIZE);
	assert_int_equal(rpmirror_sync(m, addr, STANDIN_SIZE), 0);
	assert_flushed(7, 0, STANDIN_SIZE);
}

/* A flush is sent in parts of 512 KiB. A part can end within a range, or lie completely within a
 * range. */
static void test_no_byte_beside_a_range_that_parts_cut_is_sent(void **state)
{
	static uint8_t expected[STANDIN_SIZE];
	struct rpmirror_range v[3] = {{addr + 5, 64},
				      {addr + (1 << 20) + 3, (1200 << 10) + 1},
				      {addr + STANDIN_SIZE - (700 << 10), 700 << 10}};
	unsigned seed = 2;

	for (size_t i = 0; i < STANDIN_SIZE; i++)
		addr[i] = (uint8_t)rand_r(&seed);
	for (unsigned i = 0; i < 3; i++)
		memcpy(expected + ((uint8_t *)v[i].addr - addr), v[i].addr, v[i].len);
	assert_int_equal(rpmirror_flush(m, v, 3, 0, NULL), 0);
	for (unsigned slot = 0; slot < 3; slot++)
		assert_memory_equal(standin_copy(s, slot), expected, STANDIN_SIZE);
}

/* A sync of the whole mapping sends the scattered pages that the application stored to. The pages
 * form more runs than one flush takes. Pages that were only read are not sent. */
static void test_a_sync_of_everything_sends_what_was_stored(void **state)
{
	uint8_t spoiled[8];

	standin_spoil(s, 1);
	memcpy(spoiled, standin_copy(s, 1), sizeof(spoiled));
	assert_memory_not_equal(spoiled, addr, sizeof(spoiled)); /* this call reads the page */
	for (size_t page = 1; page < STANDIN_SIZE / 4096; page += 3)
		memset(addr + page * 4096 + 100, (int)page, 300);
	assert_int_equal(rpmirror_sync(m, NULL, 0), 0);
	assert_flushed(7, 4096, STANDIN_SIZE - 4096);
	assert_memory_equal(standin_copy(s, 1), spoiled, sizeof(spoiled));
	assert_int_equal(rpmirror_sync(m, NULL, 1), RPMIRROR_E_INVAL);
}

static void test_tickets_are_waited_for_in_any_order(void **state)
{
	struct rpmirror_result res;
	uint64_t tickets[3];

	for (unsigned i = 0; i < 3; i++) {
		struct rpmirror_range range = {addr + 4096 * i, 100};

		memset(addr + 4096 * i, (int)i + 1, 100);
		assert_int_equal(rpmirror_flush_start(m, &range, 1, 0, &tickets[i]), 0);
		memset(addr + 4096 * i, 0xff, 100); /* the flush has copied the bytes by now */
	}
	for (unsigned i = 3; i--;) {
		assert_int_equal(rpmirror_flush_wait(m, tickets[i], -1, &res), 0);
		assert_int_equal(res.durable_mask, 7);
		for (unsigned slot = 0; slot < 3; slot++)
			assert_int_equal(standin_copy(s, slot)[4096 * i + 99], i + 1);
	}
	assert_int_equal(rpmirror_flush_wait(m, tickets[2] + 1, 0, &res), RPMIRROR_E_INVAL);
}

static void test_verified_is_what_every_medium_has(void **state)
{
	struct rpmirror_range v[2] = {{addr + 1000, 5000}, {addr + 100000, 300000}};
	struct rpmirror_result res;
	int rc;

	memset(addr, 0x77, 400000);
	rc = rpmirror_flush_verify(m, v, 2, &res);
	if (rc == RPMIRROR_E_NOSUPP)
		skip(); /* the test's folder is on tmpfs */
	assert_int_equal(rc, 0);
	assert_int_equal(res.durable_mask, 7);
	assert_flushed(7, 1000, 5000);
}

static bool spoil_stops;
static unsigned spoiled; /* mask of members whose copies are spoiled */

static void *spoil(void *arg)
{
	while (!__atomic_load_n(&spoil_stops, __ATOMIC_RELAXED))
		for (unsigned slot = 1; slot < 3; slot++)
			if (spoiled & 1u << slot)
				standin_spoil(s, slot);
	return NULL;
}

/*
 * Flush and verify with spoiled copies, until the result names each of them.
 */
static int verify_spoiled(unsigned mask, struct rpmirror_result *res)
{
	/* A flushed range that is compared several times. Each comparison writes the spoiled bytes
	 * back, so on a busy disk a call with hundreds of ranges takes minutes. */
	struct rpmirror_range v[COMPARED];
	pthread_t thread;
	int rc;

	for (unsigned i = 0; i < COMPARED; i++)
		v[i] = (struct rpmirror_range){addr, 64};
	spoiled = mask;
	spoil_stops = false;
	assert_int_equal(pthread_create(&thread, NULL, spoil, NULL), 0);
	do
		rc = rpmirror_flush_verify(m, v, COMPARED, res);
	while (!rc || rc == RPMIRROR_E_COPIES ||
	       (rc == RPMIRROR_E_VERIFY && (res->failed_mask & mask) != mask));
	__atomic_store_n(&spoil_stops, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	return rc;
}

static void test_a_copy_that_differs_is_named_and_excluded(void **state)
{
	struct rpmirror_result res;
	int rc = verify_spoiled(4, &res);

	if (rc == RPMIRROR_E_NOSUPP)
		skip();
	assert_int_equal(rc, RPMIRROR_E_VERIFY);
	assert_int_equal(res.failed_mask, 4);
	assert_int_equal(res.durable_mask, 3);
	assert_non_null(strstr(rpmirror_errormsg(), "m2"));
	assert_non_null(strstr(rpmirror_errormsg(), "; excluded"));
}

/* If two copies differ, the error text names both. */
static void test_what_cannot_be_excluded_is_not_called_so(void **state)
{
	struct rpmirror_result res;
	int rc;

	standin_set_min_copies(s, 3);
	standin_set_blocked_ms(s, 300);
	map_set();
	rc = verify_spoiled(6, &res);
	if (rc == RPMIRROR_E_NOSUPP)
		skip();
	assert_int_equal(rc, RPMIRROR_E_VERIFY);
	assert_non_null(strstr(rpmirror_errormsg(), "m1 ("));
	assert_non_null(strstr(rpmirror_errormsg(), "m2 ("));
	assert_non_null(strstr(rpmirror_errormsg(), "not excluded, because "));
}

/* Each thread counts in its own word. All words are in one range that every thread flushes. */
static void *count_up(void *arg)
{
	uint64_t *words = (uint64_t *)(void *)addr, *own = words + (uintptr_t)arg;
	struct rpmirror_range range = {addr, THREADS * 8};

	for (uint64_t i = 1; i <= FLUSHES; i++) {
		__atomic_store_n(own, i, __ATOMIC_RELEASE);
		if (rpmirror_flush(m, &range, 1, 0, NULL))
			return (void *)"a flush failed";
		for (unsigned slot = 0; slot < 3; slot++) {
			const uint64_t *copy = (const void *)standin_copy(s, slot);

			/*
			 * The copy must have the acknowledged value, and an older value must never
			 * return.
			 */
			if (__atomic_load_n(copy + (uintptr_t)arg, __ATOMIC_ACQUIRE) != i)
				return (void *)"a word is older at a copy than its acknowledged "
					       "flush";
		}
	}
	return NULL;
}

static void test_overlapping_flushes_never_take_a_word_back(void **state)
{
	pthread_t threads[THREADS];
	void *failed;

	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, count_up, (void *)i), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], &failed), 0);
		if (failed)
			fail_msg("%s", (char *)failed);
	}
}

static void test_store8_is_everywhere(void **state)
{
	uint64_t *word = (uint64_t *)(void *)(addr + 4096);

	assert_int_equal(rpmirror_store8(m, word, 0x1122334455667788), 0);
	assert_int_equal(*word, 0x1122334455667788);
	assert_flushed(7, 4096, 8);
	assert_int_equal(rpmirror_store8(m, (uint64_t *)(void *)(addr + 4), 1), RPMIRROR_E_INVAL);
	assert_int_equal(rpmirror_store8(m, (uint64_t *)(void *)(addr + STANDIN_SIZE), 1),
			 RPMIRROR_E_INVAL);
}

enum { WORD_AT = 4096, BESIDE_AT = 1000 * 1000, BESIDE = 512, STORES = 400 };

static bool observer_stops;

/* The two halves of a record must have the same number, and data that were flushed before the
 * number must be complete. */
static const char *observe(const uint8_t *copy, uint64_t *last)
{
	const uint64_t *word = (const void *)(copy + WORD_AT),
		       *beside = (const void *)(copy + BESIDE_AT);
	uint64_t value = __atomic_load_n(word, __ATOMIC_ACQUIRE);

	if (value >> 32 != (uint32_t)value)
		return "a word is torn";
	if (value < *last)
		return "a word has become older";
	*last = value;
	for (unsigned i = 0; i < BESIDE; i++)
		if (__atomic_load_n(&beside[i], __ATOMIC_ACQUIRE) < (uint32_t)value)
			return "a word is there before what was flushed in front of it";
	return NULL;
}

static void *observe_copies(void *arg)
{
	uint64_t last[3] = {0};
	const char *failed = NULL;

	while (!failed && !__atomic_load_n(&observer_stops, __ATOMIC_ACQUIRE))
		for (unsigned slot = 0; slot < 3 && !failed; slot++)
			failed = observe(standin_copy(s, slot), &last[slot]);
	return (void *)failed;
}

/* At any time, a reader of a copy sees the bytes that a crash at this time would leave. */
static void test_store8_is_whole_and_follows_the_earlier_flushes(void **state)
{
	uint64_t *word = (uint64_t *)(void *)(addr + WORD_AT), *beside = (void *)(addr + BESIDE_AT),
		 ticket;
	struct rpmirror_range range = {beside, BESIDE * 8};
	pthread_t observer;
	void *failed;

	observer_stops = false;
	assert_int_equal(pthread_create(&observer, NULL, observe_copies, NULL), 0);
	for (uint64_t i = 1; i <= STORES; i++) {
		for (unsigned j = 0; j < BESIDE; j++)
			__atomic_store_n(&beside[j], i, __ATOMIC_RELAXED);
		assert_int_equal(rpmirror_flush_start(m, &range, 1, 0, &ticket), 0);
		assert_int_equal(rpmirror_store8(m, word, i << 32 | i), 0);
		assert_int_equal(rpmirror_flush_wait(m, ticket, 0, NULL), 0);
	}
	__atomic_store_n(&observer_stops, true, __ATOMIC_RELEASE);
	pthread_join(observer, &failed);
	if (failed)
		fail_msg("%s", (char *)failed);
	assert_flushed(7, WORD_AT, 8);
}

enum { CUTS = 4, CUT_EVERY = 256 << 10, CUT_FLUSHES = 150 };

/* Eight bytes of a word must be equal. Parts and Writes of a flush are 512 and 256 KiB long. */
static void *observe_cuts(void *arg)
{
	while (!__atomic_load_n(&observer_stops, __ATOMIC_ACQUIRE))
		for (unsigned i = 0; i < 3 * CUTS; i++) {
			const uint64_t *word = (const void *)(standin_copy(s, i / CUTS) +
							      (i % CUTS + 1) * CUT_EVERY);
			uint64_t value = __atomic_load_n(word, __ATOMIC_ACQUIRE);

			if (value != (value & 0xff) * 0x0101010101010101u)
				return (void *)"a word is torn";
		}
	return NULL;
}

/* The range begins within a word. Its parts must nevertheless end between words. */
static void test_no_word_is_divided_between_parts(void **state)
{
	struct rpmirror_range range = {addr + 4, (CUTS + 1) * CUT_EVERY};
	pthread_t observer;
	void *failed;

	observer_stops = false;
	assert_int_equal(pthread_create(&observer, NULL, observe_cuts, NULL), 0);
	for (unsigned i = 0; i < CUT_FLUSHES; i++) {
		memset(addr + 4, (int)(i % 255 + 1), range.len);
		assert_int_equal(rpmirror_flush(m, &range, 1, 0, NULL), 0);
	}
	__atomic_store_n(&observer_stops, true, __ATOMIC_RELEASE);
	pthread_join(observer, &failed);
	if (failed)
		fail_msg("%s", (char *)failed);
}

/* Replaces libc's fdatasync(): writing back this host's copy fails, or is slow. */
static const struct stat *bad_file;
static bool syncs_are_slow;
static bool syncs_stall; /* while this is true, fdatasync() does not return */
static unsigned fdatasyncs;

int fdatasync(int fd)
{
	struct stat st;

	if (__atomic_load_n(&syncs_are_slow, __ATOMIC_ACQUIRE)) {
		__atomic_add_fetch(&fdatasyncs, 1, __ATOMIC_RELAXED);
		usleep(SYNC_US);
	}
	while (__atomic_load_n(&syncs_stall, __ATOMIC_ACQUIRE))
		usleep(SYNC_US);
	if (bad_file && !fstat(fd, &st) && st.st_ino == bad_file->st_ino) {
		errno = EIO;
		return -1;
	}
	return fsync(fd);
}

static void fail_write_backs(struct stat *st)
{
	*st = (struct stat){.st_ino = standin_inode(s, 0)};
	bad_file = st;
}

static bool writes_nothing_back(void)
{
	enum rpma_durability durability = RPMA_DURABILITY_VOLATILE;

	rpma_utils_get_durability(standin_copy(s, 0), STANDIN_SIZE, &durability, NULL, 0);
	return durability == RPMA_DURABILITY_VOLATILE;
}

/* One failed write-back is final: the kernel has dropped the pages, so a later call does not write
 * them. */
static void expect_a_failed_copy(int rc)
{
	struct rpmirror_range range = {addr, 8};
	struct rpmirror_error e = {.size = sizeof(e)};
	struct rpmirror_result res;
	struct stat st;

	if (writes_nothing_back())
		skip();
	fail_write_backs(&st);
	memset(addr, 7, 8);
	assert_int_equal(rpmirror_flush(m, &range, 1, 0, &res), rc);
	assert_int_equal(res.durable_mask, 6);
	assert_true(res.flags & RPMIRROR_LOCAL_FAILED);
	bad_file = NULL;
	assert_int_equal(standin_record(s).view.insync, 6);
	assert_flushed(6, 0, 8);
	assert_int_equal(rpmirror_get_error(m, &e), 0);
	assert_int_equal(e.offset, 0);
	assert_false(e.repaired);
	memset(addr, 8, 8);
	assert_int_equal(rpmirror_flush(m, &range, 1, 0, &res), rc);
	assert_int_equal(res.durable_mask, 6);
	assert_flushed(6, 0, 8);
}

/*
 * Replaces libc's msync(). msync_stalls: the second call of msync_thread, for a flush's record, is
 * slow. msync_holds: the calls of all other threads wait, so no member writes back.
 */
static bool msync_stalls, msync_holds;
static pthread_t msync_thread;
static unsigned msyncs, msyncs_held;

static void msync_wait(void)
{
	__atomic_add_fetch(&msyncs_held, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&msync_holds, __ATOMIC_ACQUIRE))
		usleep(1000);
}

/* Call this only while msync_stalls or msync_holds is set: msync_thread is written before these
 * flags. */
static bool msync_is_chosen(void)
{
	return pthread_equal(pthread_self(), msync_thread);
}

__attribute__((visibility("default"))) int msync(void *at, size_t len, int flags)
{
	if (__atomic_load_n(&msync_holds, __ATOMIC_ACQUIRE) && !msync_is_chosen())
		msync_wait();
	if (__atomic_load_n(&msync_stalls, __ATOMIC_ACQUIRE) && msync_is_chosen() && ++msyncs == 2)
		usleep(1500 * 1000);
	return (int)syscall(SYS_msync, at, len, flags);
}

static void *store_one(void *arg)
{
	return (void *)(intptr_t)rpmirror_store8(m, arg, 1);
}

static bool has_word(unsigned slot)
{
	return __atomic_load_n((const uint64_t *)(const void *)(standin_copy(s, slot) + WORD_AT),
			       __ATOMIC_ACQUIRE);
}

/* The dirty pages of a member can reach its medium in any order. */
static void test_store8_follows_what_was_only_begun_to_each_medium(void **state)
{
	struct rpmirror_range range = {addr + BESIDE_AT, 64};
	pthread_t storer;
	uint64_t ticket;
	bool any = false;
	void *rc;

	if (writes_nothing_back())
		skip();
	memset(addr + BESIDE_AT, 9, 64);
	msync_thread = pthread_self();
	__atomic_store_n(&msyncs_held, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&msync_holds, true, __ATOMIC_RELEASE);
	assert_int_equal(rpmirror_flush_start(m, &range, 1, 0, &ticket), 0);
	assert_int_equal(pthread_create(&storer, NULL, store_one, addr + WORD_AT), 0);
	while (!__atomic_load_n(&msyncs_held, __ATOMIC_ACQUIRE))
		usleep(1000);
	usleep(100 * 1000);
	for (unsigned slot = 0; slot < 3; slot++)
		any = any || has_word(slot);
	__atomic_store_n(&msync_holds, false, __ATOMIC_RELEASE);
	pthread_join(storer, &rc);
	assert_null(rc);
	assert_false(any);
	for (unsigned slot = 0; slot < 3; slot++)
		assert_true(has_word(slot));
	assert_int_equal(rpmirror_flush_wait(m, ticket, 0, NULL), 0);
}

static void *flush_on_and_on(void *arg)
{
	struct rpmirror_range range = {arg, 4096};

	for (unsigned i = 0; i < SHARED_FLUSHES; i++) {
		memset(arg, (int)i + 1, 4096);
		if (rpmirror_flush(m, &range, 1, 0, NULL))
			return (void *)"a flush has failed";
	}
	return NULL;
}

/* Returns how many flush operations the member has answered. */
static unsigned answered_by(unsigned slot)
{
	unsigned count;

	pthread_mutex_lock(&m->lock);
	count = m->members[slot].latency.now.count + m->members[slot].latency.last.count;
	pthread_mutex_unlock(&m->lock);
	return count;
}

/* Threads share the write-backs on this host and on the other members. */
static void test_threads_share_write_backs(void **state)
{
	pthread_t threads[SHARERS];
	unsigned answered;
	void *failed;

	if (writes_nothing_back())
		skip();
	fdatasyncs = 0;
	answered = answered_by(1);
	__atomic_store_n(&syncs_are_slow, true, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < SHARERS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, flush_on_and_on, addr + (size_t)i * 8192),
			0);
	for (unsigned i = 0; i < SHARERS; i++) {
		pthread_join(threads[i], &failed);
		if (failed)
			fail_msg("%s", (char *)failed);
	}
	__atomic_store_n(&syncs_are_slow, false, __ATOMIC_RELEASE);
	answered = answered_by(1) - answered;
	print_message("%u flushes: %u write-backs here, %u at a member\n", SHARERS * SHARED_FLUSHES,
		      fdatasyncs, answered);
	assert_true(fdatasyncs > 0 && fdatasyncs <= SHARERS * SHARED_FLUSHES / 2);
	assert_true(answered < SHARERS * SHARED_FLUSHES);
	for (unsigned i = 0; i < SHARERS; i++)
		assert_flushed(7, (size_t)i * 8192, 4096);
}

enum { TICKETS = 16, TICKETS_MANY = FLUSH_MAX + 50, STALLS = 4 };
#define STALL_NS (2 * NSEC_PER_SEC)

static uint64_t begin_at(unsigned page)
{
	struct rpmirror_range range = {addr + (size_t)page * 4096, 64};
	uint64_t ticket;

	memset(addr + (size_t)page * 4096, (int)page + 1, range.len);
	assert_int_equal(rpmirror_flush_start(m, &range, 1, 0, &ticket), 0);
	return ticket;
}

/* While the disk is busy with the first flush, the caller begins the others. */
static void test_flushes_that_one_thread_begins_share_write_backs(void **state)
{
	struct rpmirror_result res;
	uint64_t tickets[TICKETS];

	if (writes_nothing_back())
		skip();
	fdatasyncs = 0;
	__atomic_store_n(&syncs_are_slow, true, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < TICKETS; i++)
		tickets[i] = begin_at(i);
	for (unsigned i = 0; i < TICKETS; i++) {
		assert_int_equal(rpmirror_flush_wait(m, tickets[i], -1, &res), 0);
		assert_int_equal(res.durable_mask, 7);
		assert_int_equal(medium_dirty(m->copy.fd, (off_t)i * 4096, 4096), 0);
	}
	__atomic_store_n(&syncs_are_slow, false, __ATOMIC_RELEASE);
	print_message("%d flushes: %u write-backs here\n", TICKETS, fdatasyncs);
	assert_true(fdatasyncs > 0 && fdatasyncs <= TICKETS / 2);
	for (unsigned i = 0; i < TICKETS; i++)
		assert_flushed(7, (size_t)i * 4096, 64);
}

static uint64_t acknowledged(void)
{
	struct rpmirror_state st = {.size = sizeof(st)};

	assert_int_equal(rpmirror_get_state(m, &st), 0);
	return st.acked_seq;
}

static void test_flushes_end_without_a_thread_that_waits(void **state)
{
	uint64_t last = 0;

	for (unsigned i = 0; i < TICKETS_MANY; i++)
		last = begin_at(i % 100);
	for (unsigned i = 0; i < 1000 && acknowledged() < last; i++)
		usleep(10 * 1000);
	assert_int_equal(acknowledged(), last);
}

static void test_a_wait_without_time_does_not_write_back(void **state)
{
	uint64_t first, second;
	int rc;

	if (writes_nothing_back())
		skip();
	first = begin_at(0);
	__atomic_store_n(&syncs_are_slow, true, __ATOMIC_RELEASE);
	second = begin_at(1);
	rc = rpmirror_flush_wait(m, second, 0, NULL);
	__atomic_store_n(&syncs_are_slow, false, __ATOMIC_RELEASE);
	assert_int_equal(rc, RPMIRROR_E_AGAIN);
	assert_int_equal(rpmirror_flush_wait(m, second, -1, NULL), 0);
	assert_int_equal(rpmirror_flush_wait(m, first, -1, NULL), 0);
}

/* Ends the stall after a time limit, so that a wait that does not return makes the test fail
 * instead of hanging. */
static void *end_a_long_stall(void *arg)
{
	uint64_t until = clock_now_ns() + STALL_NS;

	while (__atomic_load_n(&syncs_stall, __ATOMIC_ACQUIRE) && clock_now_ns() < until)
		usleep(SYNC_US);
	*(bool *)arg = __atomic_exchange_n(&syncs_stall, false, __ATOMIC_ACQ_REL);
	return NULL;
}

static void wait_while_the_disk_stalls(unsigned page)
{
	bool was_long = false;
	pthread_t thread;
	uint64_t ticket;
	int rc;

	__atomic_store_n(&syncs_stall, true, __ATOMIC_RELEASE);
	assert_int_equal(pthread_create(&thread, NULL, end_a_long_stall, &was_long), 0);
	ticket = begin_at(page);
	rc = rpmirror_flush_wait(m, ticket, 1, NULL);
	__atomic_store_n(&syncs_stall, false, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	assert_false(was_long);
	assert_int_equal(rc, RPMIRROR_E_AGAIN);
	assert_int_equal(rpmirror_flush_wait(m, ticket, -1, NULL), 0);
}

/* The test tries several times, because a thread of the library may be the first to write back. */
static void test_a_wait_with_a_limit_ends_while_the_disk_stalls(void **state)
{
	uint64_t first;

	if (writes_nothing_back())
		skip();
	first = begin_at(0);
	for (unsigned i = 0; i < STALLS; i++)
		wait_while_the_disk_stalls(1 + i);
	assert_int_equal(rpmirror_flush_wait(m, first, -1, NULL), 0);
}

/* The call that begins the flush returns before the write-back of the flush fails. */
static void test_a_shared_write_back_that_fails_is_reported_for_each_flush(void **state)
{
	struct rpmirror_error e = {.size = sizeof(e)};
	struct rpmirror_result res;
	uint64_t tickets[3];
	struct stat st;

	if (writes_nothing_back())
		skip();
	tickets[0] = begin_at(0);
	fail_write_backs(&st);
	tickets[1] = begin_at(1);
	tickets[2] = begin_at(2);
	assert_int_equal(rpmirror_flush_wait(m, tickets[0], -1, NULL), 0);
	for (unsigned i = 1; i < 3; i++) {
		assert_int_equal(rpmirror_flush_wait(m, tickets[i], -1, &res), RPMIRROR_E_MEDIUM);
		assert_int_equal(res.durable_mask, 6);
		assert_true(res.flags & RPMIRROR_LOCAL_FAILED);
		assert_flushed(6, (size_t)i * 4096, 64);
	}
	bad_file = NULL;
	assert_int_equal(standin_record(s).view.insync, 6);
	assert_int_equal(rpmirror_get_error(m, &e), 0);
	assert_int_equal(e.offset, 4096);
	assert_true(e.dirty);
}

/* Two ranges with unflushed bytes between them are reported one by one. */
static void test_a_shared_write_back_that_fails_names_the_ranges(void **state)
{
	struct rpmirror_range v[2] = {{addr + 64, 128}, {addr + (4 << 20), 256}};
	struct rpmirror_error e = {.size = sizeof(e)};
	uint64_t first, second;
	struct stat st;

	if (writes_nothing_back())
		skip();
	first = begin_at(10);
	fail_write_backs(&st);
	assert_int_equal(rpmirror_flush_start(m, v, 2, 0, &second), 0);
	assert_int_equal(rpmirror_flush_wait(m, second, -1, NULL), RPMIRROR_E_MEDIUM);
	assert_int_equal(rpmirror_flush_wait(m, first, -1, NULL), 0);
	bad_file = NULL;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(rpmirror_get_error(m, &e), 0);
		assert_ptr_equal(addr + e.offset, v[i].addr);
		assert_int_equal(e.len, v[i].len);
	}
	assert_int_equal(rpmirror_get_error(m, &e), RPMIRROR_E_NO_EVENT);
}

static int setup_impatient(void **state)
{
	setup(state);
	standin_set_replica_timeout_ms(s, 1000);
	map_set();
	return 0;
}

/* The first parts of a flush have reached the members; no member was asked to acknowledge them
 * yet. */
static void test_members_are_not_late_while_the_rest_of_a_flush_is_not_posted(void **state)
{
	struct rpmirror_range v[2] = {{addr, 512 << 10}, {addr + (4 << 20), 8}};
	struct rpmirror_result res;

	memset(addr, 9, STANDIN_SIZE);
	msync_thread = pthread_self();
	msyncs = 0;
	__atomic_store_n(&msync_stalls, true, __ATOMIC_RELEASE);
	assert_int_equal(rpmirror_flush(m, v, 2, 0, &res), 0);
	__atomic_store_n(&msync_stalls, false, __ATOMIC_RELEASE);
	if (msyncs < 2)
		skip(); /* the test's folder is on tmpfs */
	assert_int_equal(res.durable_mask, 7);
	assert_int_equal(res.failed_mask, 0);
	assert_flushed(7, 0, 512 << 10);
	assert_flushed(7, 4 << 20, 8);
}

static void test_a_failed_write_back_excludes_the_own_copy(void **state)
{
	expect_a_failed_copy(RPMIRROR_E_MEDIUM);
}

static int setup_going_on(void **state)
{
	setup(state);
	standin_set_local_error_continues(s);
	map_set();
	return 0;
}

static void test_flushes_go_on_without_the_own_copy_if_so_configured(void **state)
{
	expect_a_failed_copy(0);
}

static void test_a_child_cannot_use_the_set(void **state)
{
	struct rpmirror_range range = {addr, 8};
	struct rpmirror_state st = {.size = sizeof(st)};
	struct rpmirror *copy = m;
	pid_t child = fork();
	int status;

	if (!child) {
		bool refused = rpmirror_flush(m, &range, 1, 0, NULL) == RPMIRROR_E_INVAL &&
			       rpmirror_get_state(m, &st) == RPMIRROR_E_INVAL &&
			       rpmirror_confirm(m) == RPMIRROR_E_INVAL &&
			       rpmirror_unmap(&copy) == RPMIRROR_E_INVAL && copy == m;

		_exit(refused ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(rpmirror_flush(m, &range, 1, 0, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		MAPPED(test_a_flush_is_on_every_copy),
		MAPPED(test_what_is_not_flushed_reaches_no_copy),
		MAPPED(test_nothing_to_flush_is_no_error),
		MAPPED(test_wrong_ranges_change_nothing),
		MAPPED(test_ranges_of_all_sizes_and_places),
		MAPPED(test_no_byte_beside_a_range_that_parts_cut_is_sent),
		MAPPED(test_a_sync_of_everything_sends_what_was_stored),
		MAPPED(test_tickets_are_waited_for_in_any_order),
		MAPPED(test_verified_is_what_every_medium_has),
		MAPPED(test_a_copy_that_differs_is_named_and_excluded),
		cmocka_unit_test_setup_teardown(test_what_cannot_be_excluded_is_not_called_so,
						setup, teardown),
		MAPPED(test_overlapping_flushes_never_take_a_word_back),
		MAPPED(test_threads_share_write_backs),
		MAPPED(test_flushes_that_one_thread_begins_share_write_backs),
		MAPPED(test_flushes_end_without_a_thread_that_waits),
		MAPPED(test_a_wait_without_time_does_not_write_back),
		MAPPED(test_a_wait_with_a_limit_ends_while_the_disk_stalls),
		MAPPED(test_a_shared_write_back_that_fails_is_reported_for_each_flush),
		MAPPED(test_a_shared_write_back_that_fails_names_the_ranges),
		MAPPED(test_store8_is_everywhere),
		MAPPED(test_store8_is_whole_and_follows_the_earlier_flushes),
		MAPPED(test_no_word_is_divided_between_parts),
		MAPPED(test_store8_follows_what_was_only_begun_to_each_medium),
		cmocka_unit_test_setup_teardown(
			test_members_are_not_late_while_the_rest_of_a_flush_is_not_posted,
			setup_impatient, teardown),
		MAPPED(test_a_failed_write_back_excludes_the_own_copy),
		cmocka_unit_test_setup_teardown(
			test_flushes_go_on_without_the_own_copy_if_so_configured, setup_going_on,
			teardown),
		MAPPED(test_a_child_cannot_use_the_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
