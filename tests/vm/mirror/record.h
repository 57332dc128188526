/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * record.h -- the records in a mirrored file, and the journal about them.
 *
 * Record n has 64 bytes, and each of its words is n. The file has RECORD_COUNT positions; record n
 * + RECORD_COUNT overwrites record n. The program stores the first word of record n, without a
 * flush, when it stores record n - RECORD_AHEAD. A journal has an entry for each flush that
 * returned 0. A program that has noticed that it is fenced numbers its records from RECORD_FENCED
 * on.
 */
#ifndef VM_MIRROR_RECORD_H
#define VM_MIRROR_RECORD_H

#include <stdint.h>

#define RECORD_WORDS 8u
#define RECORD_COUNT 3000u
/* each record is on a page of its own, at an offset in the page that differs from its
 * neighbours' */
#define RECORD_STEP   4160u
#define RECORD_AHEAD  100u
#define RECORD_FENCED (1000000000000u / RECORD_COUNT * RECORD_COUNT)

struct record_entry {
	uint64_t n;
	uint64_t durable; /* the copies that have the record, a bit for each slot */
};

static inline uint64_t record_offset(uint64_t n)
{
	return n % RECORD_COUNT * RECORD_STEP;
}

#endif
