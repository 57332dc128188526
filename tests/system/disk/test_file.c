/* SPDX-License-Identifier: BSD-3-Clause */
/* test_file.c -- bytes that librpmafile reports as durable are on the server's medium. Bytes that
 * cannot be written to the medium are never reported as durable. */
#include "system/lib/check.h"

#include <librpmafile.h>
#include <signal.h>
#include <sys/stat.h>

#include "system/lib/bad_disk.h"
#include "system/lib/cases.h"
#include "system/lib/proc.h"

#define BLOCK BAD_DISK_BLOCK
#define BIG   (20 * BLOCK) /* too long for the library's copy */
#define WAIT  20000

static struct bad_disk disk;
static struct proc server;
static char target[64];
static struct rpma_file *file;

static void serve(const char *options, const char *port)
{
	char command[600];
	const char *argv[] = {"/bin/sh", "-c", command, NULL}, *line, *address;

	snprintf(command, sizeof(command), "exec %s serve %s -p %s disk/data 2>&1", SYSTEM_RPMA,
		 options, port);
	assert_int_equal(proc_start(&server, argv, NULL), 0);
	line = proc_line(&server, WAIT);
	address = line ? strstr(line, "127.0.0.1:") : NULL;
	if (!address || strncmp(line, "serving ", 8) != 0)
		fail_msg("%s", line ? line : "no server");
	snprintf(target, sizeof(target), "%.*s", (int)strspn(address, "0123456789.:") - 1, address);
}

static void stop(int sig)
{
	proc_signal(&server, sig);
	proc_wait(&server, WAIT);
	proc_kill(&server);
}

static void must(int rc)
{
	if (rc)
		fail_msg("%s: %s", rpma_file_err_2str(rc), rpma_file_errormsg());
}

static void open_file(int timeout_ms)
{
	struct rpma_file_options options = {
		.size = sizeof(options), .timeout_ms = timeout_ms, .reconnect_ms = WAIT};

	must(rpma_file_open(target, &options, &file));
}

static void write_letters(char letter, uint64_t offset, size_t len)
{
	char *bytes = malloc(len);

	memset(bytes, letter, len);
	must(rpma_file_pwrite(file, bytes, len, offset));
	free(bytes);
}

static char on_medium(uint64_t offset)
{
	char byte;

	bad_disk_read(&disk, "data", offset, &byte, 1);
	return byte;
}

/* After a power cut at this moment the file has the synced bytes, and some of the other bytes. */
static void what_was_synced_survives_a_power_cut(void **state)
{
	uint64_t word;

	serve("-c -s 1M", "0");
	open_file(WAIT);
	write_letters('a', 0, 100);
	write_letters('b', BLOCK, BIG);
	must(rpma_file_sync(file, NULL, 0));
	assert_int_equal(on_medium(99), 'a');
	assert_int_equal(on_medium(BLOCK), 'b');
	assert_int_equal(on_medium(BLOCK + BIG - 1), 'b');
	write_letters('c', 64 * BLOCK, BLOCK);
	write_letters('d', 66 * BLOCK, BLOCK);
	must(rpma_file_sync(file, &(struct rpma_file_range){64 * BLOCK, BLOCK}, 1));
	assert_int_equal(on_medium(64 * BLOCK), 'c');
	must(rpma_file_store8(file, 128 * BLOCK, 0x6565656565656565));
	/* The word must be stored after all earlier writes. */
	assert_int_equal(on_medium(66 * BLOCK), 'd');
	bad_disk_read(&disk, "data", 128 * BLOCK, &word, sizeof(word));
	assert_true(word == 0x6565656565656565);
	must(rpma_file_close(&file));
	stop(SIGTERM);
}

/*
 * The disk has failed once. While this server serves the file, no further sync of the file
 * succeeds, because the kernel has dropped the bytes that it could not write. After a restart of
 * the server the file works again, and has the acknowledged bytes.
 */
static void a_failed_write_back_is_no_success_later(void **state)
{
	struct rpma_file_range range;
	size_t count = 1;
	char port[8];

	serve("-c -s 1M", "0");
	open_file(WAIT);
	write_letters('a', BLOCK, BLOCK);
	must(rpma_file_sync(file, NULL, 0));
	bad_disk_break_block(&disk, "disk/data", 0);
	write_letters('b', 0, 100);
	assert_int_equal(rpma_file_sync(file, NULL, 0), RPMA_FILE_E_MEDIUM);
	assert_non_null(strstr(rpma_file_errormsg(), "could not write to its medium"));
	assert_int_equal(rpma_file_pwrite(file, "x", 1, 0), RPMA_FILE_E_MEDIUM);
	bad_disk_repair(&disk);
	must(rpma_file_get_undecided(file, &range, &count));
	assert_int_equal(count, 1);
	assert_true(range.offset == 0 && range.length == 100);
	must(rpma_file_reopen(file));
	write_letters('b', 0, 100);
	assert_int_equal(rpma_file_sync(file, NULL, 0), RPMA_FILE_E_MEDIUM);
	assert_int_equal(on_medium(0), 0);
	snprintf(port, sizeof(port), "%s", strrchr(target, ':') + 1);
	stop(SIGTERM);
	serve("", port);
	must(rpma_file_reopen(file));
	write_letters('b', 0, 100);
	must(rpma_file_close(&file)); /* closing the file also syncs it */
	assert_int_equal(on_medium(0), 'b');
	assert_int_equal(on_medium(BLOCK), 'a');
	stop(SIGTERM);
}

/*
 * The bytes were written on a connection that is lost. A sync on the next connection makes them
 * durable, too.
 */
static void what_a_lost_connection_left_is_synced_by_the_next_one(void **state)
{
	char letters[BIG];
	size_t count = 0;

	serve("-c -s 1M", "0");
	open_file(500);
	write_letters('a', 0, BIG);
	/* the read proves that the bytes have arrived */
	must(rpma_file_pread(file, letters, BIG, 0));
	proc_signal(&server, SIGSTOP);
	assert_int_equal(rpma_file_pread(file, letters, 1, 0), RPMA_FILE_E_LOST);
	proc_signal(&server, SIGCONT);
	must(rpma_file_reopen(file));
	must(rpma_file_get_undecided(file, NULL, &count));
	assert_int_equal(count, 1);
	assert_int_equal(on_medium(0), 0);
	must(rpma_file_pread(file, letters, BIG, 0));
	assert_int_equal(letters[BIG - 1], 'a');
	must(rpma_file_sync(file, NULL, 0));
	assert_int_equal(on_medium(0), 'a');
	assert_int_equal(on_medium(BIG - 1), 'a');
	must(rpma_file_get_undecided(file, NULL, &count));
	assert_int_equal(count, 0);
	must(rpma_file_close(&file));
	stop(SIGTERM);
}

static int setup(void **state)
{
	static char folder[] = "file.XXXXXX";

	strcpy(folder, "file.XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
	*state = folder;
	assert_int_equal(mkdir("disk", 0700), 0);
	bad_disk_mount(&disk, "parts", "disk");
	return 0;
}

static int teardown(void **state)
{
	char command[100];

	rpma_file_close(&file);
	if (server.pid)
		proc_kill(&server);
	bad_disk_unmount(&disk);
	assert_int_equal(chdir(".."), 0);
	snprintf(command, sizeof(command), "rm -r %s", (const char *)*state);
	return system(command);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_synced_survives_a_power_cut),
		TEST(a_failed_write_back_is_no_success_later),
		TEST(what_a_lost_connection_left_is_synced_by_the_next_one),
	};

	bad_disk_need();
	return cases_run(tests, 3);
}
