/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_main.c -- FILE JOURNAL SLOT: the file has, at the place of each record that was durable in
 * the copy of that slot, this record or one that was written there later.
 */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "record.h"

static uint64_t newest[RECORD_COUNT];

static unsigned long long read_journal(const char *path, unsigned slot)
{
	FILE *file = fopen(path, "re");
	struct record_entry entry;
	unsigned long long count = 0;

	if (!file)
		err(2, "%s", path);
	while (fread(&entry, sizeof(entry), 1, file) == 1) {
		if (!(entry.durable >> slot & 1))
			continue;
		newest[entry.n % RECORD_COUNT] = entry.n;
		count++;
	}
	fclose(file);
	return count;
}

/* Any word of a record may be of a later one that was never acknowledged, and of no other. */
static unsigned is_missing(int fd, uint64_t n)
{
	uint64_t words[RECORD_WORDS];
	unsigned missing = 0;

	if (pread(fd, words, sizeof(words), (off_t)record_offset(n)) != sizeof(words))
		err(2, "read the place of record %llu", (unsigned long long)n);
	for (unsigned i = 0; i < RECORD_WORDS; i++)
		missing |= words[i] < n || words[i] % RECORD_COUNT != n % RECORD_COUNT;
	return missing;
}

int main(int argc, char **argv)
{
	unsigned long long acknowledged, missing = 0;
	int fd;

	if (argc != 4)
		errx(2, "FILE JOURNAL SLOT");
	acknowledged = read_journal(argv[2], (unsigned)atoi(argv[3]));
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		err(2, "%s", argv[1]);
	for (unsigned i = 0; i < RECORD_COUNT; i++)
		missing += newest[i] ? is_missing(fd, newest[i]) : 0;
	printf("%s: %llu acknowledged, %llu missing\n", argv[1], acknowledged, missing);
	if (!acknowledged)
		errx(2, "nothing was acknowledged");
	return missing != 0;
}
