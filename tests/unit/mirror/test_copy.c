/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A flush stores into this host's copy while the copy is read. In these tests a thread reads it; in
 * a real set a write-back does. SYSTEM_OBSERVATIONS is the number of reads.
 */
#include "lib/unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "lib/medium.h"
#include "mirror/copy.h"

#define SIZE         (256u << 10)
#define BLOCK        4096u
#define OBSERVATIONS 8000000ul
#define CHANGES_MIN  500ul
#define LOOK_MAX_S   400

#define WRITE_OUT_MAX_MS 1000

static struct copy copy;

static int make_file(void)
{
	int fd = open("copy.file", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(posix_fallocate(fd, 0, SIZE), 0);
	return fd;
}

static int setup(void **state)
{
	assert_int_equal(copy_open(&copy, make_file(), -1, SIZE), 0);
	return 0;
}

static int teardown(void **state)
{
	copy_close(&copy);
	return unlink("copy.file");
}

/* Put bytes at `offset` from a source with the same offset in a word. The bytes around the range
 * must not change. */
static void put_and_check(uint64_t offset, uint64_t len)
{
	uint8_t *bytes = aligned_alloc(BLOCK, SIZE), *expected = calloc(1, SIZE);

	assert_true(bytes && expected);
	for (uint64_t i = 0; i < len; i++)
		bytes[offset % 8 + i] = (uint8_t)(i % 251 + 1);
	memset(copy.shared, 0, SIZE);
	memcpy(expected + offset, bytes + offset % 8, len);
	copy_put(&copy, offset, bytes + offset % 8, len);
	assert_memory_equal(copy.shared, expected, SIZE);
	free(bytes);
	free(expected);
}

static void only_the_range_changes(void **state)
{
	static const uint64_t lengths[] = {
		1,       7, 8, 9, 64, BLOCK - 4, BLOCK, 4 * BLOCK - 1, 4 * BLOCK, 4 * BLOCK + 9,
		SIZE / 2};
	static const uint64_t offsets[] = {0, 4, 8, 512, BLOCK - 8, BLOCK - 1, SIZE / 2};

	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++)
		for (size_t j = 0; j < sizeof(lengths) / sizeof(lengths[0]); j++)
			put_and_check(offsets[i], lengths[j]);
}

/* A write(2) beyond the limit would end the process with SIGXFSZ. */
static void a_limit_on_the_size_of_files_does_not_matter(void **state)
{
	struct rlimit before, limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = BLOCK;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	put_and_check(2 * BLOCK, 8 * BLOCK);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

/* ---- torn words ---- */

struct writer {
	uint64_t offset, len;
	atomic_bool done;
};

/*
 * Put eight equal bytes each time, so that a mixture of two values is visible. The offset of the
 * destination within its page is 8 more than that of the source. In this case some processors
 * execute `rep movsb`, by which the kernel copies for write(2), byte by byte, so an interrupt leaves
 * a torn word.
 */
static void *put_on_and_on(void *arg)
{
	struct writer *w = arg;
	uint8_t *memory = aligned_alloc(BLOCK, w->len / BLOCK * BLOCK + 2 * BLOCK);
	uint8_t *bytes = memory + (w->offset + BLOCK - 8) % BLOCK;

	assert_non_null(memory);
	for (unsigned n = 0; !atomic_load(&w->done); n++) {
		memset(bytes, (int)(n % 255 + 1), w->len);
		copy_put(&copy, w->offset, bytes, w->len);
	}
	free(memory);
	return NULL;
}

static void look(struct writer *w, unsigned long times)
{
	const uint64_t *words = (const uint64_t *)(const void *)(copy.shared + w->offset);
	uint64_t end = clock_now_ns() + LOOK_MAX_S * NSEC_PER_SEC, last = 0;
	unsigned long changes = 0, n = 0, enough = times / 2000;

	if (enough < CHANGES_MIN)
		enough = CHANGES_MIN;
	while (n < times || changes < enough) {
		uint64_t seen = __atomic_load_n(&words[n % (w->len / 8)], __ATOMIC_RELAXED);

		if (seen != (seen & 0xff) * 0x0101010101010101ull)
			fail_msg("torn: %016llx after %lu observations", (unsigned long long)seen,
				 n);
		changes += seen != last;
		last = seen;
		if (++n % 65536 == 0 && clock_now_ns() > end)
			break;
	}
	print_message("%llu bytes at %llu: %lu observations, %lu changes\n",
		      (unsigned long long)w->len, (unsigned long long)w->offset, n, changes);
	assert_true(n >= times && changes >= enough);
}

static void an_aligned_word_is_never_torn(void **state)
{
	static const struct {
		uint64_t offset, len;
	} places[] = {{0, BLOCK}, {8, 512}, {BLOCK - 264, 1000}, {24, 64 << 10}};
	const char *more = getenv("SYSTEM_OBSERVATIONS");
	unsigned long times = more ? strtoul(more, NULL, 10) : OBSERVATIONS;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct writer w = {.offset = places[i].offset, .len = places[i].len};
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, put_on_and_on, &w), 0);
		look(&w, times / 4);
		atomic_store(&w.done, true);
		pthread_join(thread, NULL);
	}
}

/* Wait, up to a limit, until the kernel writes the bytes to the medium. Returns true if it does. */
static bool leaves(int fd, off_t at, size_t len)
{
	for (int ms = 0; medium_dirty(fd, at, len) != 0 && ms < WRITE_OUT_MAX_MS; ms++)
		usleep(1000);
	return medium_dirty(fd, at, len) == 0;
}

static void need_medium(void)
{
	if (medium_is_behind(copy.fd))
		return;
	print_message("no page cache with a medium here\n");
	skip();
}

/* A flush writes back only its own bytes, not those that another thread writes meanwhile. */
static void what_is_written_out_leaves_at_once(void **state)
{
	const struct mirror_range v[] = {{0, BLOCK}, {2 * BLOCK, BLOCK}};
	_Alignas(8) uint8_t bytes[4 * BLOCK] = {7};

	need_medium();
	copy_put(&copy, 0, bytes, 4 * BLOCK);
	copy_put(&copy, SIZE / 2, bytes, BLOCK);
	assert_true(medium_dirty(copy.fd, 0, 3 * BLOCK) > 0);
	copy_write_out(&copy, v, 2);
	assert_true(leaves(copy.fd, 0, 3 * BLOCK));
	assert_true(medium_dirty(copy.fd, SIZE / 2, BLOCK) > 0);
	assert_int_equal(copy_persist(&copy, v, 2), 0);
	assert_int_equal(medium_dirty(copy.fd, SIZE / 2, BLOCK), 0);
}

static void a_direct_mapping_is_not_written_out(void **state)
{
	const struct mirror_range v = {0, BLOCK};
	_Alignas(8) uint8_t bytes[BLOCK] = {7};

	need_medium();
	copy.is_direct = true;
	copy_put(&copy, 0, bytes, BLOCK);
	copy_write_out(&copy, &v, 1);
	assert_true(medium_dirty(copy.fd, 0, BLOCK) > 0);
	assert_int_equal(copy_persist(&copy, &v, 1), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(only_the_range_changes),
		TEST(a_limit_on_the_size_of_files_does_not_matter),
		TEST(what_is_written_out_leaves_at_once),
		TEST(a_direct_mapping_is_not_written_out),
		TEST(an_aligned_word_is_never_torn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
