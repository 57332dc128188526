/* SPDX-License-Identifier: BSD-3-Clause */
/* test_stopped.c -- a target that is stopped for some seconds under load is not reported lost. */
#include "system/lib/check.h"

#include <fcntl.h>
#include <signal.h>

#include "base/clock.h"
#include "system/crash/recorder.h"
#include "system/lib/remote.h"
#include "system/lib/traffic.h"

#define FILE_SIZE (1 * MIB)
#define CONNS     4
#define STOP_MS   3000

static const char path[] = "stopped.file";

struct scene {
	struct remote target;
	struct traffic traffic[CONNS];
};

static void new_file(void)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(posix_fallocate(fd, 0, FILE_SIZE), 0);
	close(fd);
}

static void begin(struct scene *s)
{
	remote_must_start(&s->target, NULL, "anon:4194304:0xff");
	for (unsigned i = 0; i < CONNS; i++)
		OK(traffic_open(&s->traffic[i], s->target.port, i, CONNS));
}

static void write_for(struct scene *s, int ms)
{
	uint64_t end = clock_now_ns() + (uint64_t)ms * NSEC_PER_MS;

	while (clock_now_ns() < end) {
		for (int i = 0; i < CONNS; i++)
			traffic_step(&s->traffic[i]);
		usleep(100);
	}
}

static unsigned long total_writes(const struct scene *s)
{
	unsigned long sum = 0;

	for (int i = 0; i < CONNS; i++)
		sum += s->traffic[i].writes;
	return sum;
}

static void expect_progress(struct scene *s)
{
	uint64_t end = clock_now_ns() + 20 * NSEC_PER_SEC;
	unsigned long before = total_writes(s);

	while (total_writes(s) <= before + 100 && clock_now_ns() < end)
		write_for(s, 100);
	assert_true(total_writes(s) > before + 100);
	for (int i = 0; i < CONNS; i++) {
		assert_int_equal(s->traffic[i].failures, 0);
		assert_int_equal(s->traffic[i].connects, 1);
	}
}

static void everything_goes_on_after_a_stop(void **state)
{
	static struct scene s;

	begin(&s);
	write_for(&s, 300);
	proc_signal(&s.target.proc, SIGSTOP);
	write_for(&s, STOP_MS);
	proc_signal(&s.target.proc, SIGCONT);
	expect_progress(&s);
	for (int i = 0; i < CONNS; i++)
		traffic_close(&s.traffic[i]);
	assert_int_equal(proc_finish(&s.target.proc), 0);
}

static void expect_records(uint64_t count)
{
	uint8_t want[RECORD_SIZE], got[RECORD_SIZE];
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	for (uint64_t n = 0; n < count; n++) {
		record_make(want, n);
		assert_int_equal(pread(fd, got, sizeof(got), (off_t)(n * RECORD_SIZE)),
				 sizeof(got));
		assert_memory_equal(want, got, sizeof(got));
	}
	close(fd);
}

static void record(struct recorder *r, uint64_t count)
{
	uint64_t end = r->acked + count;

	while (r->acked < end)
		OK(recorder_step(r));
}

static void no_record_is_lost_in_a_stop(void **state)
{
	static struct recorder r;
	struct remote target;
	char region[64];

	new_file();
	snprintf(region, sizeof(region), "file:%lu:0xff:%s", FILE_SIZE, path);
	remote_must_start(&target, NULL, region);
	OK(recorder_open(&r, 0));
	OK(client_connect(&r.client, target.port, NULL));
	for (int i = 0; i < 20; i++) {
		record(&r, 20);
		proc_signal(&target.proc, SIGSTOP);
		while (r.next - r.acked < RECORD_DEPTH)
			OK(recorder_post(&r));
		usleep(20000);
		proc_signal(&target.proc, SIGCONT);
	}
	recorder_drain(&r);
	assert_int_equal(r.acked, r.next);
	expect_records(r.acked);
	client_close(&r.client);
	assert_int_equal(proc_finish(&target.proc), 0);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_goes_on_after_a_stop),
		cmocka_unit_test(no_record_is_lost_in_a_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
