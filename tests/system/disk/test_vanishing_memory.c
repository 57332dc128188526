/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_vanishing_memory.c -- registered memory disappears while peers write to it: another process
 * truncates the file, or the target's program removes the mapping. The target must continue to
 * work.
 */
#include "system/lib/check.h"

#include <fcntl.h>

#include "base/clock.h"
#include "system/lib/client.h"
#include "system/lib/remote.h"

#define SIZE   (4 * MIB)
#define ROUNDS (SYSTEM_SANITIZED ? 1 : 4)

/* Two processes of three connections each. */
static const char *const shares[] = {"0:3:6", "3:3:6"};

static const char path[] = "vanishing.file";

struct scene {
	struct remote target;
	struct proc writer[ARRAY_LEN(shares)];
};

static void new_file(void)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(posix_fallocate(fd, 0, SIZE), 0);
	close(fd);
}

static void sum_up(struct scene *s, struct writer_stat *sum)
{
	struct writer_stat one;

	memset(sum, 0, sizeof(*sum));
	for (size_t i = 0; i < ARRAY_LEN(shares); i++) {
		assert_int_equal(writer_ask(&s->writer[i], &one), 0);
		sum->writes += one.writes;
		sum->flushes += one.flushes;
		sum->failures += one.failures;
		sum->connects += one.connects;
	}
}

static void wait_until_writing(struct scene *s, unsigned long more)
{
	uint64_t end = clock_now_ns() + 20 * NSEC_PER_SEC;
	struct writer_stat first, now;

	sum_up(s, &first);
	do {
		assert_true(clock_now_ns() < end);
		usleep(5000);
		sum_up(s, &now);
	} while (now.writes < first.writes + more);
}

static void begin(struct scene *s, const char *crc)
{
	const char *const envs[] = {crc, NULL};
	char region[64];

	new_file();
	snprintf(region, sizeof(region), "file:%lu:0xff:%s", SIZE, path);
	remote_must_start(&s->target, envs, region, "anon:1048576:0xff");
	for (size_t i = 0; i < ARRAY_LEN(shares); i++)
		assert_int_equal(
			writer_start(&s->writer[i], SYSTEM_WRITER, s->target.port, shares[i], envs),
			0);
	wait_until_writing(s, 500);
}

/* Check that the good region still works, and that every process exits without an error. */
static void end(struct scene *s)
{
	struct client c;

	OK(client_begin(&c, 65536, s->target.port));
	memset(c.buf, 0x11, 65536);
	OK(client_write(&c, 1, 0, 65536, NULL));
	memset(c.buf, 0, 65536);
	OK(client_read(&c, 1, 65535, 1, NULL));
	OK(client_echo(&c, 64));
	client_close(&c);
	for (size_t i = 0; i < ARRAY_LEN(shares); i++)
		assert_int_equal(proc_finish(&s->writer[i]), 0);
	assert_int_equal(remote_wait_conns(&s->target, 0, 10000), 0);
	assert_int_equal(proc_finish(&s->target.proc), 0);
	unlink(path);
}

static void expect_failures(struct scene *s)
{
	uint64_t end = clock_now_ns() + 20 * NSEC_PER_SEC;
	struct writer_stat before, after;

	sum_up(s, &before);
	do {
		assert_true(clock_now_ns() < end);
		wait_until_writing(s, 200);
		sum_up(s, &after);
	} while (after.failures == before.failures);
}

static void cut_file(struct scene *s)
{
	assert_int_equal(truncate(path, 0), 0);
	expect_failures(s);
	/* The file gets its old length again, with new pages, so stores no longer fault. */
	assert_int_equal(truncate(path, SIZE), 0);
	wait_until_writing(s, 200);
}

static void unmap_region(struct scene *s)
{
	assert_string_equal(proc_ask(&s->target.proc, "unmap 0"), "ok");
	expect_failures(s);
	/* The region can be deregistered although its memory is gone. */
	assert_string_equal(proc_ask(&s->target.proc, "dereg 0"), "ok");
}

static void with_crc_on_and_off(void (*vanish)(struct scene *s))
{
	static const char *const crc[] = {"SOFTRNIC_CRC=on", "SOFTRNIC_CRC=off"};
	struct scene s;

	for (size_t i = 0; i < ROUNDS * ARRAY_LEN(crc); i++) {
		begin(&s, crc[i % ARRAY_LEN(crc)]);
		vanish(&s);
		end(&s);
	}
}

static void a_target_survives_the_truncation_of_its_file(void **state)
{
	with_crc_on_and_off(cut_file);
}

static void a_target_survives_the_unmapping_of_its_region(void **state)
{
	with_crc_on_and_off(unmap_region);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_target_survives_the_truncation_of_its_file),
		cmocka_unit_test(a_target_survives_the_unmapping_of_its_region),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
