/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * atomic-flag -- append to a log so that a reader never takes a half-written record for a complete
 * one.
 *
 * After a crash any part of a large write may be on the medium. So the program first makes the
 * record durable. Then rpma_atomic_write() writes the eight bytes that count the records:
 * completely or not at all, even in a crash. A record exists if and only if it is counted.
 */
#include <endian.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common.h"

#define TEXT_MAX    48
#define RECORDS_MAX 63

struct record {
	uint64_t sum; /* hash of number and text, which the reader checks */
	uint64_t number;
	char text[TEXT_MAX];
};

/* Numbers in the file are little-endian, because the two machines may differ. */
struct log {
	/* count: the commit flag; an atomic write needs an address that is a multiple of 8 */
	uint64_t count;
	uint64_t unused[7];
	struct record records[RECORDS_MAX];
};

/* Returns the FNV-1a hash of the text, begun with the number. */
static uint64_t sum_of(const struct record *r)
{
	uint64_t sum = 14695981039346656037u ^ r->number;

	for (size_t i = 0; i < sizeof(r->text); i++)
		sum = (sum ^ (unsigned char)r->text[i]) * 1099511628211u;
	return sum;
}

static void server(char **args)
{
	offer_file(args, sizeof(struct log),
		   RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST |
			   RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT,
		   1);
}

static uint64_t read_count(struct session *s, struct rpma_mr_local *mr, const struct log *log)
{
	must(rpma_read(s->conn, mr, 0, s->region, 0, sizeof(log->count), RPMA_F_COMPLETION_ALWAYS,
		       NULL),
	     "read the count");
	await(s->cq, "read the count");
	return le64toh(log->count);
}

static void flush(struct session *s, size_t offset, size_t len, int flags)
{
	must(rpma_flush(s->conn, s->region, offset, len, RPMA_FLUSH_TYPE_PERSISTENT, flags, NULL),
	     "flush");
}

/* Post four operations with one completion. They are executed in order, and none is executed after
 * a failure. */
static void append(struct session *s, struct rpma_mr_local *mr, uint64_t n, bool commit)
{
	size_t at = offsetof(struct log, records) + n * sizeof(struct record);
	uint64_t count = htole64(n + 1);
	char flag[RPMA_ATOMIC_WRITE_ALIGNMENT];

	memcpy(flag, &count, sizeof(flag));
	must(rpma_write(s->conn, s->region, at, mr, at, sizeof(struct record),
			RPMA_F_COMPLETION_ON_ERROR, NULL),
	     "write the record");
	flush(s, at, sizeof(struct record),
	      commit ? RPMA_F_COMPLETION_ON_ERROR : RPMA_F_COMPLETION_ALWAYS);
	if (commit) {
		must(rpma_atomic_write(s->conn, s->region, offsetof(struct log, count), flag,
				       RPMA_F_COMPLETION_ON_ERROR, NULL),
		     "write the flag");
		flush(s, offsetof(struct log, count), sizeof(flag), RPMA_F_COMPLETION_ALWAYS);
	}
	await(s->cq, "append");
}

static void client(char **args)
{
	bool commit = !args[3] || strcmp(args[3], "crash") != 0;
	static struct log log; /* local copy of the remote log */
	struct rpma_mr_local *mr;
	struct session s;
	struct record *r;
	uint64_t n;

	session_open(&s, args, NULL);
	session_take_offer(&s, sizeof(log));
	must(rpma_mr_reg(s.peer, &log, sizeof(log),
			 RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC, &mr),
	     "register");
	n = read_count(&s, mr, &log);
	if (n >= RECORDS_MAX)
		errx(EXIT_FAILURE, "the log is full");
	r = &log.records[n];
	r->number = htole64(n);
	if (snprintf(r->text, sizeof(r->text), "%s", args[2]) >= TEXT_MAX)
		errx(EXIT_FAILURE, "the text is longer than %d bytes", TEXT_MAX - 1);
	r->sum = htole64(sum_of(r));
	append(&s, mr, n, commit);
	if (!commit)
		errx(EXIT_FAILURE, "crashing before the commit of record %d, as requested", (int)n);
	printf("record %d is durable\n", (int)n);
	session_close(&s, &mr);
}

static void reader(char **args)
{
	struct log *log = map_file(args[0], sizeof(*log));
	/* Load the flag by one access, because the writer also stores it by one access. */
	uint64_t count = le64toh(__atomic_load_n(&log->count, __ATOMIC_ACQUIRE));

	if (count > RECORDS_MAX)
		errx(EXIT_FAILURE, "%s is not a log", args[0]);
	for (uint64_t i = 0; i < count; i++) {
		const struct record *r = &log->records[i];

		if (le64toh(r->number) != i || le64toh(r->sum) != sum_of(r))
			errx(EXIT_FAILURE, "record %d is counted but damaged", (int)i);
		printf("record %d: %.*s\n", (int)i, TEXT_MAX, r->text);
	}
	printf("%d records, all whole\n", (int)count);
	munmap(log, sizeof(*log));
}

int main(int argc, char **argv)
{
	static const struct role roles[] = {{"server", "ADDRESS PORT FILE", server},
					    {"client", "ADDRESS PORT TEXT [crash]", client},
					    {"reader", "FILE", reader},
					    {0}};

	return play(argc, argv, roles);
}
