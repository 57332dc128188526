/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * writer_main.c -- SET JOURNAL: waits for the role of the primary, and writes records from the
 * journal's end on, each flushed by itself, until SIGTERM.
 */
#include <err.h>
#include <fcntl.h>
#include <librpmirror.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "record.h"

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

static void write_record(struct rpmirror *m, uint8_t *base, uint64_t n, int journal)
{
	uint64_t *words = (uint64_t *)(void *)(base + record_offset(n));
	struct rpmirror_range range = {words, RECORD_WORDS * sizeof(*words)};
	struct rpmirror_result result;
	struct record_entry entry = {.n = n};

	for (unsigned i = 0; i < RECORD_WORDS; i++)
		words[i] = n;
	if (rpmirror_flush(m, &range, 1, 0, &result))
		errx(1, "record %llu: %s", (unsigned long long)n, rpmirror_errormsg());
	entry.durable = result.durable_mask;
	if (write(journal, &entry, sizeof(entry)) != sizeof(entry))
		err(1, "write the journal");
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_term};
	struct rpmirror *m;
	size_t size;
	void *addr;
	int journal;

	if (argc != 3)
		errx(2, "SET JOURNAL");
	sigaction(SIGTERM, &action, NULL);
	journal = open(argv[2], O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (journal < 0)
		err(1, "%s", argv[2]);
	if (rpmirror_map(argv[1], NULL, RPMIRROR_MAP_WAIT, &m, &addr, &size))
		errx(1, "map: %s", rpmirror_errormsg());
	for (uint64_t n = last_number(journal) + 1; !ends; n++)
		write_record(m, addr, n, journal);
	if (rpmirror_unmap(&m))
		errx(1, "unmap: %s", rpmirror_errormsg());
	return 0;
}
