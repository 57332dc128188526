/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/safecopy.h"
#include "test_safecopy.h"

#define PAGE ((size_t)4096)

unsigned char *map_truncated(size_t pages, size_t backed)
{
	int fd = memfd_create("truncated", MFD_CLOEXEC);
	unsigned char *p;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)(backed * PAGE)), 0);
	p = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	close(fd);
	return p;
}

/* Call this in each test, because cmocka installs its own handlers right before a test. */
static void protect(void)
{
	assert_int_equal(safecopy_setup(), 0);
}

static void copies_every_length_exactly(void **state)
{
	enum { MAX = 2100, PAD = 32 };
	unsigned char *src = malloc(MAX + 2 * PAD), *dst = malloc(MAX + 2 * PAD);

	for (int i = 0; i < MAX + 2 * PAD; i++)
		src[i] = (unsigned char)(i * 7 + (i >> 8));
	for (size_t len = 0; len <= MAX; len += len < 80 ? 1 : 13) {
		size_t from = len % 17, to = len % 13;

		memset(dst, 0xee, MAX + 2 * PAD);
		assert_int_equal(safecopy(dst + PAD + to, src + from, len), 0);
		assert_memory_equal(dst + PAD + to, src + from, len);
		for (size_t i = 0; i < PAD + to; i++)
			assert_int_equal(dst[i], 0xee);
		for (size_t i = PAD + to + len; i < MAX + 2 * PAD; i++)
			assert_int_equal(dst[i], 0xee);
	}
	free(src);
	free(dst);
}

static const size_t lengths[] = {1, 2, 3, 7, 8, 15, 16, 17, 100, 1024, 1025, 8192, 300000};
#define N_LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

static void store_beyond_the_end_of_a_file_fails(void **state)
{
	unsigned char *p = map_truncated(100, 1), *src = calloc(1, 300000);

	protect();
	memset(src, 0x5a, 300000);
	for (size_t i = 0; i < N_LENGTHS; i++) {
		/* First the whole range is beyond the end of the file, then all of its bytes but
		 * the first. */
		assert_int_equal(safecopy(p + PAGE, src, lengths[i]), -EFAULT);
		if (lengths[i] > 1)
			assert_int_equal(safecopy(p + PAGE - 1, src, lengths[i]), -EFAULT);
	}
	assert_int_equal(safecopy(p + PAGE - 300, src, 300), 0);
	assert_int_equal(p[PAGE - 1], 0x5a);
	munmap(p, 100 * PAGE);
	free(src);
}

static void load_beyond_the_end_of_a_file_fails(void **state)
{
	unsigned char *p = map_truncated(100, 1), *dst = calloc(1, 300000);

	protect();
	for (size_t i = 0; i < N_LENGTHS; i++) {
		assert_int_equal(safecopy(dst, p + PAGE, lengths[i]), -EFAULT);
		if (lengths[i] > 1)
			assert_int_equal(safecopy(dst, p + PAGE - 1, lengths[i]), -EFAULT);
	}
	munmap(p, 100 * PAGE);
	free(dst);
}

static void unmapped_forbidden_and_wild_memory_fails(void **state)
{
	unsigned char buf[64] = {0};
	unsigned char *p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	protect();
	assert_int_equal(safecopy(buf, p, sizeof(buf)), 0);
	assert_int_equal(safecopy(p, buf, sizeof(buf)), -EFAULT);
	mprotect(p, PAGE, PROT_NONE);
	assert_int_equal(safecopy(buf, p, sizeof(buf)), -EFAULT);
	munmap(p, PAGE);
	assert_int_equal(safecopy(buf, p, sizeof(buf)), -EFAULT);
	assert_int_equal(safecopy(p, buf, sizeof(buf)), -EFAULT);
	assert_int_equal(safecopy(buf, (void *)(uintptr_t)8, sizeof(buf)), -EFAULT);
	assert_int_equal(safecopy((void *)((uintptr_t)1 << 62), buf, sizeof(buf)), -EFAULT);
}

static void words_and_probes_report_faults(void **state)
{
	unsigned char *p = map_truncated(2, 1);
	uint64_t word = 0;

	protect();
	assert_int_equal(safecopy_store64((uint64_t *)p, 0x1122334455667788), 0);
	assert_int_equal(safecopy_load64(&word, (uint64_t *)p), 0);
	assert_true(word == 0x1122334455667788);
	assert_int_equal(safecopy_probe(p + PAGE - 1), 0);
	assert_int_equal(safecopy_probe(p + PAGE), -EFAULT);
	assert_int_equal(safecopy_store64((uint64_t *)(p + PAGE), 1), -EFAULT);
	assert_int_equal(safecopy_load64(&word, (uint64_t *)(p + PAGE)), -EFAULT);
	munmap(p, 2 * PAGE);
}

static void touch_first_and_last(const void *addr, size_t len)
{
	volatile const unsigned char *p = addr;

	(void)p[0];
	(void)p[len - 1];
}

static void guarded_function_is_abandoned_at_a_fault(void **state)
{
	unsigned char *p = map_truncated(2, 1);

	protect();
	for (int i = 0; i < 3; i++) {
		assert_int_equal(safecopy_guard(p, PAGE, touch_first_and_last), 0);
		assert_int_equal(safecopy_guard(p, 2 * PAGE, touch_first_and_last), -EFAULT);
	}
	munmap(p, 2 * PAGE);
}

static void *copy_with_all_signals_blocked(void *arg)
{
	unsigned char *p = arg;
	sigset_t all, before, after;
	long bad = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	pthread_sigmask(SIG_BLOCK, NULL, &before);
	bad |= safecopy(p, &all, sizeof(all)) != 0;
	bad |= safecopy(p + PAGE, &all, sizeof(all)) != -EFAULT;
	bad |= safecopy_store64((uint64_t *)(p + PAGE), 1) != -EFAULT;
	bad |= safecopy_guard(p, 2 * PAGE, touch_first_and_last) != -EFAULT;
	pthread_sigmask(SIG_BLOCK, NULL, &after);
	for (int sig = 1; sig < NSIG; sig++)
		bad |= sigismember(&before, sig) != sigismember(&after, sig);
	return (void *)bad;
}

static void threads_that_block_signals_survive_too(void **state)
{
	unsigned char *p = map_truncated(2, 1);
	pthread_t thread;
	void *bad;

	protect();
	assert_int_equal(pthread_create(&thread, NULL, copy_with_all_signals_blocked, p), 0);
	pthread_join(thread, &bad);
	assert_null(bad);
	munmap(p, 2 * PAGE);
}

struct tearing {
	uint64_t word;
	atomic_bool stop;
};

static void *store_words(void *arg)
{
	struct tearing *t = arg;

	for (uint64_t i = 0; !atomic_load(&t->stop); i++)
		safecopy_store64(&t->word, i & 1 ? UINT64_MAX : 0);
	return NULL;
}

static void a_swap_happens_only_where_the_word_is_the_expected_one(void **state)
{
	unsigned char *p = map_truncated(2, 1);
	uint64_t word = 5, expected = 5;

	protect();
	assert_int_equal(safecopy_cmpxchg64(&word, &expected, UINT64_MAX - 1), 0);
	assert_true(word == UINT64_MAX - 1 && expected == 5);
	assert_int_equal(safecopy_cmpxchg64(&word, &expected, 7), 0);
	assert_true(word == UINT64_MAX - 1 && expected == UINT64_MAX - 1);
	assert_int_equal(safecopy_cmpxchg64((uint64_t *)(p + PAGE), &expected, 7), -EFAULT);
	munmap(p, 2 * PAGE);
}

static void *add_words(void *arg)
{
	uint64_t *word = arg;

	for (int i = 0; i < 20000; i++) {
		uint64_t seen = __atomic_load_n(word, __ATOMIC_RELAXED), now;

		do {
			now = seen;
			safecopy_cmpxchg64(word, &seen, now + 1);
		} while (seen != now);
	}
	return NULL;
}

static void swaps_lose_nothing_to_the_cpus_own_atomics(void **state)
{
	uint64_t word = 0;
	pthread_t thread;

	protect();
	assert_int_equal(pthread_create(&thread, NULL, add_words, &word), 0);
	for (int i = 0; i < 20000; i++)
		__atomic_fetch_add(&word, 1ull << 32, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_true(word == 20000 * ((1ull << 32) + 1));
}

static void words_are_never_torn(void **state)
{
	struct tearing t = {0};
	pthread_t thread;
	uint64_t word;

	protect();
	assert_int_equal(pthread_create(&thread, NULL, store_words, &t), 0);
	for (int i = 0; i < 50000; i++) {
		safecopy_load64(&word, &t.word);
		assert_true(word == 0 || word == UINT64_MAX);
	}
	atomic_store(&t.stop, true);
	pthread_join(thread, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_every_length_exactly),
		cmocka_unit_test(store_beyond_the_end_of_a_file_fails),
		cmocka_unit_test(load_beyond_the_end_of_a_file_fails),
		cmocka_unit_test(unmapped_forbidden_and_wild_memory_fails),
		cmocka_unit_test(words_and_probes_report_faults),
		cmocka_unit_test(guarded_function_is_abandoned_at_a_fault),
		cmocka_unit_test(threads_that_block_signals_survive_too),
		cmocka_unit_test(a_swap_happens_only_where_the_word_is_the_expected_one),
		cmocka_unit_test(swaps_lose_nothing_to_the_cpus_own_atomics),
		cmocka_unit_test(words_are_never_torn),
	};
	int failed = cmocka_run_group_tests_name("safecopy", tests, NULL, NULL);

	return failed + run_chain_tests();
}
