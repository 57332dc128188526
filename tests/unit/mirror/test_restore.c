/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unreadable pages of this host's copy are replaced from another member, and the application does
 * not notice it. If that is impossible, their loss is reported.
 */
#include "mapped.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "held_malloc.h"
#include "lib/bad_pages.h"
#include "mirror/fault.h"
#include "opened.h"

#define PAGE    4096u
#define PAGES   1024u
#define THREADS 8
/* Offset of the pages that the tests flush; the pages that are lost lie before this offset. */
#define FLUSHED (6u << 20)

static int watch, shared;

/* ---- the set: each copy has a pattern, and no page of the mapping is private ---- */

static uint64_t pattern(uint64_t offset)
{
	return (offset + 1) * 0x9e3779b97f4a7c15;
}

static void fill(void)
{
	for (unsigned slot = 0; slot < 3; slot++)
		for (uint64_t at = 0; at < STANDIN_SIZE; at += 8)
			*(uint64_t *)(uintptr_t)(standin_copy(s, slot) + at) = pattern(at);
}

static int setup_filled(void **state)
{
	setenv("TMPDIR", "/dev/shm", 1);
	setup(state);
	fill();
	map_set();
	watch = bad_pages_watch(addr, STANDIN_SIZE);
	shared = bad_pages_watch(opened_shared(m), STANDIN_SIZE);
	return 0;
}

static int teardown_filled(void **state)
{
	close(watch);
	close(shared);
	unsetenv("RPMIRROR_ON_MEDIUM");
	return teardown(state);
}

/* Call this in each test, because cmocka installs its own handlers before each test. */
static void need_bad_pages(void)
{
	if (watch < 0 || shared < 0)
		skip();
	assert_int_equal(fault_renew(), 0);
}

static void lose(uint64_t offset, uint64_t len)
{
	assert_true(bad_pages_lose(opened_fd(m), offset, len));
}

static bool page_is_right(uint64_t page)
{
	for (uint64_t at = page * PAGE; at < (page + 1) * PAGE; at += 8)
		if (__atomic_load_n((uint64_t *)(void *)(addr + at), __ATOMIC_RELAXED) !=
		    pattern(at))
			return false;
	return true;
}

static unsigned count_right(void)
{
	unsigned count = 0;

	for (uint64_t page = 0; page < PAGES; page++)
		count += page_is_right(page);
	return count;
}

static int flush_word(uint64_t offset, uint64_t value)
{
	struct rpmirror_range range = {addr + offset, 8};

	__atomic_store_n((uint64_t *)(void *)(addr + offset), value, __ATOMIC_RELEASE);
	return rpmirror_flush(m, &range, 1, 0, NULL);
}

/* The sum of all pending errors. */
struct errors {
	unsigned count, dirty, repaired;
	uint64_t bytes, offset;
};

static void add_errors(struct errors *sum)
{
	struct rpmirror_error e = {.size = sizeof(e)};

	while (!rpmirror_get_error(m, &e)) {
		sum->count++;
		sum->dirty += e.dirty;
		sum->repaired += e.repaired;
		sum->bytes += e.len;
		if (e.offset < sum->offset)
			sum->offset = e.offset;
	}
}

static struct errors take_errors(void)
{
	struct errors sum = {.offset = UINT64_MAX};

	add_errors(&sum);
	return sum;
}

/* Wait for the report, which comes after the application's access has already succeeded. */
static struct errors await_errors(uint64_t bytes)
{
	struct errors sum = {.offset = UINT64_MAX};

	for (unsigned i = 0; i < 5000 && sum.bytes < bytes; i++) {
		add_errors(&sum);
		if (sum.bytes < bytes)
			usleep(1000);
	}
	return sum;
}

static uint64_t acked(void)
{
	struct rpmirror_state st = {.size = sizeof(st)};

	rpmirror_get_state(m, &st);
	return st.acked_seq;
}

static bool has_event(enum rpmirror_event_type type)
{
	struct rpmirror_event ev = {.size = sizeof(ev)};
	bool found = false;

	while (!rpmirror_next_event(m, &ev))
		found = found || ev.type == type;
	return found;
}

/* ---- all bytes are restored ---- */

static void test_pages_come_back_with_every_byte(void **state)
{
	struct errors errors;

	need_bad_pages();
	lose(0, PAGES * PAGE);
	assert_int_equal(count_right(), PAGES);
	/* The library has also written the pages to the file, for later mappings. */
	assert_memory_equal(standin_copy(s, 0), standin_copy(s, 1), STANDIN_SIZE);
	assert_int_equal(flush_word(FLUSHED, 5), 0);
	errors = await_errors(PAGES * PAGE);
	assert_int_equal(errors.bytes, PAGES * PAGE);
	assert_int_equal(errors.repaired, errors.count);
	assert_int_equal(errors.dirty, 0);
	assert_true(has_event(RPMIRROR_EVENT_ERROR));
}

static void test_what_was_stored_and_not_flushed_stays(void **state)
{
	uint64_t *word = (uint64_t *)(void *)(addr + 16 * PAGE);

	need_bad_pages();
	*word = 77;
	lose(0, PAGES * PAGE);
	assert_int_equal(count_right(), PAGES - 1);
	assert_int_equal(*word, 77);
	assert_int_equal(flush_word(16 * PAGE, 78), 0);
	assert_flushed(7, 16 * PAGE, PAGE);
	assert_int_equal(take_errors().dirty, 0);
}

static void *read_all(void *arg)
{
	atomic_uint *right = arg;
	unsigned mine = 0, first = atomic_fetch_add(right, 0) + (unsigned)(uintptr_t)&mine / 64;

	for (uint64_t i = 0; i < PAGES; i++)
		mine += page_is_right((i * 7 + first) % PAGES);
	atomic_fetch_add(right, mine);
	return NULL;
}

static atomic_bool stop;

static void *keep_flushing(void *arg)
{
	int *rc = arg;

	for (uint64_t i = 0; !atomic_load(&stop) && !*rc; i++)
		*rc = flush_word(FLUSHED + i % 64 * PAGE, i);
	return NULL;
}

static void test_threads_at_once_beside_flushes(void **state)
{
	pthread_t threads[THREADS], flusher;
	atomic_uint right = 0;
	int rc = 0;

	need_bad_pages();
	lose(0, PAGES * PAGE);
	atomic_store(&stop, false);
	pthread_create(&flusher, NULL, keep_flushing, &rc);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, read_all, &right);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	atomic_store(&stop, true);
	pthread_join(flusher, NULL);
	assert_int_equal(rc, 0);
	assert_int_equal(atomic_load(&right), THREADS * PAGES);
	assert_memory_equal(standin_copy(s, 0), standin_copy(s, 1), STANDIN_SIZE);
}

static void test_with_the_lock_of_malloc_held(void **state)
{
	unsigned right = 0;
	pthread_t flusher;
	int rc = 0;

	need_bad_pages();
	lose(0, PAGES * PAGE);
	atomic_store(&stop, false);
	pthread_create(&flusher, NULL, keep_flushing, &rc);
	if (malloc_hold()) {
		right = count_right();
		malloc_release();
	}
	atomic_store(&stop, true);
	pthread_join(flusher, NULL);
	if (!right)
		skip();
	assert_int_equal(right, PAGES);
	assert_int_equal(rc, 0);
}

static void test_another_member_has_it_when_one_is_lost(void **state)
{
	unsigned right = 0;

	need_bad_pages();
	lose(0, PAGES * PAGE);
	for (uint64_t page = 0; page < PAGES; page++) {
		if (page == PAGES / 2)
			standin_cut(s, 1);
		right += page_is_right(page);
	}
	assert_int_equal(right, PAGES);
	assert_int_equal(flush_word(FLUSHED, 5), 0);
	assert_memory_equal(standin_copy(s, 0), standin_copy(s, 2), STANDIN_SIZE);
	standin_mend(s, 1);
}

/* ---- accesses by the library ---- */

static void test_a_flush_of_what_cannot_be_read(void **state)
{
	struct rpmirror_range range = {addr, 64 * PAGE};

	need_bad_pages();
	lose(0, 64 * PAGE);
	assert_int_equal(rpmirror_flush(m, &range, 1, 0, NULL), 0);
	assert_memory_equal(standin_copy(s, 0), standin_copy(s, 1), STANDIN_SIZE);
	assert_int_equal(count_right(), PAGES);
}

static void test_a_flush_into_what_cannot_be_written(void **state)
{
	need_bad_pages();
	*(uint64_t *)(void *)(addr + 8) = 1; /* this store makes the page private */
	lose(0, PAGE);
	assert_int_equal(flush_word(0, 99), 0);
	assert_flushed(7, 0, 8);
	assert_int_equal(flush_word(8, 1), 0);
	assert_memory_equal(standin_copy(s, 0), standin_copy(s, 1), STANDIN_SIZE);
	assert_int_equal(take_errors().bytes, PAGE);
}

static void test_verified_although_it_could_not_be_read(void **state)
{
	struct rpmirror_range range = {addr, PAGE};

	need_bad_pages();
	lose(0, PAGE);
	/* The copies are on tmpfs here, but are compared all the same. */
	assert_int_equal(rpmirror_flush_verify(m, &range, 1, NULL), RPMIRROR_E_NOSUPP);
	assert_int_equal(count_right(), PAGES);
}

/* ---- some bytes are lost ---- */

static void expect_loss(uint64_t offset, uint64_t len)
{
	struct errors errors;

	assert_true(has_event(RPMIRROR_EVENT_ERROR));
	assert_int_equal(flush_word(FLUSHED, 5), RPMIRROR_E_MEDIUM);
	assert_int_equal(flush_word(FLUSHED, 6), RPMIRROR_E_MEDIUM);
	errors = take_errors();
	assert_int_equal(errors.count, 1);
	assert_int_equal(errors.dirty, 1);
	assert_int_equal(errors.repaired, 1);
	assert_int_equal(errors.offset, offset);
	assert_int_equal(errors.bytes, len);
	assert_int_equal(flush_word(FLUSHED, 7), 0);
	assert_flushed(7, FLUSHED, 8);
}

static void need_poison(uint64_t page)
{
	need_bad_pages();
	*(uint64_t *)(void *)(addr + page * PAGE) = 77;
	if (!bad_pages_poison(watch, addr + page * PAGE))
		skip();
}

static void test_bad_memory_shows_what_was_flushed(void **state)
{
	need_poison(3);
	assert_true(page_is_right(3));
	expect_loss(3 * PAGE, PAGE);
	assert_int_equal(flush_word(3 * PAGE, 78), 0);
	assert_flushed(7, 3 * PAGE, PAGE);
}

static void test_a_truncated_file_gets_all_back(void **state)
{
	pthread_t flusher;
	uint64_t value;
	int rc = 0;

	assert_int_equal(fault_renew(), 0);
	*(uint64_t *)(void *)(addr + 5 * PAGE) = 77; /* the kernel loses this store */
	atomic_store(&stop, false);
	pthread_create(&flusher, NULL, keep_flushing, &rc);
	while (!acked())
		usleep(1000);
	assert_int_equal(ftruncate(opened_fd(m), 3 * PAGE + 100), 0);
	assert_true(page_is_right(5)); /* this store was flushed, so another member has it */
	assert_int_equal(count_right(), PAGES);
	while (!rc)
		usleep(1000);
	pthread_join(flusher, NULL);
	assert_int_equal(rc, RPMIRROR_E_MEDIUM);
	value = take_errors().bytes;
	assert_true(value >= STANDIN_SIZE - 4 * PAGE);
	assert_int_equal(flush_word(FLUSHED, 7), 0);
	assert_memory_equal(standin_copy(s, 0), standin_copy(s, 1), STANDIN_SIZE);
	assert_memory_equal(standin_copy(s, 1), standin_copy(s, 2), STANDIN_SIZE);
}

static void test_a_thread_goes_back_to_its_point(void **state)
{
	static sigjmp_buf env;
	static volatile unsigned tries;

	need_poison(3);
	tries = 0;
	assert_int_equal(rpmirror_set_backtrack(m, &env), 0);
	if (!sigsetjmp(env, 1)) {
		tries++;
		page_is_right(3);
		fail();
	}
	assert_int_equal(tries, 1);
	assert_true(page_is_right(3));
	assert_int_equal(rpmirror_set_backtrack(m, NULL), 0);
	expect_loss(3 * PAGE, PAGE);
	assert_true(bad_pages_poison(watch, addr + 4 * PAGE));
	assert_true(page_is_right(4));
	assert_int_equal(rpmirror_set_backtrack(NULL, &env), RPMIRROR_E_INVAL);
}

/* ---- the handler that was installed before the library's ---- */

static sigjmp_buf jump;

static void on_signal(int sig, siginfo_t *info, void *uctx)
{
	siglongjmp(jump, 1);
}

static bool reading_raises(uint64_t page)
{
	if (sigsetjmp(jump, 1))
		return true;
	page_is_right(page);
	return false;
}

static void set_handler(void)
{
	struct sigaction sa = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};

	sigaction(SIGBUS, &sa, NULL);
}

static void test_without_members_the_earlier_handler_gets_it(void **state)
{
	struct errors errors;

	set_handler();
	need_bad_pages();
	standin_cut(s, 1);
	standin_cut(s, 2);
	assert_int_equal(flush_word(FLUSHED, 5), 0);
	lose(0, PAGE);
	assert_true(reading_raises(0));
	errors = take_errors();
	assert_int_equal(errors.repaired, 0);
	assert_int_equal(errors.offset, 0);
	assert_int_equal(errors.bytes, PAGE);
}

static void *read_elsewhere(void *page)
{
	return (void *)(uintptr_t)reading_raises((uintptr_t)page);
}

/*
 * Read the page on another stack: base/sigfault.h recognizes a fault by its stack position, and
 * could mistake this fault for an earlier fault whose handler left by longjmp().
 */
static bool reading_raises_elsewhere(uint64_t page)
{
	pthread_t thread;
	void *raised = NULL;

	assert_int_equal(pthread_create(&thread, NULL, read_elsewhere, (void *)(uintptr_t)page), 0);
	pthread_join(thread, &raised);
	return raised != NULL;
}

static int setup_signal(void **state)
{
	setenv("RPMIRROR_ON_MEDIUM", "signal", 1);
	return setup_filled(state);
}

static void test_what_is_lost_raises_the_signal_if_asked_for(void **state)
{
	set_handler();
	need_poison(3);
	lose(0, PAGE);
	assert_false(reading_raises(0));
	assert_true(reading_raises_elsewhere(3));
	assert_true(page_is_right(3));
	take_errors();
}

#define FILLED(test) cmocka_unit_test_setup_teardown(test, setup_filled, teardown_filled)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FILLED(test_pages_come_back_with_every_byte),
		FILLED(test_what_was_stored_and_not_flushed_stays),
		FILLED(test_threads_at_once_beside_flushes),
		FILLED(test_with_the_lock_of_malloc_held),
		FILLED(test_another_member_has_it_when_one_is_lost),
		FILLED(test_a_flush_of_what_cannot_be_read),
		FILLED(test_a_flush_into_what_cannot_be_written),
		FILLED(test_verified_although_it_could_not_be_read),
		FILLED(test_bad_memory_shows_what_was_flushed),
		FILLED(test_a_truncated_file_gets_all_back),
		FILLED(test_a_thread_goes_back_to_its_point),
		FILLED(test_without_members_the_earlier_handler_gets_it),
		cmocka_unit_test_setup_teardown(test_what_is_lost_raises_the_signal_if_asked_for,
						setup_signal, teardown_filled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
