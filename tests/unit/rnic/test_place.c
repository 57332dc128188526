/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/safecopy.h"
#include "softrnic/rnic/place.h"

static void every_length_and_alignment_lands_exactly(void **state)
{
	uint8_t src[64], dst[96], want[96];

	for (size_t i = 0; i < sizeof(src); i++)
		src[i] = (uint8_t)(i + 1);
	for (size_t at = 0; at < 16; at++) {
		for (size_t len = 0; len <= sizeof(src); len++) {
			memset(dst, 0xee, sizeof(dst));
			memcpy(want, dst, sizeof(want));
			memcpy(want + at, src, len);
			assert_int_equal(place(dst + at, src, len), 0);
			assert_memory_equal(dst, want, sizeof(want));
		}
	}
}

/* The file of a shared mapping was truncated: an ordinary store raises SIGBUS. */
static void memory_that_vanished_is_an_error(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fd = memfd_create("place", MFD_CLOEXEC);
	uint64_t words[4] = {1, 2, 3, 4};
	char *map;

	/* Install the handlers here, because cmocka installs its own before every test. */
	assert_int_equal(safecopy_setup(), 0);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)(2 * page)), 0);
	map = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	assert_int_equal(ftruncate(fd, (off_t)page), 0);
	assert_int_equal(place(map, words, sizeof(words)), 0);
	assert_int_equal(place(map + page, words, 8), -EFAULT);
	assert_int_equal(place(map + page + 8, words, sizeof(words)), -EFAULT);
	assert_int_equal(place(map + page - 16, words, sizeof(words)), -EFAULT);
	munmap(map, 2 * page);
	close(fd);
}

/* The memory ends within the copy, so the copy stops at a store to the next page. Each word before
 * that page must be old or new. */
static void check_words_before_the_end(uint8_t *end, size_t before, const uint8_t *src, size_t len)
{
	uint8_t *page = end - 4096;

	memset(page, 0, 4096);
	assert_int_equal(place(end - before, src, len), -EFAULT);
	for (uint8_t *word = end - before / 8 * 8; word < end; word += 8) {
		uint64_t value;

		memcpy(&value, word, 8);
		if (value != 0 && value != UINT64_MAX)
			fail_msg("%zu bytes before the end, %zu bytes: the word at -%zd is torn",
				 before, len, end - word);
	}
}

static void a_copy_that_stops_leaves_whole_words(void **state)
{
	int fd = memfd_create("place", MFD_CLOEXEC);
	uint8_t src[400], *map;

	assert_int_equal(safecopy_setup(), 0);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 8192), 0);
	map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	assert_int_equal(ftruncate(fd, 4096), 0);
	memset(src, 0xff, sizeof(src));
	for (size_t before = 1; before < 200; before++)
		for (size_t len = before + 1; len < before + 100; len++)
			check_words_before_the_end(map + 4096, before, src, len);
	munmap(map, 8192);
	close(fd);
}

static _Alignas(64) uint64_t word;
static atomic_bool over;

static void *look_for_torn_words(void *arg)
{
	bool *torn = arg;

	while (!atomic_load(&over)) {
		uint64_t v = __atomic_load_n(&word, __ATOMIC_RELAXED);

		if (v != 0 && v != UINT64_MAX)
			*torn = true;
	}
	return NULL;
}

static void an_aligned_word_is_never_seen_torn(void **state)
{
	uint8_t src[9];
	bool torn = false;
	pthread_t reader;

	assert_int_equal(pthread_create(&reader, NULL, look_for_torn_words, &torn), 0);
	for (int i = 0; i < 200000; i++) {
		memset(src, i % 2 ? 0xff : 0, sizeof(src));
		assert_int_equal(place(&word, src + 1, sizeof(word)), 0);
	}
	atomic_store(&over, true);
	pthread_join(reader, NULL);
	assert_false(torn);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_length_and_alignment_lands_exactly),
		cmocka_unit_test(memory_that_vanished_is_an_error),
		cmocka_unit_test(a_copy_that_stops_leaves_whole_words),
		cmocka_unit_test(an_aligned_word_is_never_seen_torn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
