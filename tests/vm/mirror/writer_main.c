/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * writer_main.c -- SET JOURNAL [isolated|direct [SEEN]]: wait for the role of the primary; then
 * write and flush one record after another, from the end of the journal on, until SIGTERM. If SET
 * contains a slash, it is an ordinary file that is written back by msync(), and a layer below the
 * file system makes copies.
 *
 * The file SEEN has the records that an earlier program read from the mapping: no record is allowed
 * to become older, and every record in the journal must be in the mapping. A fenced program ignores
 * this for some time and continues to write; then it exits with status 3.
 */
#include <err.h>
#include <fcntl.h>
#include <librpmirror.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record.h"

#define PAGE 4096u
/* msync() of an ordinary file does not report which copies have the data, so assume both */
#define BOTH_COPIES    3u
#define JOURNAL_BUFFER (256u << 10)
#define DEFIANCES      200u
#define FENCED         3 /* exit status of a fenced program */
/* pause after a record that has only one copy: then no second copy slows the program down */
#define ALONE_US 2000

struct target {
	struct rpmirror *mirror; /* NULL: the target is an ordinary file */
	uint8_t *base;
};

static volatile sig_atomic_t ends;
static uint64_t seen[RECORD_COUNT][RECORD_WORDS];
static uint64_t acknowledged[RECORD_COUNT];

static void on_term(int sig)
{
	(void)sig;
	ends = 1;
}

/* ---- journal ---- */

static uint64_t last_number(int journal)
{
	struct record_entry last = {0};
	off_t end = lseek(journal, 0, SEEK_END);

	if (end >= (off_t)sizeof(last) &&
	    pread(journal, &last, sizeof(last), end - (off_t)sizeof(last)) != sizeof(last))
		err(1, "read the journal");
	return last.n;
}

static void read_acknowledged(const char *path)
{
	FILE *file = fopen(path, "re");
	struct record_entry entry;

	if (!file)
		err(1, "%s", path);
	setvbuf(file, NULL, _IOFBF, JOURNAL_BUFFER); /* the guest's file system is slow */
	while (fread(&entry, sizeof(entry), 1, file) == 1)
		if (entry.durable && entry.n > acknowledged[entry.n % RECORD_COUNT])
			acknowledged[entry.n % RECORD_COUNT] = entry.n;
	fclose(file);
}

/* ---- mapping ---- */

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

static uint64_t *target_words(const struct target *target, uint64_t n)
{
	return (uint64_t *)(void *)(target->base + record_offset(n));
}

/* Flush record n. Returns the copies that have the record, a bit for each slot, or 0 if the program
 * is fenced. */
static uint64_t target_flush(const struct target *target, uint64_t n)
{
	uint64_t *words = target_words(target, n);
	struct rpmirror_range range = {words, RECORD_WORDS * sizeof(*words)};
	struct rpmirror_result result;
	int rc;

	if (!target->mirror) {
		uint8_t *page = target->base + record_offset(n) / PAGE * PAGE;

		if (msync(page, PAGE, MS_SYNC))
			err(1, "record %llu", (unsigned long long)n);
		return BOTH_COPIES;
	}
	rc = rpmirror_flush(target->mirror, &range, 1, 0, &result);
	if (rc && rc != RPMIRROR_E_FENCED)
		errx(1, "record %llu: %s", (unsigned long long)n, rpmirror_errormsg());
	return rc ? 0 : result.durable_mask;
}

/* ---- check of a new mapping ---- */

static void look_at_record(const struct target *target, unsigned i)
{
	const uint64_t *words = target_words(target, i);

	for (unsigned j = 0; j < RECORD_WORDS; j++) {
		uint64_t word = __atomic_load_n(&words[j], __ATOMIC_ACQUIRE);

		if (word < acknowledged[i])
			errx(1, "record %llu was acknowledged, word %u of it is %llu",
			     (unsigned long long)acknowledged[i], j, (unsigned long long)word);
		if (word < seen[i][j])
			errx(1, "word %u of record %u goes back from %llu to %llu", j, i,
			     (unsigned long long)seen[i][j], (unsigned long long)word);
		seen[i][j] = word;
	}
}

/* Only reads that rpmirror_confirm() confirms are valid. */
static void look_back(const struct target *target, const char *journal, const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	ssize_t n;

	if (fd < 0)
		err(1, "%s", path);
	n = pread(fd, seen, sizeof(seen), 0);
	if (n && n != sizeof(seen))
		err(1, "read %s", path);
	read_acknowledged(journal);
	for (unsigned i = 0; i < RECORD_COUNT; i++)
		look_at_record(target, i);
	if (rpmirror_confirm(target->mirror))
		errx(1, "confirm: %s", rpmirror_errormsg());
	if (pwrite(fd, seen, sizeof(seen), 0) != sizeof(seen))
		err(1, "write %s", path);
	close(fd);
}

/* ---- records ---- */

static void store_record(const struct target *target, uint64_t n)
{
	uint64_t *words = target_words(target, n);

	for (unsigned i = 0; i < RECORD_WORDS; i++)
		words[i] = n;
	if (target->mirror)
		*target_words(target, n + RECORD_AHEAD) = n + RECORD_AHEAD;
}

static void defy(const struct target *target, uint64_t n)
{
	warnx("record %llu: %s", (unsigned long long)n, rpmirror_errormsg());
	for (unsigned i = 0; i < DEFIANCES; i++) {
		uint64_t fenced = RECORD_FENCED + i * (uint64_t)RECORD_COUNT + n % RECORD_COUNT;

		store_record(target, fenced);
		if (target_flush(target, fenced))
			errx(1, "a flush of a fenced program returns 0");
	}
	errx(FENCED, "fenced, %u flushes refused", DEFIANCES);
}

static void write_record(const struct target *target, uint64_t n, int journal)
{
	struct record_entry entry = {.n = n};

	store_record(target, n);
	entry.durable = target_flush(target, n);
	if (!entry.durable)
		defy(target, n);
	if (write(journal, &entry, sizeof(entry)) != sizeof(entry))
		err(1, "write the journal");
	if (!(entry.durable & (entry.durable - 1)))
		usleep(ALONE_US);
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_term};
	struct target target = {0};
	unsigned flags = 0;
	int journal;

	if (argc < 3 || argc > 5)
		errx(2, "SET JOURNAL [isolated|direct [SEEN]]");
	if (argc > 3 && !strcmp(argv[3], "direct"))
		flags = RPMIRROR_MAP_DIRECT;
	sigaction(SIGTERM, &action, NULL);
	target_map(&target, argv[1], flags);
	/* Another host can have written to the journal until now, so open it only at this time. */
	journal = open(argv[2], O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (journal < 0)
		err(1, "%s", argv[2]);
	if (argc > 4)
		look_back(&target, argv[2], argv[4]);
	for (uint64_t n = last_number(journal) + 1; !ends; n++)
		write_record(&target, n, journal);
	if (target.mirror && rpmirror_unmap(&target.mirror))
		errx(1, "unmap: %s", rpmirror_errormsg());
	return 0;
}
