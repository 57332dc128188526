/* SPDX-License-Identifier: BSD-3-Clause */
/* test_failing_disk.c -- a real target whose disks have no space for blocks that they promised to
 * files. */
#include "system/lib/check.h"

#include <errno.h>
#include <fcntl.h>

#include "system/lib/client.h"
#include "system/lib/remote.h"
#include "unit/persist/disk.h"

#define SIZE (1 * MIB)

static void fill_disk(const char *name)
{
	static char zeros[65536];
	int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	for (size_t chunk = sizeof(zeros); chunk >= 512; chunk /= 2)
		while (write(fd, zeros, chunk) > 0)
			;
	close(fd);
}

static void make_file(const char *name, bool allocate)
{
	int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	if (allocate)
		assert_int_equal(posix_fallocate(fd, 0, SIZE), 0);
	else
		assert_int_equal(ftruncate(fd, SIZE), 0);
	close(fd);
}

static void expect_write_back_error(const struct ibv_wc *wc)
{
	uint32_t code = wc->vendor_err & 0xffffff;

	assert_int_equal(wc->vendor_err >> 24, 1); /* RPMA_REASON_WRITE_BACK */
	if (code != ENOSPC && code != EIO)
		fail_msg("the code is %u", code);
}

static void expect_flush_to_fail(const struct remote *target, int region, size_t at)
{
	struct client c;
	struct ibv_wc wc = {0};

	OK(client_begin(&c, SIZE, target->port));
	assert_int_equal(client_put(&c, region, at, 4096, &wc), RPMA_E_UNKNOWN);
	assert_int_equal(wc.status, IBV_WC_REM_OP_ERR);
	expect_write_back_error(&wc);
	client_close(&c);
}

static void expect_flush_to_succeed(const struct remote *target, int region)
{
	struct client c;

	OK(client_begin(&c, SIZE, target->port));
	memset(c.buf, 0x77, 4096);
	OK(client_put(&c, region, 0, 4096, NULL));
	client_close(&c);
}

/* ext2 has allocated the file's blocks, but the image on the full tmpfs has no space for them. */
static void a_lost_write_back_fails_every_flush_of_that_file(void **state)
{
	struct remote target;
	struct client c;
	struct ibv_wc wc = {0};

	disk_mount_tmpfs("full", 4 * MIB);
	disk_mount_image("ext2", "full/image", 64 * MIB, "small");
	make_file("small/file", true);
	make_file("good", true);
	fill_disk("full/filler");
	remote_must_start(&target, NULL, "file:1048576:0xff:small/file",
			  "file:1048576:0xff:small/file", "file:1048576:0xff:good");
	/*
	 * Write many pages in one operation, because there can still be space for one or two pages.
	 */
	OK(client_begin(&c, SIZE, target.port));
	memset(c.buf, 0x33, SIZE);
	assert_int_equal(client_put(&c, 0, 0, SIZE, &wc), RPMA_E_UNKNOWN);
	assert_int_equal(wc.status, IBV_WC_REM_OP_ERR);
	expect_write_back_error(&wc);
	client_close(&c);
	/* The kernel reports the loss only once, so the target must remember it. */
	for (int i = 0; i < 3; i++) {
		expect_flush_to_fail(&target, 1, SIZE - 4096);
		expect_flush_to_fail(&target, 0, 0);
	}
	expect_flush_to_succeed(&target, 2);
	assert_int_equal(proc_finish(&target.proc), 0);

	/* When the disk has space again, and the file is opened and mapped again, flushes
	 * succeed. */
	assert_int_equal(unlink("full/filler"), 0);
	remote_must_start(&target, NULL, "file:1048576:0xff:small/file");
	expect_flush_to_succeed(&target, 0);
	assert_int_equal(proc_finish(&target.proc), 0);
	unlink("good");
}

static void put_visibly(struct client *c, size_t len)
{
	struct ibv_wc wc;

	memset(c->buf, 0x44, len);
	OK(rpma_write(c->conn, c->at[0], 0, c->mr, 0, len, RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_flush(c->conn, c->at[0], 0, len, RPMA_FLUSH_TYPE_VISIBILITY,
		      RPMA_F_COMPLETION_ALWAYS, NULL));
	OK(client_wait_wc(c->cq, &wc, CLIENT_WAIT_MS));
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

static bool target_syncs(struct remote *target)
{
	const char *line = proc_ask(&target->proc, "sync 0");

	assert_non_null(line);
	return !strcmp(line, "ok");
}

/*
 * Each open file description gets one report of the loss. Here the application's description gets
 * its report first.
 */
static void a_loss_reported_to_the_application_still_fails_the_flush(void **state)
{
	struct remote target;
	struct client c;

	disk_mount_tmpfs("full-too", 4 * MIB);
	disk_mount_image("ext2", "full-too/image", 64 * MIB, "small-too");
	make_file("small-too/file", true);
	fill_disk("full-too/filler");
	remote_must_start(&target, NULL, "file:1048576:0xff:small-too/file");
	OK(client_begin(&c, SIZE, target.port));
	put_visibly(&c, SIZE);
	assert_false(target_syncs(&target));
	/* The kernel can report losses of data and of metadata separately. */
	for (int i = 0; i < 10 && !target_syncs(&target); i++)
		;
	assert_true(target_syncs(&target));
	expect_flush_to_fail(&target, 0, 0);
	client_close(&c);
	assert_int_equal(proc_finish(&target.proc), 0);
}

/* A write completes at the initiator when it is sent. The flush after it fails, because the
 * connection ends. */
static void expect_write_to_break(const struct remote *target, size_t at, size_t len)
{
	struct client c;
	struct ibv_wc wc = {0};

	OK(client_begin(&c, SIZE, target->port));
	OK(client_post_write_and_flush(&c, c.at[0], at, len));
	OK(client_wait_wc(c.cq, &wc, CLIENT_WAIT_MS));
	assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);
	/* The peer sent a Terminate: RDMAP remote protection, base or bounds. */
	assert_int_equal(wc.vendor_err, 0x04000101u);
	client_close(&c);
}

/* The file has no blocks, so the first store to a page already fails. */
static void holes_without_room_break_the_connection_and_not_the_target(void **state)
{
	static const char *const crc[] = {"SOFTRNIC_CRC=on", "SOFTRNIC_CRC=off"};
	static const size_t lengths[] = {8, 100, 4096, 70000, 300000};

	disk_mount_tmpfs("tiny", 1 * MIB);
	make_file("tiny/file", false);
	fill_disk("tiny/filler");
	for (size_t i = 0; i < ARRAY_LEN(crc); i++) {
		struct remote target;

		remote_must_start(&target, ((const char *[]){crc[i], NULL}),
				  "file:1048576:0xff:tiny/file", "anon:1048576:0xff");
		for (size_t k = 0; k < ARRAY_LEN(lengths); k++) {
			expect_write_to_break(&target, k * 8192, lengths[k]);
			expect_flush_to_succeed(&target, 1);
		}
		assert_int_equal(proc_finish(&target.proc), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lost_write_back_fails_every_flush_of_that_file),
		cmocka_unit_test(a_loss_reported_to_the_application_still_fails_the_flush),
		cmocka_unit_test(holes_without_room_break_the_connection_and_not_the_target),
	};
	int failed;

	need_root("mounting file systems");
	/* CRC is off at the initiator, so a connection has CRC only if the target demands it. */
	setenv("SOFTRNIC_CRC", "off", 1);
	disk_begin();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	disk_end();
	return failed;
}
