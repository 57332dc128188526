/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wal -- a write-ahead log on another machine: wal HOST[:PORT][:REGION] append <lines, or ... show
 *
 * The first word of the region is where the log ends. Records, a length and a text, are written
 * behind that end, and become part of the log when the word is stored: a group as a whole. The word
 * is durable only after the records. So the log is whole whatever dies, and has all that was
 * acknowledged.
 */
#include <err.h>
#include <librpmafile.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_BEGIN 4096
#define LINE      4096
#define GROUP     65536

struct wal {
	struct rpma_file *file;
	uint64_t end;      /* of the log */
	uint64_t len;      /* of records that are not part of it yet */
	char group[GROUP]; /* which are kept until then */
};

static void must(int rc)
{
	if (rc)
		errx(EXIT_FAILURE, "%s", rpma_file_errormsg());
}

static void append(struct wal *w, const char *text, uint32_t len)
{
	memcpy(w->group + w->len, &len, sizeof(len));
	memcpy(w->group + w->len + sizeof(len), text, len);
	w->len += sizeof(len) + len;
}

/* One round trip for the group. After a lost connection it is written again, at the same place. */
static void commit(struct wal *w)
{
	int rc;

	while ((rc = rpma_file_pwrite(w->file, w->group, w->len, w->end)) ||
	       (rc = rpma_file_store8(w->file, 0, w->end + w->len)))
		must(rc == RPMA_FILE_E_LOST ? rpma_file_reopen(w->file) : rc);
	w->end += w->len;
	w->len = 0;
	printf("durable up to %llu\n", (unsigned long long)w->end);
	fflush(stdout);
}

static void append_lines(struct wal *w)
{
	struct pollfd more = {.events = POLLIN};
	char line[LINE];

	setvbuf(stdin, NULL, _IONBF, 0); /* so that poll() sees what is left */
	while (fgets(line, sizeof(line), stdin)) {
		append(w, line, (uint32_t)strlen(line));
		if (w->len > GROUP - LINE - sizeof(uint32_t) || poll(&more, 1, 0) == 0)
			commit(w);
	}
	if (w->len)
		commit(w);
}

/* All records, as the other machine's medium holds them. */
static void show(struct wal *w)
{
	char *log = malloc(w->end);
	uint32_t len;

	must(!log ? RPMA_E_NOMEM : rpma_file_pread(w->file, log, w->end, 0));
	must(rpma_file_verify(w->file, log, w->end, 0));
	for (uint64_t at = LOG_BEGIN; at < w->end; at += sizeof(len) + len) {
		memcpy(&len, log + at, sizeof(len));
		printf("%.*s", (int)len, log + at + sizeof(len));
	}
	free(log);
}

int main(int argc, char **argv)
{
	struct rpma_file_options options = {.size = sizeof(options), .reconnect_ms = 30000};
	static struct wal w;

	if (argc != 3 || (strcmp(argv[2], "append") && strcmp(argv[2], "show")))
		errx(EXIT_FAILURE, "usage: wal HOST[:PORT][:REGION] append|show");
	must(rpma_file_open(argv[1], &options, &w.file));
	must(rpma_file_pread(w.file, &w.end, sizeof(w.end), 0));
	w.end = w.end ? w.end : LOG_BEGIN; /* a new region holds zeros */
	(argv[2][0] == 'a' ? append_lines : show)(&w);
	must(rpma_file_close(&w.file));
}
