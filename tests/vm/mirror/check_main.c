/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_main.c -- arguments FILE JOURNAL SLOT [isolated]: check a copy of the set. For each record
 * that was durable in the copy of SLOT, the file must have this record or a later record at the
 * same position. The file must not have a record of a fenced program. With "isolated" every store
 * in the file must belong to a flush that at least had begun.
 */
#include <err.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record.h"

#define JOURNAL_BUFFER (256u << 10)

static uint64_t newest[RECORD_COUNT];
static uint64_t words[RECORD_COUNT][RECORD_WORDS];

/* Returns the number of records that the copy has. *last gets the number of the last record in any
 * copy. */
static unsigned long long read_journal(const char *path, unsigned slot, uint64_t *last)
{
	FILE *file = fopen(path, "re");
	struct record_entry entry;
	unsigned long long count = 0;

	if (!file)
		err(2, "%s", path);
	setvbuf(file, NULL, _IOFBF, JOURNAL_BUFFER); /* the guest's file system is slow */
	while (fread(&entry, sizeof(entry), 1, file) == 1) {
		if (entry.n > *last)
			*last = entry.n;
		if (!(entry.durable >> slot & 1))
			continue;
		if (entry.n > newest[entry.n % RECORD_COUNT])
			newest[entry.n % RECORD_COUNT] = entry.n;
		count++;
	}
	fclose(file);
	return count;
}

static void read_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		err(2, "%s", path);
	for (unsigned i = 0; i < RECORD_COUNT; i++)
		if (pread(fd, words[i], sizeof(words[i]), (off_t)record_offset(i)) !=
		    sizeof(words[i]))
			err(2, "read the place of record %u", i);
	close(fd);
}

/* Returns true if record n is missing. A later record at the same position can have replaced any of
 * its words, even if the later record was never acknowledged. */
static bool is_missing(uint64_t n)
{
	const uint64_t *at = words[n % RECORD_COUNT];
	bool missing = false;

	for (unsigned i = 0; i < RECORD_WORDS; i++)
		missing |= at[i] < n || at[i] % RECORD_COUNT != n % RECORD_COUNT;
	return missing;
}

static unsigned count_beyond(uint64_t limit)
{
	unsigned count = 0;

	for (unsigned i = 0; i < RECORD_COUNT; i++)
		for (unsigned j = 0; j < RECORD_WORDS; j++)
			count += words[i][j] > limit;
	return count;
}

int main(int argc, char **argv)
{
	unsigned long long acknowledged, missing = 0;
	unsigned fenced, unflushed = 0;
	uint64_t last = 0;

	if (argc < 4 || argc > 5)
		errx(2, "FILE JOURNAL SLOT [isolated]");
	acknowledged = read_journal(argv[2], (unsigned)atoi(argv[3]), &last);
	read_file(argv[1]);
	for (unsigned i = 0; i < RECORD_COUNT; i++)
		missing += newest[i] && is_missing(newest[i]);
	fenced = count_beyond(RECORD_FENCED - 1);
	if (fenced)
		warnx("%u words of a fenced program", fenced);
	if (argc > 4 && !strcmp(argv[4], "isolated")) {
		/*
		 * The flush of the record after the last one can have begun, so allow this record.
		 */
		read_journal(argv[2], (unsigned)atoi(argv[3]), &last);
		unflushed = count_beyond(last + 1);
	}
	if (unflushed)
		warnx("%u words that were not flushed", unflushed);
	printf("%s: %llu acknowledged, %llu missing\n", argv[1], acknowledged, missing);
	if (!acknowledged)
		errx(2, "nothing was acknowledged");
	return missing || fenced || unflushed;
}
