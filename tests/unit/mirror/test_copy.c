/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A flush writes into this host's copy by pwrite(2) or by stores, while another process reads the
 * copy through a mapping. SYSTEM_OBSERVATIONS is the number of reads.
 */
#include "lib/unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
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
#define OBSERVATIONS 2000000ul
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

static void need_file(void)
{
	if (copy_takes_writes(&copy))
		return;
	print_message("no page cache with a medium here\n");
	skip();
}

static void aligned_blocks_are_written(void **state)
{
	_Alignas(8) uint8_t bytes[BLOCK];

	need_file();
	memset(bytes, 7, sizeof(bytes));
	assert_true(copy_put_by_write(&copy, 512, bytes, BLOCK));
	assert_memory_equal(copy.shared + 512, bytes, BLOCK);
	assert_int_equal(copy.shared[511], 0);
	assert_int_equal(copy.shared[512 + BLOCK], 0);
}

static void words_and_what_is_not_aligned_are_stored(void **state)
{
	_Alignas(8) uint8_t bytes[BLOCK + 8];

	memset(bytes, 7, sizeof(bytes));
	assert_false(copy_put_by_write(&copy, 0, bytes, 8));
	assert_false(copy_put_by_write(&copy, 4, bytes + 4, BLOCK));
	assert_false(copy_put_by_write(&copy, 0, bytes, BLOCK - 4));
	assert_int_equal(copy.shared[0], 0);
	copy_put(&copy, 4, bytes + 4, BLOCK);
	assert_int_equal(copy.shared[3], 0);
	assert_memory_equal(copy.shared + 4, bytes + 4, BLOCK);
	assert_int_equal(copy.shared[4 + BLOCK], 0);
}

/* A write beyond the limit would end the process with SIGXFSZ. */
static void a_limit_on_the_size_of_files_leaves_stores(void **state)
{
	struct rlimit before, limit;

	need_file();
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = SIZE - 1;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_false(copy_takes_writes(&copy));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_true(copy_takes_writes(&copy));
}

/* The application has closed the library's descriptor, and opened another file that got its
 * number. */
static void another_file_is_not_written_to(void **state)
{
	int other = open("/dev/null", O_RDWR | O_CLOEXEC), kept;

	need_file();
	kept = dup(copy.fd);
	assert_int_equal(dup2(other, copy.fd), copy.fd);
	assert_false(copy_takes_writes(&copy));
	assert_int_equal(dup2(kept, copy.fd), copy.fd);
	assert_true(copy_takes_writes(&copy));
	close(kept);
	close(other);
}

static void a_write_that_fails_leaves_stores(void **state)
{
	_Alignas(8) uint8_t bytes[BLOCK] = {0};
	int fd = open("copy.file", O_RDONLY | O_CLOEXEC);
	struct copy unwritable = {.fd = fd, .size = SIZE};

	assert_true(fd >= 0);
	assert_false(copy_put_by_write(&unwritable, 0, bytes, BLOCK));
	close(fd);
}

/* ---- torn words ---- */

struct writer {
	uint64_t offset, len;
	atomic_bool done;
};

/* Write eight equal bytes each time, so that a mixture of two values is visible. */
static void *write_on_and_on(void *arg)
{
	struct writer *w = arg;
	uint8_t *bytes = malloc(w->len + 8);

	assert_non_null(bytes);
	for (unsigned n = 0; !atomic_load(&w->done); n++) {
		/* like staging memory, the source is at a multiple of eight that is no multiple of
		 * sixteen */
		memset(bytes + 8, (int)(n % 255 + 1), w->len);
		assert_true(copy_put_by_write(&copy, w->offset, bytes + 8, w->len));
	}
	free(bytes);
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

	need_file();
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct writer w = {.offset = places[i].offset, .len = places[i].len};
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, write_on_and_on, &w), 0);
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

/* A flush writes back only its own bytes, not those that another thread writes meanwhile. */
static void what_is_written_out_leaves_at_once(void **state)
{
	const struct mirror_range v[] = {{0, BLOCK}, {2 * BLOCK, BLOCK}};
	_Alignas(8) uint8_t bytes[4 * BLOCK] = {7};

	need_file();
	if (!medium_is_behind(copy.fd))
		skip();
	assert_true(copy_put_by_write(&copy, 0, bytes, 4 * BLOCK));
	assert_true(copy_put_by_write(&copy, SIZE / 2, bytes, BLOCK));
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

	need_file();
	if (!medium_is_behind(copy.fd))
		skip();
	copy.is_direct = true;
	assert_true(copy_put_by_write(&copy, 0, bytes, BLOCK));
	copy_write_out(&copy, &v, 1);
	assert_true(medium_dirty(copy.fd, 0, BLOCK) > 0);
	assert_int_equal(copy_persist(&copy, &v, 1), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(aligned_blocks_are_written),
		TEST(words_and_what_is_not_aligned_are_stored),
		TEST(a_limit_on_the_size_of_files_leaves_stores),
		TEST(another_file_is_not_written_to),
		TEST(a_write_that_fails_leaves_stores),
		TEST(what_is_written_out_leaves_at_once),
		TEST(a_direct_mapping_is_not_written_out),
		TEST(an_aligned_word_is_never_torn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
