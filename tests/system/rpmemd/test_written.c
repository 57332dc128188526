/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests how many bytes the disk of a pool writes for each block that an initiator makes durable.
 * The pool is cached in large folios, and a store through a mapping makes a whole folio dirty. */
#include "system/lib/check.h"

#include <sys/stat.h>

#include "system/lib/bad_disk.h"
#include "system/lib/loop_disk.h"
#include "system/rpmemd/peer.h"

#define AT     (64ul << 10) /* an offset after the pool's header */
#define BLOCKS 64u

static struct peer peer;
static struct loop_disk disk;

static int setup(void **state)
{
	assert_int_equal(system("rm -rf pool.disk"), 0);
	loop_disk_mount(&disk, "pool.disk", peer_folder(), 32);
	return 0;
}

static int teardown(void **state)
{
	peer_end(&peer);
	loop_disk_unmount(&disk);
	peer_folder_remove();
	return 0;
}

static void persist_blocks(const char *what, const char *const options[])
{
	uint64_t before;

	peer_make_set("a.set", PEER_SIZE);
	peer_start(&peer, options);
	assert_int_equal(peer_create(&peer, "a.set", PEER_SIZE, 1), 0);
	loop_disk_rewrite(peer_path("a.set.part"), PEER_SIZE);
	assert_int_equal(peer_lane_up(&peer, 0), 0);
	before = loop_disk_settle(&disk);
	for (uint64_t i = 0; i < BLOCKS; i++)
		assert_int_equal(peer_persist(&peer, 0, AT + i * 37 % 960 * LOOP_DISK_BLOCK,
					      LOOP_DISK_BLOCK),
				 0);
	assert_true(loop_disk_report(&disk, what, before, BLOCKS) <= LOOP_DISK_LIMIT);
}

static void a_persisted_block_writes_little_more_than_itself(void **state)
{
	persist_blocks("flushes", NULL);
}

static void so_it_does_by_the_general_method(void **state)
{
	persist_blocks("the general method",
		       (const char *[]){"--persist-native=no", "--persist-general=yes", NULL});
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_persisted_block_writes_little_more_than_itself),
		TEST(so_it_does_by_the_general_method),
	};

	bad_disk_need();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
