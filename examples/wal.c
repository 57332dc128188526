/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wal -- a write-ahead log on another machine: wal HOST[:PORT][:REGION] append <lines, or ... show
 * The region's first word is the length of the log. The program writes a group of lines after the
 * log's end. When the group is durable, the program stores that word, which makes the group part of
 * the log. So the log has every acknowledged line.
 */
#include <err.h>
#include <librpmafile.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BEGIN 4096 /* offset of the log in the region */
#define LINE  4096
#define HEAD  8 /* bytes before the text of a group */

static struct rpma_file *file;
static uint64_t length; /* length of the log in bytes */
static struct group {
	uint64_t len;
	char text[16 * LINE];
} group; /* the next group, which is kept until it is durable */

static void must(int rc)
{
	if (rc)
		errx(EXIT_FAILURE, "%s", rpma_file_errormsg());
}

/*
 * Commit in one round trip. After a lost connection, write the group again at the same offset.
 * rpma_file_reopen() reports whether another writer used the log meanwhile.
 */
static void commit(void)
{
	uint64_t size = HEAD + group.len;
	int rc;

	while ((rc = rpma_file_pwrite(file, &group, size, BEGIN + length)) ||
	       (rc = rpma_file_store8(file, 0, length + size)))
		must(rc == RPMA_FILE_E_LOST ? rpma_file_reopen(file) : rc);
	group.len = 0;
	dprintf(STDOUT_FILENO, "durable up to %llu\n", (unsigned long long)(length += size));
}

/* Make the bytes of the last writer durable before adding a record. */
static void append(void)
{
	must(rpma_file_sync(file, &(struct rpma_file_range){0, BEGIN + length}, 1));
	setvbuf(stdin, NULL, _IONBF, 0); /* unbuffered, so that poll() sees all unread bytes */
	while (fgets(group.text + group.len, LINE, stdin)) {
		group.len += strlen(group.text + group.len);
		if (group.len > 15 * LINE || !poll(&(struct pollfd){.events = POLLIN}, 1, 0))
			commit();
	}
	if (group.len)
		commit();
}

/* Print the whole log from the other machine's medium. */
static void show(void)
{
	char *log = malloc(BEGIN + length);

	must(!log ? RPMA_E_NOMEM : rpma_file_pread(file, log, BEGIN + length, 0));
	must(rpma_file_verify(file, log, BEGIN + length, 0));
	for (char *at = log + BEGIN; at < log + BEGIN + length; at += HEAD + group.len) {
		memcpy(&group, at, HEAD);
		fwrite(at + HEAD, 1, group.len, stdout);
	}
	free(log);
}

int main(int argc, char **argv)
{
	struct rpma_file_options options = {.size = sizeof(options), .reconnect_ms = 30000};

	if (argc != 3 || (strcmp(argv[2], "append") && strcmp(argv[2], "show")))
		errx(EXIT_FAILURE, "usage: wal HOST[:PORT][:REGION] append|show");
	must(rpma_file_open(argv[1], &options, &file));
	must(rpma_file_pread(file, &length, sizeof(length), 0));
	(argv[2][0] == 'a' ? append : show)();
	must(rpma_file_close(&file));
}
