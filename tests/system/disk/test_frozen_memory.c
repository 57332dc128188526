/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_frozen_memory.c -- memory whose file system does not answer: a store to a clean page of a
 * file on a frozen file system waits until the file system is unfrozen. Only the storing thread is
 * allowed to wait, and no other connection.
 */
#include "system/lib/check.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "system/lib/client.h"
#include "system/lib/remote.h"
#include "unit/persist/disk.h"

#define SIZE     (1 * MIB)
#define PAGE     4096
#define STUCK    20 /* connections that each have a waiting write */
#define WATCH_NS (2 * NSEC_PER_SEC)
/* the file system is unfrozen after 30 s, so a wait until that time takes longer than this */
#define LATE_NS (10 * NSEC_PER_SEC)

enum { FROZEN, QUICK, MEMORY, SPARE };
static const char *const regions[] = {"file:1048576:0xff:frozen/file",
				      "file:1048576:0xff:quick/file", "anon:1048576:0xff",
				      "file:1048576:0xff:quick/spare", NULL};

static struct remote target;

static void post_put(struct client *c, int region, size_t at, size_t len)
{
	OK(rpma_write(c->conn, c->at[region], at, c->mr, 0, len, RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_flush(c->conn, c->at[region], at, len, RPMA_FLUSH_TYPE_PERSISTENT,
		      RPMA_F_COMPLETION_ALWAYS, NULL));
}

/* The CPU stores small payloads, and the kernel stores large ones. */
static size_t stuck_len(int i)
{
	return i % 2 ? 64 : 4 * PAGE;
}

static void freeze_with_writes(struct client stuck[STUCK])
{
	for (int i = 0; i < STUCK; i++)
		OK(client_begin(&stuck[i], SIZE, target.port));
	disk_freeze("frozen");
	for (int i = 0; i < STUCK; i++)
		post_put(&stuck[i], FROZEN, (size_t)i * 4 * PAGE, stuck_len(i));
}

static void thaw_and_expect(struct client stuck[STUCK])
{
	struct ibv_wc wc;

	for (int i = 0; i < STUCK; i++)
		assert_int_equal(rpma_cq_get_wc(stuck[i].cq, 1, &wc, NULL), RPMA_E_NO_COMPLETION);
	disk_thaw();
	for (int i = 0; i < STUCK; i++) {
		OK(client_wait_wc(stuck[i].cq, &wc, 2 * CLIENT_WAIT_MS));
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		client_close(&stuck[i]);
	}
}

static uint64_t longest_round(struct client *c, uint64_t watch_ns)
{
	uint64_t end = clock_now_ns() + watch_ns, longest = 0;

	while (clock_now_ns() < end) {
		uint64_t start = clock_now_ns(), took;

		OK(client_put(c, QUICK, 0, PAGE, NULL));
		OK(client_write(c, MEMORY, 0, 4 * PAGE, NULL));
		OK(client_read(c, QUICK, 0, 4 * PAGE, NULL));
		OK(client_echo(c, 8));
		took = clock_now_ns() - start;
		longest = took > longest ? took : longest;
	}
	return longest;
}

static void writes_that_wait_delay_no_other_connection(void **state)
{
	struct client quick, newcomer, stuck[STUCK];
	uint64_t longest;

	OK(client_begin(&quick, SIZE, target.port));
	freeze_with_writes(stuck);
	longest = longest_round(&quick, WATCH_NS);
	printf("longest round beside %d writes that wait: %.1f ms\n", STUCK, (double)longest / 1e6);
	assert_true(longest < LATE_NS);
	OK(client_begin(&newcomer, SIZE, target.port));
	OK(client_put(&newcomer, QUICK, PAGE, PAGE, NULL));
	client_close(&newcomer);
	thaw_and_expect(stuck);
	OK(client_put(&quick, FROZEN, 0, PAGE, NULL));
	client_close(&quick);
}

static void another_region_can_go_meanwhile(void **state)
{
	struct client user, stuck[STUCK];
	uint64_t start;
	const char *line;

	OK(client_begin(&user, SIZE, target.port));
	OK(client_put(&user, SPARE, 0, PAGE, NULL));
	freeze_with_writes(stuck);
	usleep(200000);
	start = clock_now_ns();
	line = proc_ask(&target.proc, "dereg %d", SPARE);
	assert_non_null(line);
	assert_string_equal(line, "ok");
	assert_true(clock_now_ns() - start < LATE_NS);
	thaw_and_expect(stuck);
	client_close(&user);
}

/* The sink of one Read is on the frozen file system; another connection uses the same completion
 * queue. */
static void polling_a_shared_queue_does_not_wait(void **state)
{
	int fd = open("frozen/sink", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct client reader, other;
	struct rpma_mr_local *sink;
	struct rpma_cq *cq;
	struct ibv_wc wc;
	uint64_t start;
	void *map;

	assert_int_equal(posix_fallocate(fd, 0, SIZE), 0);
	map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	OK(client_open(&reader, SIZE));
	OK(client_open(&other, SIZE));
	OK(rpma_cq_new(reader.peer, 64, &cq));
	OK(rpma_conn_cfg_set_cq(reader.cfg, cq));
	OK(rpma_conn_cfg_set_cq(other.cfg, cq));
	OK(rpma_mr_reg(reader.peer, map, SIZE, RPMA_MR_USAGE_READ_DST, &sink));
	OK(client_connect(&reader, target.port, NULL));
	OK(client_connect(&other, target.port, NULL));
	disk_freeze("frozen");
	OK(rpma_read(reader.conn, sink, 0, reader.at[MEMORY], 0, 64, RPMA_F_COMPLETION_ALWAYS,
		     "read"));
	start = clock_now_ns();
	for (int i = 0; i < 50; i++) {
		OK(rpma_write(other.conn, other.at[MEMORY], 0, other.mr, 0, PAGE,
			      RPMA_F_COMPLETION_ALWAYS, "write"));
		while (rpma_cq_get_wc(cq, 1, &wc, NULL) == RPMA_E_NO_COMPLETION)
			assert_true(clock_now_ns() - start < LATE_NS);
		assert_string_equal((const char *)(uintptr_t)wc.wr_id, "write");
		usleep(10000);
	}
	assert_true(clock_now_ns() - start < LATE_NS);
	disk_thaw();
	OK(client_wait_wc(cq, &wc, CLIENT_WAIT_MS));
	assert_string_equal((const char *)(uintptr_t)wc.wr_id, "read");
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	client_disconnect(&reader);
	client_disconnect(&other);
	OK(rpma_mr_dereg(&sink));
	OK(rpma_cq_delete(&cq));
	client_close(&reader);
	client_close(&other);
	munmap(map, SIZE);
	close(fd);
}

static int thaw(void **state)
{
	disk_thaw();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(writes_that_wait_delay_no_other_connection, thaw),
		cmocka_unit_test_teardown(another_region_can_go_meanwhile, thaw),
		cmocka_unit_test_teardown(polling_a_shared_queue_does_not_wait, thaw),
	};
	int failed;

	need_root("mounting file systems");
	disk_begin();
	disk_mount_tmpfs("ram", 256 * MIB);
	disk_mount_image("ext4", "ram/frozen.image", 32 * MIB, "frozen");
	disk_mount_image("ext4", "ram/quick.image", 32 * MIB, "quick");
	disk_make_file("frozen/file", SIZE);
	disk_make_file("quick/file", SIZE);
	disk_make_file("quick/spare", SIZE);
	assert_int_equal(remote_start(&target, SYSTEM_TARGET, regions, NULL), 0);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	failed += proc_finish(&target.proc) != 0;
	disk_end();
	return failed;
}
