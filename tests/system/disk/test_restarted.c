/* SPDX-License-Identifier: BSD-3-Clause */
/* test_restarted.c -- an earlier server could not write a block of its file. A new `rpma serve` of
 * this file must serve only bytes that are on the medium, and must not acknowledge other bytes. */
#include "system/lib/check.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "system/lib/bad_disk.h"
#include "system/lib/cases.h"
#include "system/lib/proc.h"

#define BLOCK BAD_DISK_BLOCK
#define WAIT  20000

static struct bad_disk disk;
static struct proc server;
static char at[64]; /* address of the server */

/* Start `rpma serve`. Returns the first line that it prints, on standard output or standard
 * error. */
static const char *start(const char *options)
{
	char command[600];
	const char *argv[] = {"/bin/sh", "-c", command, NULL}, *line;

	snprintf(command, sizeof(command), "exec %s serve %s -p 0 disk/data 2>&1", SYSTEM_RPMA,
		 options);
	assert_int_equal(proc_start(&server, argv, NULL), 0);
	line = proc_line(&server, WAIT);
	if (!line)
		fail_msg("no server");
	return line;
}

static void serve(const char *options)
{
	const char *line = start(options);
	const char *address = strstr(line, "127.0.0.1:");

	if (strncmp(line, "serving ", 8) != 0 || !address)
		fail_msg("%s", line);
	snprintf(at, sizeof(at), "%.*s", (int)strspn(address, "0123456789.:") - 1, address);
}

static void stop(int sig)
{
	proc_signal(&server, sig);
	proc_wait(&server, WAIT);
	proc_kill(&server);
}

/* Fill one block with this letter, and flush it persistently. */
static void put(char letter, bool is_to_succeed)
{
	int rc = run_shell("head -c %u /dev/zero | tr '\\0' %c >letter && %s put -r data letter %s "
			   ">/dev/null 2>put.err",
			   BLOCK, letter, SYSTEM_RPMA, at);

	if ((rc == 0) != is_to_succeed)
		fail_msg("put %c: %d", letter, rc);
	assert_true(is_to_succeed || !run_shell("grep -q 'could not write to its medium' put.err"));
}

static char read_region(void)
{
	char byte;
	int fd;

	assert_int_equal(run_shell("rm -f got; %s get -r data --offset 0 %s got >/dev/null",
				   SYSTEM_RPMA, at),
			 0);
	fd = open("got", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, 0), 1);
	close(fd);
	return byte;
}

static char read_medium(void)
{
	char byte;

	bad_disk_read(&disk, "data", 0, &byte, 1);
	return byte;
}

/* Write a block that the disk cannot store, and then end the server by this signal. */
static void lose(char letter, int sig)
{
	bad_disk_break_block(&disk, "disk/data", 0);
	put(letter, false);
	stop(sig);
	bad_disk_repair(&disk);
	assert_int_equal(read_medium(), 0);
}

/* The first write to a reserved block fails. ext4 nevertheless treats the block as written
 * afterwards. */
static void what_is_served_anew_is_on_the_medium(int sig)
{
	serve("-c -s 1M");
	lose('b', sig);
	serve("");
	assert_int_equal(read_region(), 0);
	put('b', true);
	assert_int_equal(read_medium(), 'b');
	assert_int_equal(read_region(), 'b');
	lose('c', sig);
	serve("");
	assert_int_equal(read_region(), 0); /* the block has been removed with its content */
	put('c', true);
	assert_int_equal(read_medium(), 'c');
	stop(SIGTERM);
}

static void what_is_served_anew_after_a_kill_is_on_the_medium(void **state)
{
	what_is_served_anew_is_on_the_medium(SIGKILL);
}

static void what_is_served_anew_after_an_orderly_end_is_on_the_medium(void **state)
{
	what_is_served_anew_is_on_the_medium(SIGTERM);
}

static void pages_that_another_program_has_mapped_are_reported(void **state)
{
	const char *line;
	void *addr;
	int fd;

	serve("-c -s 1M");
	put('a', true);
	stop(SIGTERM);
	fd = open("disk/data", O_RDONLY | O_CLOEXEC);
	addr = mmap(NULL, BLOCK, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(addr != MAP_FAILED);
	assert_int_equal(*(volatile char *)addr, 'a');
	line = start("");
	if (!strstr(line, "of disk/data stay in the page cache, because another program"))
		fail_msg("%s", line);
	stop(SIGTERM);
	munmap(addr, BLOCK);
	serve(""); /* the log must not have the line about lost bytes */
	stop(SIGTERM);
	close(fd);
}

static int setup(void **state)
{
	static char folder[] = "restarted.XXXXXX";

	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
	*state = folder;
	assert_int_equal(mkdir("disk", 0700), 0);
	bad_disk_mount(&disk, "parts", "disk");
	return 0;
}

static int teardown(void **state)
{
	if (server.pid)
		proc_kill(&server);
	bad_disk_unmount(&disk);
	assert_int_equal(chdir(".."), 0);
	return run_shell("rm -r %s", (const char *)*state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_served_anew_after_a_kill_is_on_the_medium),
		TEST(what_is_served_anew_after_an_orderly_end_is_on_the_medium),
		TEST(pages_that_another_program_has_mapped_are_reported),
	};

	bad_disk_need();
	return cases_run(tests, 3);
}
