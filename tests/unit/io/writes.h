/* SPDX-License-Identifier: BSD-3-Clause */
/* writes.h -- Writes that may wait for the next post, and a clock that can stand still. Link
 * with --wrap=clock_gettime. */
#ifndef UNIT_IO_WRITES_H
#define UNIT_IO_WRITES_H

#include "ends.h"

enum { WORDS = END_BUF / 8, TEACH = 4 };

/* A thread of the engine that looks at the connection late, for the previous answer, sends
 * waiting Writes. A round in which that happens does not count. */
#define TRIES 100

void stop_clock(void);
void start_clock(void);
void advance_clock(uint64_t ns); /* while the clock stands still */

/* Two ends; the client writes to the server's memory. */
struct pair {
	struct ends ends;
	struct ibv_mr *target; /* region of words */
	_Atomic uint64_t words[WORDS];
	uint64_t addr; /* address of the words, to which the client writes */
	uint32_t rkey;
	uint64_t next; /* value to write */
};
void pair_open(struct pair *p);
void pair_close(struct pair *p);
/* The words become a region of the server's. */
void pair_register(struct pair *p);

uint64_t sends_of(struct end *e);
uint64_t sends(struct pair *p); /* Returns the number of sends of the client. */
/* The next value to the first word, or `len` bytes. */
int post_write(struct pair *p, uint32_t len, unsigned flags);
void write_quietly(struct pair *p);
void flush(struct pair *p);
/* From now on Writes of this connection wait. */
void teach(struct pair *p);
/* A Write that waits, on a connection that learned to. */
void pair_open_waiting(struct pair *p);
bool arrives(struct pair *p); /* the next value is in the first word, or will be soon */

#endif
