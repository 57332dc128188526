/* SPDX-License-Identifier: BSD-3-Clause */
/* case.h -- parses the case to measure from the arguments name=value of the command line. */
#ifndef BENCH_CASE_H
#define BENCH_CASE_H

#include <stdbool.h>
#include <stdint.h>

#define CASE_SPIN_DEFAULT (-1)

/* bench/README.md explains the names. The strings point into the command line. */
struct bench_case {
	const char *who, *work, *link;
	uint64_t size, back, apart;
	unsigned depth, every, conns, ms, port;
	bool ini_polls, tgt_polls;
	int spin; /* spin time in microseconds, or CASE_SPIN_DEFAULT */
	const char *crc, *flush;
	/* place of the initiator's memory or file; tgt_where: place at the target, NULL: as
	 * `where` */
	const char *where, *tgt_where;
	const char *addr;            /* address of the target */
	const char *ini_ns, *tgt_ns; /* network namespaces of the two ends, or NULL */
	int ini_cpu, tgt_cpu;        /* CPUs of the two ends; -1: any */
};

/* Parse the arguments. After an invalid argument the program exits. */
void case_parse(struct bench_case *c, const char *who, int argc, char **argv);
bool case_is_work(const struct bench_case *c, const char *work);
bool case_is_persistent(const struct bench_case *c);
bool case_is_memory(const struct bench_case *c);
/* Returns the folder of the target's files. */
const char *case_target_where(const struct bench_case *c);
/* Return the duration of the measurement, and of the warm-up before it, in ns. */
uint64_t case_ns(const struct bench_case *c);
uint64_t case_warmup_ns(const struct bench_case *c);

#endif
