/* SPDX-License-Identifier: BSD-3-Clause */
/* Members return after an absence, with real daemons. The tests check how many bytes are sent, and
 * whether the copies are equal at the end, whichever process is killed meanwhile. */
#include <fcntl.h>
#include <librpmirror.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps.h"
#include "mirror/core/meta.h"
#include "system/lib/cases.h"
#include "system/lib/check.h"

#define PATIENCE_MS 60000
#define SIZE        (8u << 20)
#define BLOCK       4096

static uint8_t *read_copy(unsigned host)
{
	uint8_t *bytes = malloc(SIZE);
	FILE *file = fopen(hosts.hosts[host].data, "re");

	assert_non_null(bytes);
	assert_non_null(file);
	assert_int_equal(fread(bytes, 1, SIZE, file), SIZE);
	fclose(file);
	return bytes;
}

static void assert_copies_are_equal(void)
{
	uint8_t *first = read_copy(0);

	for (unsigned host = 1; host < 3; host++) {
		uint8_t *other = read_copy(host);

		assert_memory_equal(first, other, SIZE);
		free(other);
	}
	free(first);
}

static void await_insync(unsigned host, unsigned mask)
{
	char wanted[32];
	const char *answer = "";

	snprintf(wanted, sizeof(wanted), " insync %u ", mask);
	for (int waited = 0; waited < PATIENCE_MS; waited += 10) {
		answer = proc_ask(&apps[host], "state");
		assert_non_null(answer);
		if (strstr(answer, wanted))
			return;
		usleep(10000);
	}
	fail_msg("%s, and never%s", answer, wanted);
}

static void test_a_replica_that_returns_gets_what_differs(void **state)
{
	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "map");
	ask(0, "durable 7", "put 0 1");
	host_kill(&hosts, 2);
	for (unsigned i = 1; i <= 20; i++)
		ask(0, "durable 3", "put %u %u", i * 100 * BLOCK, i);
	host_start(&hosts, 2, NULL);
	await_insync(0, 7);
	ask(0, "durable 7 flags 0", "put 8 9");
	assert_copies_are_equal();
}

static void test_a_target_that_is_killed_goes_on(void **state)
{
	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "map");
	host_kill(&hosts, 1);
	for (unsigned i = 0; i < 200; i++)
		ask(0, "durable 5", "put %u %u", i * 8 * BLOCK, i + 1);
	for (unsigned round = 0; round < 5; round++) {
		host_start(&hosts, 1, NULL);
		usleep(round * 20000);
		host_kill(&hosts, 1);
		ask(0, "durable", "put 8 %u", round);
	}
	host_start(&hosts, 1, NULL);
	await_insync(0, 7);
	assert_copies_are_equal();
}

/*
 * Offset of a byte that is never flushed, in an unchanged extent: only a comparison of the copies
 * finds a change there.
 */
#define UNTOUCHED (SIZE - 5 * BLOCK)

/* Change this byte like a bad medium. Restore the file's modification time, because a daemon would
 * otherwise detect the change. */
static void spoil(unsigned host)
{
	const char *path = hosts.hosts[host].data;
	FILE *file = fopen(path, "r+e");
	struct timespec times[2];
	struct stat st;

	assert_non_null(file);
	assert_int_equal(stat(path, &st), 0);
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	assert_int_equal(fseek(file, UNTOUCHED, SEEK_SET), 0);
	assert_int_equal(fputc(77, file), 77);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* Only blocks of the bitmap were compared: the copies are equal except for that byte. */
static void assert_not_compared(unsigned host)
{
	for (unsigned i = 0; i < 3; i++) {
		uint8_t *bytes = read_copy(i), *first = read_copy(0);

		assert_int_equal(bytes[UNTOUCHED], i == host ? 77 : 0);
		assert_memory_equal(bytes, first, UNTOUCHED);
		free(bytes);
		free(first);
	}
}

/* The source's process is killed in the middle of the resync, and the next primary continues the
 * resync. */
static void test_a_source_that_is_killed_is_followed_by_another(void **state)
{
	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "map");
	host_kill(&hosts, 1);
	for (unsigned i = 0; i < 200; i++)
		ask(0, "durable 5", "put %u %u", i * 7 * BLOCK, i + 1);
	spoil(1);
	host_start(&hosts, 1, NULL);
	proc_kill(&apps[0]);
	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "map-wait");
	await_insync(0, 7);
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(atoi(proc_ask(&apps[0], "get %u", i * 7 * BLOCK)), i + 1);
	assert_not_compared(1);
}

/* Both sides are restarted. The primary ends once by an unmap, and once by a kill. */
static void test_what_a_replica_lacks_outlasts_restarts(void **state)
{
	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "map");
	host_kill(&hosts, 2);
	ask(0, "durable 3", "put %u 1", 3 * BLOCK);
	spoil(2);
	ask(0, "ok", "unmap");
	ask(0, "ok", "map");
	ask(0, "durable 3", "put %u 2", 4 * BLOCK);
	proc_kill(&apps[0]);
	host_kill(&hosts, 0);
	host_start(&hosts, 0, NULL);
	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "map-wait");
	ask(0, "durable 3", "put %u 3", 5 * BLOCK);
	host_start(&hosts, 2, NULL);
	await_insync(0, 7);
	assert_not_compared(2);
}

static void test_a_former_primary_returns_with_what_was_not_flushed(void **state)
{
	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "map");
	ask(0, "durable 7", "put 64 1");
	ask(0, "ok", "store 64 2");
	host_kill(&hosts, 0);
	proc_kill(&apps[0]);
	spoil(0);
	app_start(&apps[1], &hosts, 1, NULL);
	ask(1, "ok", "map-wait");
	ask(1, "durable 6", "put 128 3");
	host_start(&hosts, 0, NULL);
	await_insync(1, 7);
	ask(1, "durable 7 flags 0", "put 192 4");
	ask(1, "1", "get 64");
	assert_not_compared(0);
}

/* Persist function for changes of the metadata of a host whose daemon does not run. These changes
 * need not be durable. */
static int no_persist(void *arg, uint64_t offset, uint64_t len)
{
	return 0;
}

static void *map_meta(unsigned host, struct meta *meta)
{
	struct meta_store store = {.len = meta_size_for(SIZE), .persist = no_persist};
	int fd = open(hosts.hosts[host].meta, O_RDWR | O_CLOEXEC);
	struct error err = {0};

	store.base = mmap(NULL, store.len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	assert_ptr_not_equal(store.base, MAP_FAILED);
	if (meta_load(meta, &store, &err))
		fail_msg("%s", err.text);
	return store.base;
}

/* Change the copy's metadata as if its lanes were from an earlier boot of the host. */
static void reboot(unsigned host)
{
	struct meta meta;
	void *base = map_meta(host, &meta);
	struct meta_super super = meta.super;
	struct mirror_uuid none = {{0}};

	if (memcmp(&super.used_boot, &none, sizeof(none))) {
		super.used_boot.bytes[0]++;
		assert_int_equal(meta_set_super(&meta, &super), 0);
	}
	meta_fini(&meta);
	munmap(base, meta_size_for(SIZE));
}

/* Returns true if the copy has recorded the clean end of its last epoch. The daemon is possibly
 * writing meanwhile. */
static bool has_ended(unsigned host)
{
	struct meta meta;
	void *base = map_meta(host, &meta);
	bool has = !meta.damage && meta.super.flags & META_CLEAN && meta.super.epoch.number &&
		   meta.super.retired_below > meta.super.epoch.number;

	meta_fini(&meta);
	munmap(base, meta_size_for(SIZE));
	return has;
}

static void reboot_all(void)
{
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(host_stop(&hosts, i), 0);
	for (unsigned i = 0; i < 3; i++)
		reboot(i);
	spoil(1);
	for (unsigned i = 0; i < 3; i++)
		host_start(&hosts, i, NULL);
}

static void test_after_a_clean_end_and_a_reboot_of_all_nothing_is_compared(void **state)
{
	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "map");
	ask(0, "durable 7", "put 64 1");
	ask(0, "ok", "unmap");
	for (unsigned i = 0; i < 3; i++)
		for (int waited = 0; !has_ended(i); waited += 10) {
			assert_true(waited < PATIENCE_MS);
			usleep(10000);
		}
	reboot_all();
	ask(0, "ok", "map-wait");
	ask(0, "durable 7", "put 72 2");
	assert_not_compared(1);
	/* Without a clean end all blocks are compared. */
	proc_kill(&apps[0]);
	memset(&apps[0], 0, sizeof(apps[0]));
	reboot_all();
	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "map-wait");
	ask(0, "durable 7", "put 80 3");
	assert_copies_are_equal();
}

/* The only other copy is lost during a flush. This copy cannot be excluded, because too few copies
 * would be left. The third copy returns first, and replaces the lost copy. */
static void test_a_third_copy_takes_the_place_of_the_only_other_one(void **state)
{
	const char *answer;

	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "map");
	host_kill(&hosts, 2);
	ask(0, "durable 3", "put %u 1", 3 * BLOCK);
	proc_signal(&hosts.hosts[1].daemon, SIGSTOP);
	ask(0, "ok", "begin %u 2", 5 * BLOCK);
	host_kill(&hosts, 1);
	host_start(&hosts, 2, NULL);
	do
		answer = proc_ask(&apps[0], "end");
	while (answer && !strncmp(answer, "Too few copies", 14));
	if (!answer || strncmp(answer, "durable 5", 9))
		fail_msg("the flush ends with %s", answer ? answer : "nothing");
	host_start(&hosts, 1, NULL);
	await_insync(0, 7);
	assert_copies_are_equal();
}

#define TEST(name) APPS_TEST(name, .count = 3, .size = SIZE)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_replica_that_returns_gets_what_differs),
		TEST(test_a_target_that_is_killed_goes_on),
		TEST(test_a_source_that_is_killed_is_followed_by_another),
		TEST(test_what_a_replica_lacks_outlasts_restarts),
		TEST(test_after_a_clean_end_and_a_reboot_of_all_nothing_is_compared),
		APPS_TEST(test_a_former_primary_returns_with_what_was_not_flushed, .count = 3,
			  .size = SIZE, .automatic = true),
		APPS_TEST(test_a_third_copy_takes_the_place_of_the_only_other_one, .count = 3,
			  .size = SIZE, .min_copies = 2),
	};

	return cases_run(tests, CASES_OF_HOSTS);
}
