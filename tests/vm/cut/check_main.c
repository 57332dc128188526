/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_main.c -- arguments FILE ACKNOWLEDGED: check the file after a power cut. Its last word must
 * be at least ACKNOWLEDGED, and it must have every record up to that number.
 */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "system/crash/recorder.h"

static int check_record(int fd, uint64_t n)
{
	uint8_t want[RECORD_SIZE], got[RECORD_SIZE];

	record_make(want, n);
	if (pread(fd, got, sizeof(got), (off_t)(n * RECORD_SIZE)) != sizeof(got))
		err(2, "read record %llu", (unsigned long long)n);
	return memcmp(want, got, sizeof(got)) != 0;
}

int main(int argc, char **argv)
{
	unsigned long long acked, missing = 0;
	uint64_t word;
	struct stat st;
	int fd;

	if (argc != 3)
		errx(2, "FILE ACKNOWLEDGED");
	acked = strtoull(argv[2], NULL, 10);
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) ||
	    pread(fd, &word, sizeof(word), st.st_size - (off_t)sizeof(word)) != sizeof(word))
		err(2, "%s", argv[1]);
	for (uint64_t n = 0; n < (word > acked ? word : acked); n++)
		missing += (unsigned)check_record(fd, n);
	printf("%s: %llu acknowledged, word %llu, %llu missing\n", argv[1], acked,
	       (unsigned long long)word, missing);
	return word < acked || missing ? 1 : 0;
}
