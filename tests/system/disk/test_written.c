/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_written.c -- how many bytes the disk writes for each block that a peer writes and flushes.
 * The file's pages are in large folios, and a store through a mapping makes a whole folio dirty.
 */
#include "system/lib/check.h"

#include "system/lib/client.h"
#include "system/lib/bad_disk.h"
#include "system/lib/loop_disk.h"
#include "system/lib/remote.h"

#define SIZE    (48 * MIB)
#define BLOCK   LOOP_DISK_BLOCK
#define SINGLES 100
#define BATCH   64
#define BATCHES 4

static struct loop_disk disk;
static struct remote target;
static struct client client;

/* Returns a block that was not written before. Neighbouring blocks of a folio are returned at very
 * different times. */
static size_t next_block(void)
{
	static size_t n;

	/* 2647 is a prime, so each block is returned once */
	return n++ * 2647 % (SIZE / BLOCK) * BLOCK;
}

static void a_flushed_block_writes_little_more_than_itself(void **state)
{
	uint64_t before = loop_disk_settle(&disk);

	for (unsigned i = 0; i < SINGLES; i++) {
		size_t at = next_block();

		OK(rpma_write(client.conn, client.at[0], at, client.mr, 0, BLOCK,
			      RPMA_F_COMPLETION_ON_ERROR, NULL));
		OK(client_flush(&client, 0, at, BLOCK, RPMA_FLUSH_TYPE_PERSISTENT, NULL));
	}
	assert_true(loop_disk_report(&disk, "single blocks", before, SINGLES) <= LOOP_DISK_LIMIT);
}

static void scattered_blocks_of_one_flush_write_little_more_than_themselves(void **state)
{
	uint64_t before = loop_disk_settle(&disk);

	for (unsigned batch = 0; batch < BATCHES; batch++) {
		for (unsigned i = 0; i < BATCH; i++)
			OK(client_write(&client, 0, next_block(), BLOCK, NULL));
		OK(client_flush(&client, 0, 0, SIZE, RPMA_FLUSH_TYPE_PERSISTENT, NULL));
	}
	assert_true(loop_disk_report(&disk, "64 scattered blocks", before, BATCH * BATCHES) <=
		    LOOP_DISK_LIMIT);
}

static void so_do_atomic_writes(void **state)
{
	const char word[8] = "written";
	uint64_t before = loop_disk_settle(&disk);
	struct ibv_wc wc;

	for (unsigned i = 0; i < BATCH; i++) {
		size_t at = next_block();

		OK(rpma_atomic_write(client.conn, client.at[0], at, word, RPMA_F_COMPLETION_ALWAYS,
				     NULL));
		OK(client_wait_wc(client.cq, &wc, CLIENT_WAIT_MS));
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		OK(client_flush(&client, 0, at, BLOCK, RPMA_FLUSH_TYPE_PERSISTENT, NULL));
	}
	assert_true(loop_disk_report(&disk, "single words", before, BATCH) <= LOOP_DISK_LIMIT);
}

static int mount_disk(void **state)
{
	assert_int_equal(system("rm -rf written written.disk && mkdir written"), 0);
	loop_disk_mount(&disk, "written.disk", "written", 96);
	return 0;
}

static int unmount_disk(void **state)
{
	loop_disk_unmount(&disk);
	return rmdir("written");
}

static int setup(void **state)
{
	char region[64];

	loop_disk_rewrite("written/data", SIZE);
	snprintf(region, sizeof(region), "file:%lu:0xff:written/data", SIZE);
	if (remote_start(&target, SYSTEM_TARGET, (const char *[]){region, NULL}, NULL))
		return -1;
	OK(client_begin(&client, MIB, target.port));
	return 0;
}

static int teardown(void **state)
{
	client_close(&client);
	return proc_finish(&target.proc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_flushed_block_writes_little_more_than_itself,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			scattered_blocks_of_one_flush_write_little_more_than_themselves, setup,
			teardown),
		cmocka_unit_test_setup_teardown(so_do_atomic_writes, setup, teardown),
	};

	bad_disk_need();
	return cmocka_run_group_tests(tests, mount_disk, unmount_disk);
}
