/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * history.h -- check whether a history of reads and writes is linearizable.
 *
 * Each register begins with value 0, and no value is written twice to the same register. So each
 * read identifies its write, and an exact check takes n log n steps (Gibbons and Korach, Testing
 * Shared Memories, 1997): the operations on a value form a *zone*, from the first end to the last
 * begin among them. If the zone is empty, these operations can all take effect at one moment;
 * otherwise the register must have had the value throughout the zone.
 */
#ifndef TESTS_HISTORY_H
#define TESTS_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct history_op {
	uint64_t reg, value;
	uint64_t begin, end; /* times of one clock; the operation takes effect between them */
	bool is_write;
	bool is_unsure; /* a write without an answer: it took effect before `end`, or never */
};

enum history_fault {
	HISTORY_IS_FINE,
	/* two writes of one value to one register: the history cannot be judged */
	HISTORY_VALUE_TWICE,
	HISTORY_VALUE_UNKNOWN,  /* a read of a value that was never written */
	HISTORY_READ_TOO_EARLY, /* a read that ended before the write of its value began */
	HISTORY_OUT_OF_ORDER    /* a register has a value both before and after another value */
};

struct history_verdict {
	enum history_fault fault;
	/*
	 * OUT_OF_ORDER: two operations that cannot be ordered. VALUE_TWICE: the two writes.
	 * READ_TOO_EARLY: the read, and the write of its value. Otherwise only `a` is meaningful.
	 */
	struct history_op a, b;
};

/* Sort ops, and return the verdict. */
struct history_verdict history_check(struct history_op *ops, size_t count);
const char *history_fault_2str(enum history_fault fault);

#endif
