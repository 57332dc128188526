/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * record.h -- the records in a mirrored file, and the journal about them.
 *
 * Record n is 64 bytes at a place of its own until RECORD_COUNT later ones; each word of it is n.
 * RECORD_AHEAD before its turn its first word is stored already, and not flushed. A journal has an
 * entry for each flush that returned 0. Records of a program that has noticed that it is fenced
 * have numbers from RECORD_FENCED on.
 */
#ifndef VM_MIRROR_RECORD_H
#define VM_MIRROR_RECORD_H

#include <stdint.h>

#define RECORD_WORDS 8u
#define RECORD_COUNT 3000u
/* each record is on a page of its own, and at a different offset in it */
#define RECORD_STEP   4160u
#define RECORD_AHEAD  100u
#define RECORD_FENCED (1000000000000u / RECORD_COUNT * RECORD_COUNT)

struct record_entry {
	uint64_t n;
	uint64_t durable; /* the copies that have it, a bit for each slot */
};

static inline uint64_t record_offset(uint64_t n)
{
	return n % RECORD_COUNT * RECORD_STEP;
}

#endif
