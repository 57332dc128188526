/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_dereg.c -- regions are registered and deregistered while peers continually write to them.
 * After a deregistration has returned, no peer writes to the memory, so the program can immediately
 * reuse it.
 */
#include "system/lib/check.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "system/lib/remote.h"
#include "system/lib/target.h"

#define SIZE       (1 * MIB)
#define ROUNDS     (SYSTEM_SANITIZED ? 40 : 200)
#define OTHER_BYTE 0x6b
#define HIT_MAX_MS 20000 /* a peer can need 2 s to disconnect */

/* Two processes of three connections each. */
static const char *const shares[] = {"0:3:6", "3:3:6"};

static const char path[] = "dereg.file";

static struct target target;
static struct proc writer[ARRAY_LEN(shares)];

static uint8_t *map(int fd)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	void *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, flags, fd, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static void serve_for(unsigned us)
{
	uint64_t end = clock_now_ns() + us * 1000ull;

	while (clock_now_ns() < end)
		target_step(&target, 1);
}

/* Peers can write to this memory meanwhile, so hide the race from ThreadSanitizer. */
__attribute__((no_sanitize("thread"))) static bool all_are(const uint8_t *p, uint8_t byte)
{
	const volatile uint64_t *word = (const volatile uint64_t *)p;
	uint64_t want = 0x0101010101010101ull * byte;

	for (size_t i = 0; i < SIZE / sizeof(*word); i++)
		if (word[i] != want)
			return false;
	return true;
}

/* Map other memory at the same address, to which peers have no access, and expect no write to
 * it. */
static void expect_no_write(uint8_t *p)
{
	void *other = mmap(p, SIZE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE, -1, 0);

	assert_ptr_equal(other, p);
	memset(p, OTHER_BYTE, SIZE);
	serve_for(2000);
	assert_true(all_are(p, OTHER_BYTE));
}

/* A deregistration interrupts some writes. */
static void round_of(int fd, unsigned serve_us, bool reuse)
{
	uint64_t end = clock_now_ns() + HIT_MAX_MS * NSEC_PER_MS;
	uint8_t *p = map(fd);
	bool hit;

	memset(p, 0, SIZE);
	OK(target_replace(&target, 0, p, SIZE, 0xff));
	do
		serve_for(serve_us);
	while (!(hit = !all_are(p, 0)) && clock_now_ns() < end);
	assert_true(hit);
	OK(target_dereg(&target, 0));
	if (reuse)
		expect_no_write(p);
	assert_int_equal(munmap(p, SIZE), 0);
}

static int start(void **state)
{
	int ret = target_open(&target);

	if (!ret)
		ret = target_add_anon(&target, SIZE, 0xff, false);
	for (size_t i = 0; !ret && i < ARRAY_LEN(shares); i++)
		ret = writer_start(&writer[i], SYSTEM_WRITER, target.port, shares[i], NULL);
	if (ret)
		return ret;
	munmap(target.region[0].ptr, SIZE);
	target.region[0].ptr = NULL;
	return target_dereg(&target, 0);
}

static int stop(void **state)
{
	int status = 0;

	for (size_t i = 0; i < ARRAY_LEN(shares); i++) {
		/* Some writers disconnect properly, and this process serves their disconnect. */
		close(writer[i].in);
		writer[i].in = -1;
	}
	for (int k = 0; k < 1000 && target.n_conns > 0; k++)
		serve_for(5000);
	for (size_t i = 0; i < ARRAY_LEN(shares); i++) {
		int one = proc_wait(&writer[i], 10000);

		if (one == -ETIMEDOUT)
			proc_kill(&writer[i]);
		status |= one;
	}
	target_close(&target);
	return status;
}

static void rounds(int fd)
{
	unsigned n = env_or("SYSTEM_ROUNDS", ROUNDS);

	for (unsigned i = 0; i < n; i++)
		round_of(fd, 500 + i * 997 % 4000, i & 1);
}

static void nothing_is_written_after_a_deregistration(void **state)
{
	rounds(-1);
}

/* The same test for a file, while write-backs are in progress. */
static void nothing_is_written_after_a_file_was_deregistered(void **state)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(posix_fallocate(fd, 0, SIZE), 0);
	rounds(fd);
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_written_after_a_deregistration),
		cmocka_unit_test(nothing_is_written_after_a_file_was_deregistered),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
