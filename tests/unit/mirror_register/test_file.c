/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "lib/unit.h"
#include "mirror/register/register.h"
#include "records.h"
#include "semantics.h"

#define LIMIT_MS 60000 /* longer than any test waits, unless the machine stands still */

struct place {
	char folder[64], file[128], uri[160];
};

static struct mirror_register *place_open(const struct place *p)
{
	struct mirror_register *r;
	struct error err;

	if (register_open(p->uri, "orders", LIMIT_MS, &r, &err))
		fail_msg("%s", err.text);
	return r;
}

static int place_init(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	/* Use memory for the file: ten thousand swaps test the lock, not a disk. */
	strcpy(p->folder,
	       access("/dev/shm", W_OK) ? "register-XXXXXX" : "/dev/shm/register-XXXXXX");
	if (!mkdtemp(p->folder))
		return -1;
	snprintf(p->file, sizeof(p->file), "%s/r", p->folder);
	if (p->folder[0] != '/') {
		char *here = realpath(p->folder, NULL);

		snprintf(p->file, sizeof(p->file), "%.100s/r", here);
		free(here);
	}
	snprintf(p->uri, sizeof(p->uri), "file:%s", p->file);
	*state = p;
	return 0;
}

static int place_fini(void **state)
{
	struct place *p = *state;
	static const char *const ends[] = {"", ".lock", ".new", ".old"};
	char path[160];

	for (unsigned i = 0; i < ARRAY_LEN(ends); i++) {
		snprintf(path, sizeof(path), "%s%s", p->file, ends[i]);
		unlink(path);
	}
	rmdir(p->folder);
	free(p);
	return 0;
}

static void it_keeps_the_contract(void **state)
{
	struct mirror_register *r = place_open(*state), *other = place_open(*state);

	semantics_check(r, other);
	register_close(r);
	register_close(other);
}

/* An older copy of the file repeats revisions, but with other values. */
static void a_restored_file_is_noticed_by_its_value(void **state)
{
	const struct place *p = *state;
	struct mirror_register *r = place_open(p);
	struct register_entry now, restored;
	struct mirror_record next, other;
	char copy[400];
	struct error err;

	semantics_create(r, &now);
	snprintf(copy, sizeof(copy), "cp %s %s.old", p->file, p->file);
	assert_int_equal(system(copy), 0);
	next = other = now.record;
	record_next(&next);
	record_next(&other);
	restored = now;
	assert_int_equal(register_swap(r, &now, &next, NULL, &now, &err), REGISTER_DONE);
	snprintf(copy, sizeof(copy), "cp %s.old %s", p->file, p->file);
	assert_int_equal(system(copy), 0);
	assert_int_equal(register_swap(r, &restored, &other, NULL, &restored, &err), REGISTER_DONE);
	assert_int_equal(restored.revision, now.revision);
	/* The records of both branches have the same revision. A primary of the first branch must
	 * be refused. */
	record_next(&next);
	assert_int_equal(register_swap(r, &now, &next, NULL, &now, &err), REGISTER_CHANGED);
	assert_int_equal(now.record.nonce, other.nonce);
	register_close(r);
}

static void a_foreign_file_is_left_alone(void **state)
{
	static const char *const texts[] = {
		"",
		"hello\n",
		"rpmirror register 2\n",
		"rpmirror register 1\nrevision 1\nrecord 1 {}\nalive 0\nmore\n",
		"rpmirror register 1\nrevision 1\nrecord 1\nalive 0\n",
		"rpmirror register 1\nrevision 1\nrecord 1 {}\nalive 0\n"};
	const struct place *p = *state;
	struct mirror_register *r = place_open(p);
	struct register_entry now;
	struct mirror_record first;
	struct stat before, after;
	struct error err;

	record_init(&first, "orders");
	for (unsigned i = 0; i < ARRAY_LEN(texts); i++) {
		FILE *f = fopen(p->file, "w");

		fputs(texts[i], f);
		fclose(f);
		stat(p->file, &before);
		assert_int_equal(register_get(r, &now, &err), -EPROTO);
		assert_int_not_equal(register_create(r, &first, &now, &err), REGISTER_DONE);
		stat(p->file, &after);
		assert_int_equal(before.st_ino, after.st_ino);
	}
	register_close(r);
}

static void a_held_lock_ends_a_call_in_time(void **state)
{
	const struct place *p = *state;
	struct register_entry now;
	struct mirror_record next;
	struct mirror_register *r;
	char path[160];
	struct error err;
	int fd;

	assert_int_equal(register_open(p->uri, "orders", 50, &r, &err), 0);
	semantics_create(r, &now);
	next = now.record;
	record_next(&next);
	snprintf(path, sizeof(path), "%s.lock", p->file);
	fd = open(path, O_RDWR);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(register_get(r, &now, &err), -ETIMEDOUT);
	assert_int_equal(register_swap(r, &now, &next, NULL, &now, &err), REGISTER_FAILED);
	close(fd);
	assert_int_equal(register_get(r, &now, &err), 0);
	register_close(r);
}

/* Make `count` swaps that are DONE; each raises seq by one. Swaps of other processes come in
 * between. */
static int swap_many(const struct place *p, unsigned count)
{
	struct mirror_register *r = place_open(p);
	struct register_entry *now = calloc(1, sizeof(*now));
	struct mirror_record *next = calloc(1, sizeof(*next));
	struct error err;
	int rc = register_get(r, now, &err);

	while (!rc && count) {
		enum register_result result;

		*next = now->record;
		record_next(next);
		result = register_swap(r, now, next, NULL, now, &err);
		if (result == REGISTER_DONE)
			count--;
		else if (result != REGISTER_CHANGED)
			rc = -1;
	}
	register_close(r);
	free(now);
	free(next);
	return rc;
}

static void swaps_of_two_processes_are_neither_lost_nor_doubled(void **state)
{
	const struct place *p = *state;
	struct mirror_register *r = place_open(p);
	struct register_entry now;
	struct error err;
	int status;
	pid_t child;

	semantics_create(r, &now);
	child = fork();
	if (!child)
		_exit(swap_many(p, 5000) ? 1 : 0);
	assert_int_equal(swap_many(p, 5000), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(register_get(r, &now, &err), 0);
	assert_int_equal(now.record.view.seq, 10000);
	register_close(r);
}

/* Swap until the process is killed, and send the seq of each swap that was DONE. */
static void swap_and_tell(const struct place *p, int fd)
{
	struct mirror_register *r = place_open(p);
	static struct register_entry now;
	static struct mirror_record next;
	struct error err;

	if (register_get(r, &now, &err))
		_exit(1);
	for (;;) {
		next = now.record;
		record_next(&next);
		if (register_swap(r, &now, &next, NULL, &now, &err) != REGISTER_DONE ||
		    write(fd, &now.record.view.seq, 8) != 8)
			_exit(1);
	}
}

static uint64_t kill_a_swapper(const struct place *p, uint64_t *seed)
{
	struct timespec pause = {.tv_nsec = (long)(test_random(seed) % 1000000)};
	uint64_t told = 0, next;
	int ends[2], status;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (!child)
		swap_and_tell(p, ends[1]);
	close(ends[1]);
	assert_int_equal(read(ends[0], &told, 8), 8); /* the other process has begun */
	nanosleep(&pause, NULL);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	while (read(ends[0], &next, 8) == 8)
		told = next;
	close(ends[0]);
	return told;
}

static void a_killed_swapper_leaves_all_or_nothing(void **state)
{
	const struct place *p = *state;
	struct mirror_register *r = place_open(p);
	struct register_entry now;
	uint64_t seed = 0xfeed;
	struct error err;

	semantics_create(r, &now);
	for (int round = 0; round < 100; round++) {
		uint64_t told = kill_a_swapper(p, &seed);

		assert_int_equal(register_get(r, &now, &err), 0);
		if (now.record.view.seq != told && now.record.view.seq != told + 1)
			fail_msg("round %d: seq %llu, DONE was %llu", round,
				 (unsigned long long)now.record.view.seq, (unsigned long long)told);
	}
	register_close(r);
}

/* The watch returns for a change that another process makes while it waits, and for an earlier
 * change. */
static void a_watch_sees_changes(void **state)
{
	const struct place *p = *state;
	struct mirror_register *r = place_open(p);
	struct register_entry now;
	struct error err;
	int status, wake[2];
	pid_t child;

	semantics_create(r, &now);
	assert_true(register_watch(r, now.revision - 1, LIMIT_MS, -1));
	assert_false(register_watch(r, now.revision, 1, -1));
	child = fork();
	if (!child)
		_exit(swap_many(p, 1) ? 1 : 0);
	assert_true(register_watch(r, now.revision, LIMIT_MS, -1));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(register_get(r, &now, &err), 0);
	assert_int_equal(now.record.view.seq, 1);
	assert_int_equal(pipe(wake), 0);
	assert_int_equal(write(wake[1], "x", 1), 1);
	assert_false(register_watch(r, now.revision, LIMIT_MS, wake[0]));
	close(wake[0]);
	close(wake[1]);
	register_close(r);
}

static void its_health_is_the_files(void **state)
{
	struct mirror_register *r = place_open(*state);
	struct register_health health;

	register_health(r, &health);
	assert_string_equal(health.kind, "file");
	assert_int_equal(health.members, 1);
	assert_int_equal(health.healthy, 1);
	register_close(r);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_init, place_fini)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_keeps_the_contract),
		TEST(a_restored_file_is_noticed_by_its_value),
		TEST(a_foreign_file_is_left_alone),
		TEST(a_held_lock_ends_a_call_in_time),
		TEST(swaps_of_two_processes_are_neither_lost_nor_doubled),
		TEST(a_killed_swapper_leaves_all_or_nothing),
		TEST(a_watch_sees_changes),
		TEST(its_health_is_the_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
