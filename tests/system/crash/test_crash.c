/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_crash.c -- one side is killed at a random time. The acknowledged records must be in the
 * file.
 *
 * SYSTEM_ROUNDS is the number of rounds; SYSTEM_SEED repeats the random times of an earlier run.
 */
#include "system/lib/check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "recorder.h"
#include "system/lib/remote.h"

#define FILE_SIZE   (4 * MIB)
#define RECORDS     (FILE_SIZE / RECORD_SIZE)
#define ROUNDS      (SYSTEM_SANITIZED ? 6 : 20)
#define LIFE_MAX_US 60000

static const char path[] = "crash.file";
static uint64_t seed;

static uint64_t next_random(void)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return seed * 0x2545f4914f6cdd1dull;
}

static void new_file(void)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(posix_fallocate(fd, 0, FILE_SIZE), 0);
	close(fd);
}

/* The target has the file mapped, so keep the file and change its content. */
static void zero_file(void)
{
	static const uint8_t zeros[RECORD_SIZE * 1024];
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	for (size_t at = 0; at < FILE_SIZE; at += sizeof(zeros))
		assert_int_equal(pwrite(fd, zeros, sizeof(zeros), (off_t)at), sizeof(zeros));
	close(fd);
}

/* Check that every record below the word is in the file, and that the word is at least the number
 * of acknowledged records. */
static void expect_records(uint64_t acked)
{
	uint8_t want[RECORD_SIZE], got[RECORD_SIZE];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t word;

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &word, sizeof(word), FILE_SIZE - sizeof(word)), sizeof(word));
	assert_true(word >= acked);
	for (uint64_t n = 0; n < word; n++) {
		record_make(want, n);
		assert_int_equal(pread(fd, got, sizeof(got), (off_t)(n * RECORD_SIZE)),
				 sizeof(got));
		if (memcmp(want, got, sizeof(got)) != 0)
			fail_msg("record %llu is not in the file, %llu of %llu are acknowledged",
				 (unsigned long long)n, (unsigned long long)acked,
				 (unsigned long long)word);
	}
	close(fd);
}

static void start_target(struct remote *target)
{
	char region[64];

	snprintf(region, sizeof(region), "file:%lu:0xff:%s", FILE_SIZE, path);
	remote_must_start(target, NULL, region);
}

static uint64_t some_us(void)
{
	return next_random() % LIFE_MAX_US;
}

static void record_until_the_target_is_killed(struct recorder *r, struct remote *target)
{
	uint64_t kill_at;
	bool killed = false;

	OK(client_connect(&r->client, target->port, NULL));
	kill_at = clock_now_ns() + some_us() * 1000;
	for (;;) {
		if (!killed && clock_now_ns() >= kill_at) {
			proc_signal(&target->proc, SIGKILL);
			killed = true;
		}
		int ret = recorder_step(r);
		if (ret) {
			assert_true(killed);
			assert_int_not_equal(ret, CLIENT_TIMEOUT);
			break;
		}
	}
	recorder_drain(r);
}

static void expect_the_end(struct recorder *r)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;

	OK(client_wait_event(r->client.conn, &event, 20000));
	assert_true(event == RPMA_CONN_CLOSED || event == RPMA_CONN_LOST);
	client_drop(&r->client);
}

static void a_killed_target_keeps_what_it_acknowledged(void **state)
{
	unsigned rounds = env_or("SYSTEM_ROUNDS", ROUNDS);
	static struct recorder r;
	unsigned long verified;
	struct remote target;
	uint64_t total = 0;

	new_file();
	OK(recorder_open(&r, 0));
	for (unsigned round = 0; round < rounds; round++) {
		uint64_t before = r.acked;

		start_target(&target);
		record_until_the_target_is_killed(&r, &target);
		assert_true(WIFSIGNALED(proc_wait(&target.proc, 20000)));
		expect_the_end(&r);
		expect_records(r.acked);
		total += r.acked - before;
		r.next = r.acked;
		if (r.acked > RECORDS / 2) {
			new_file();
			r.next = r.acked = 0;
		}
	}
	verified = r.verified;
	client_close(&r.client);
	unlink(path);
	print_message("%u targets killed, %llu records, %lu verified\n", rounds,
		      (unsigned long long)total, verified);
}

/* Returns the last count that the process wrote. A pipe delivers every byte that was written before
 * the kill. */
static uint64_t last_count(struct proc *p, uint64_t before)
{
	uint64_t counts[1024], last = before;
	ssize_t n;

	while ((n = read(p->out, counts, sizeof(counts))) > 0)
		last = counts[(size_t)n / sizeof(counts[0]) - 1];
	return last;
}

static uint64_t record_for_a_moment(struct remote *target, uint64_t first)
{
	char number[24];
	struct proc p;
	uint64_t count;

	snprintf(number, sizeof(number), "%llu", (unsigned long long)first);
	assert_int_equal(
		proc_start(&p, (const char *[]){SYSTEM_RECORDER, target->port, number, NULL}, NULL),
		0);
	/* Wait for the first acknowledgement, so that requests are outstanding at the kill. */
	assert_int_equal(poll(&(struct pollfd){.fd = p.out, .events = POLLIN}, 1, 20000), 1);
	usleep((useconds_t)some_us());
	proc_signal(&p, SIGKILL);
	count = last_count(&p, first);
	assert_true(WIFSIGNALED(proc_wait(&p, 20000)));
	return count;
}

static void a_killed_initiator_leaves_a_target_that_serves_the_next(void **state)
{
	unsigned rounds = env_or("SYSTEM_ROUNDS", ROUNDS);
	struct remote target;
	uint64_t acked = 0, total = 0;

	new_file();
	start_target(&target);
	for (unsigned round = 0; round < rounds; round++) {
		uint64_t before = acked;

		acked = record_for_a_moment(&target, before);
		expect_records(acked);
		total += acked - before;
		/* Bytes that the killed initiator has sent must not arrive after bytes of the next
		 * initiator. */
		assert_int_equal(remote_wait_conns(&target, 0, 20000), 0);
		if (acked > RECORDS / 2) {
			zero_file();
			acked = 0;
		}
	}
	assert_int_equal(remote_wait_conns(&target, 0, 20000), 0);
	assert_int_equal(proc_finish(&target.proc), 0);
	unlink(path);
	print_message("%u initiators killed, %llu records\n", rounds, (unsigned long long)total);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_killed_target_keeps_what_it_acknowledged),
		cmocka_unit_test(a_killed_initiator_leaves_a_target_that_serves_the_next),
	};

	seed = env_or("SYSTEM_SEED", (unsigned)time(NULL));
	printf("SYSTEM_SEED=%llu\n", (unsigned long long)seed);
	seed = (seed + 1) * 0x9e3779b97f4a7c15ull;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
