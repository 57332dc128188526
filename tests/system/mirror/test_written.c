/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests how many bytes each host's disk writes for every block of 4 KiB that a primary flushes. The
 * copies are cached in large folios, and a store through a mapping makes a whole folio dirty. */
#include <sys/stat.h>

#include "apps.h"
#include "clients.h"
#include "system/lib/check.h"
#include "system/lib/bad_disk.h"
#include "system/lib/loop_disk.h"
#include "system/lib/mounts.h"

#define HOSTS   2
#define ALL     3
#define SIZE    (32u << 20)
#define SINGLES 100
#define BATCH   64
#define BATCHES 4

static struct loop_disk disks[HOSTS];
static char folder[200]; /* folder that has the disks */

static void mount_disk(unsigned host, const char *top)
{
	char own[256];

	snprintf(own, sizeof(own), "%s/%u", folder, host);
	loop_disk_mount(&disks[host], own, top, 64);
}

static void begin(const char *map)
{
	hosts_start(&hosts,
		    &(struct hosts_opts){.count = HOSTS, .size = SIZE, .mount = mount_disk});
	for (unsigned i = 0; i < HOSTS; i++)
		loop_disk_rewrite(hosts.hosts[i].data, SIZE);
	app_start(&apps[0], &hosts, 0, NULL);
	ask(0, "ok", "%s", map);
	hosts_wait_insync(&hosts, ALL);
}

static int setup(void **state)
{
	snprintf(folder, sizeof(folder), "written.disks");
	return mkdir(folder, 0700);
}

static int teardown(void **state)
{
	apps_teardown(state);
	for (unsigned i = 0; i < HOSTS; i++)
		loop_disk_unmount(&disks[i]);
	return rmdir(folder);
}

/* Check the number of bytes that each host writes because of the command. */
static void judge(const char *what, unsigned blocks, const char *command)
{
	static const char *const names[HOSTS] = {"here", "at the replica"};
	uint64_t before[HOSTS], each, most = 0;
	char name[100];

	for (unsigned i = 0; i < HOSTS; i++)
		before[i] = loop_disk_settle(&disks[i]);
	ask(0, "ok", "%s", command);
	for (unsigned i = 0; i < HOSTS; i++) {
		snprintf(name, sizeof(name), "%s, %s", what, names[i]);
		each = loop_disk_report(&disks[i], name, before[i], blocks);
		most = each > most ? each : most;
	}
	assert_true(most <= LOOP_DISK_LIMIT);
}

static void single_blocks_of_an_isolated_mapping(void **state)
{
	begin("map");
	judge("isolated, single blocks", SINGLES, "scatter 1 100");
}

static void scattered_blocks_of_an_isolated_mapping(void **state)
{
	begin("map");
	judge("isolated, 64 scattered blocks", BATCH * BATCHES, "scatter 64 4");
}

static void single_words_of_an_isolated_mapping(void **state)
{
	begin("map");
	judge("isolated, single words", BATCH, "words 64");
}

static void single_blocks_of_a_direct_mapping(void **state)
{
	begin("map-direct");
	judge("direct, single blocks", SINGLES, "scatter 1 100");
}

static void scattered_blocks_of_a_direct_mapping(void **state)
{
	begin("map-direct");
	judge("direct, 64 scattered blocks", BATCH * BATCHES, "scatter 64 4");
}

static void blocks_that_a_resync_copies(void **state)
{
	uint64_t before;

	begin("map");
	host_kill(&hosts, 1);
	ask(0, "ok", "scatter 64 4");
	loop_disk_rewrite(hosts.hosts[1].data, SIZE);
	before = loop_disk_settle(&disks[1]);
	host_start(&hosts, 1, NULL);
	hosts_wait_insync(&hosts, ALL);
	assert_true(loop_disk_report(&disks[1], "resync, 256 scattered blocks", before,
				     BATCH * BATCHES) <= LOOP_DISK_LIMIT);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(single_blocks_of_an_isolated_mapping),
		CASE(scattered_blocks_of_an_isolated_mapping),
		CASE(single_words_of_an_isolated_mapping),
		CASE(single_blocks_of_a_direct_mapping),
		CASE(scattered_blocks_of_a_direct_mapping),
		CASE(blocks_that_a_resync_copies),
	};

	bad_disk_need();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
