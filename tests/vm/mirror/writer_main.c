/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * writer_main.c -- SET JOURNAL [isolated|direct]: waits for the role of the primary, and writes
 * records from the journal's end on, each flushed by itself, until SIGTERM. A SET with a slash is
 * an ordinary file, written back by msync: below it something else makes copies.
 */
#include <err.h>
#include <fcntl.h>
#include <librpmirror.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record.h"

#define PAGE        4096u
#define BOTH_COPIES 3u /* a file's msync does not say which ones have it, and stands for all */

struct target {
	struct rpmirror *mirror; /* NULL: a file */
	uint8_t *base;
};

static volatile sig_atomic_t ends;

static void on_term(int sig)
{
	(void)sig;
	ends = 1;
}

static uint64_t last_number(int journal)
{
	struct record_entry last = {0};
	off_t end = lseek(journal, 0, SEEK_END);

	if (end >= (off_t)sizeof(last) &&
	    pread(journal, &last, sizeof(last), end - (off_t)sizeof(last)) != sizeof(last))
		err(1, "read the journal");
	return last.n;
}

static void target_map_file(struct target *target, const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	void *base;

	if (fd < 0)
		err(1, "%s", path);
	base = mmap(NULL, RECORD_COUNT * RECORD_STEP, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		err(1, "map %s", path);
	target->base = base;
	close(fd);
}

static void target_map(struct target *target, const char *name, unsigned flags)
{
	size_t size;
	void *base;

	if (strchr(name, '/')) {
		target_map_file(target, name);
		return;
	}
	if (rpmirror_map(name, NULL, RPMIRROR_MAP_WAIT | flags, &target->mirror, &base, &size))
		errx(1, "map: %s", rpmirror_errormsg());
	target->base = base;
}

/* The copies that have it. */
static uint64_t target_flush(const struct target *target, const uint64_t *words, uint64_t n)
{
	struct rpmirror_range range = {words, RECORD_WORDS * sizeof(*words)};
	struct rpmirror_result result;

	if (!target->mirror) {
		uint8_t *page = target->base + record_offset(n) / PAGE * PAGE;

		if (msync(page, PAGE, MS_SYNC))
			err(1, "record %llu", (unsigned long long)n);
		return BOTH_COPIES;
	}
	if (rpmirror_flush(target->mirror, &range, 1, 0, &result))
		errx(1, "record %llu: %s", (unsigned long long)n, rpmirror_errormsg());
	return result.durable_mask;
}

static void write_record(const struct target *target, uint64_t n, int journal)
{
	uint64_t *words = (uint64_t *)(void *)(target->base + record_offset(n));
	struct record_entry entry = {.n = n};

	for (unsigned i = 0; i < RECORD_WORDS; i++)
		words[i] = n;
	entry.durable = target_flush(target, words, n);
	if (write(journal, &entry, sizeof(entry)) != sizeof(entry))
		err(1, "write the journal");
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_term};
	struct target target = {0};
	unsigned flags = 0;
	int journal;

	if (argc < 3 || argc > 4)
		errx(2, "SET JOURNAL [direct]");
	if (argc == 4 && !strcmp(argv[3], "direct"))
		flags = RPMIRROR_MAP_DIRECT;
	sigaction(SIGTERM, &action, NULL);
	journal = open(argv[2], O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (journal < 0)
		err(1, "%s", argv[2]);
	target_map(&target, argv[1], flags);
	for (uint64_t n = last_number(journal) + 1; !ends; n++)
		write_record(&target, n, journal);
	if (target.mirror && rpmirror_unmap(&target.mirror))
		errx(1, "unmap: %s", rpmirror_errormsg());
	return 0;
}
