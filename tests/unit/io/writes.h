/* SPDX-License-Identifier: BSD-3-Clause */
/* writes.h -- Writes that may wait for the next post, and a clock that can stand still. Link
 * with --wrap=clock_gettime. */
#ifndef UNIT_IO_WRITES_H
#define UNIT_IO_WRITES_H

#include "ends.h"

enum { WORDS = END_BUF / 8, TEACH = 4 };

/* Sometimes a thread of the engine still checks for the previous answer, and sends a waiting Write.
 * The test repeats such a round, at most this many times. */
#define TRIES 100

void stop_clock(void);
void start_clock(void);
void advance_clock(uint64_t ns); /* call this while the clock stands still */

/* Two ends; the client writes to the server's memory. */
struct pair {
	struct ends ends;
	struct ibv_mr *target; /* region of words */
	_Atomic uint64_t words[WORDS];
	uint64_t addr; /* address of the words, for the client's Writes */
	uint32_t rkey;
	uint64_t next; /* the value to write next */
};
void pair_open(struct pair *p);
void pair_close(struct pair *p);
/* Register the words as a region of the server. */
void pair_register(struct pair *p);

uint64_t counter_of(struct end *e, const char *name);
uint64_t sends_of(struct end *e);
uint64_t sends(struct pair *p); /* returns how often the client has sent */
/* Post a Write of the next value to the first word, or of `len` bytes. */
int post_write(struct pair *p, uint32_t len, unsigned flags);
void write_quietly(struct pair *p);
void flush(struct pair *p);
/* Post pairs of a Write and another request, so that later Writes of this connection wait. */
void teach(struct pair *p);
/* Open a pair whose connection lets Writes wait, and post a Write that waits. */
void pair_open_waiting(struct pair *p);
/* returns true if the next value is in the first word within a short time */
bool arrives(struct pair *p);

#endif
