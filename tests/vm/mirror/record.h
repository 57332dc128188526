/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * record.h -- the records in a mirrored file, and the journal of these records.
 *
 * Record n has 64 bytes, and each of its words is n. The file has RECORD_COUNT positions; record n
 * + RECORD_COUNT overwrites record n. The program stores the first word of record n, without a
 * flush, when it stores record n - RECORD_AHEAD. A journal has an entry for each flush that
 * returned 0. After a program has noticed that it is fenced, its record numbers begin at
 * RECORD_FENCED.
 */
#ifndef VM_MIRROR_RECORD_H
#define VM_MIRROR_RECORD_H

#include <stdint.h>

#define RECORD_WORDS 8u
#define RECORD_COUNT 3000u
/* each record is on its own page; the offset in the page differs from that of the neighbouring
 * records */
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
