/* SPDX-License-Identifier: BSD-3-Clause */
/* An earlier daemon could not write a block of a pool. When the pool is opened again, only bytes on
 * the medium are allowed to be read or acknowledged. */
#include "system/librpmem/place.h"

#include <errno.h>
#include <signal.h>

#include "system/lib/bad_disk.h"

#define POOL   ((size_t)2 * MIB)
#define AT     ((size_t)16384)
#define BESIDE (AT + 16 * BAD_DISK_BLOCK) /* offset of another block */

static struct bad_disk disk;

static RPMEMpool *start(bool create)
{
	unsigned lanes = 1;
	RPMEMpool *rpp =
		create ? rpmem_create("localhost", "disk.set", place_local, POOL, &lanes,
				      &place_attr)
		       : rpmem_open("localhost", "disk.set", place_local, POOL, &lanes, NULL);

	if (!rpp)
		fail_msg("%s", rpmem_errormsg());
	return rpp;
}

static unsigned char read_pool(RPMEMpool *rpp)
{
	unsigned char byte;

	RPMEM_OK(rpmem_read(rpp, &byte, AT, 1, 0));
	return byte;
}

static unsigned char read_medium(void)
{
	unsigned char byte;

	bad_disk_read(&disk, "disk.set.part", AT, &byte, 1);
	return byte;
}

static void lose(RPMEMpool *rpp, unsigned char letter, bool is_killed)
{
	pid_t daemon = place_daemon();

	bad_disk_break_block(&disk, place_path("disk.set.part"), AT);
	place_local[AT] = letter;
	RPMEM_FAILS(rpmem_persist(rpp, AT, 1, 0, 0), EREMOTEIO);
	if (is_killed)
		kill(daemon, SIGKILL);
	rpmem_close(rpp);
	place_wait_gone(daemon);
	bad_disk_repair(&disk);
	assert_int_equal(read_medium(), 0);
}

/* Open the pool again and change other bytes, like an application that recovers with the bytes that
 * it reads. */
static RPMEMpool *go_on(unsigned char letter)
{
	RPMEMpool *rpp = start(false);

	assert_int_equal(read_pool(rpp), 0);
	RPMEM_OK(rpmem_persist(rpp, BESIDE, 1, 0, 0));
	assert_int_equal(read_medium(), 0);
	place_local[AT] = letter;
	RPMEM_OK(rpmem_persist(rpp, AT, 1, 0, 0));
	assert_int_equal(read_medium(), letter);
	assert_int_equal(read_pool(rpp), letter);
	return rpp;
}

/*
 * One variant uses a block that was only reserved: after a failed write ext4 treats such a block as
 * written.
 */
static void what_is_opened_again_is_on_the_medium(bool is_killed)
{
	RPMEMpool *rpp = start(true);

	lose(rpp, 'b', is_killed);
	rpp = go_on('b');
	lose(rpp, 'c', is_killed);
	RPMEM_OK(rpmem_close(go_on('c')));
}

static void what_is_opened_after_a_kill_is_on_the_medium(void **state)
{
	what_is_opened_again_is_on_the_medium(true);
}

static void what_is_opened_after_a_close_is_on_the_medium(void **state)
{
	what_is_opened_again_is_on_the_medium(false);
}

static int setup(void **state)
{
	char folder[600];
	int rc = place_setup(state);

	snprintf(folder, sizeof(folder), "%s/disk", place_dir);
	bad_disk_mount(&disk, folder, place_path("."));
	place_add_set("disk.set", "", POOL);
	return rc;
}

static int teardown(void **state)
{
	bad_disk_unmount(&disk);
	return place_teardown(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_opened_after_a_kill_is_on_the_medium),
		TEST(what_is_opened_after_a_close_is_on_the_medium),
	};

	place_main(argv);
	bad_disk_need();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
