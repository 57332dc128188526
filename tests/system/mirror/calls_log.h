/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * calls_log.h -- the stores of mirror_caller (caller_main.c), and the results of its calls with
 * their numbers. mirror_calls (calls_main.c) reads the log, even while a call does not return. The
 * log is in a file that both map.
 *
 * Each thread makes one kind of call, and has some words, each in a page of its own, in which it
 * stores growing numbers. So after any end a word is at least the number that was acknowledged
 * last, and at most the number that was stored last.
 */
#ifndef SYSTEM_MIRROR_CALLS_LOG_H
#define SYSTEM_MIRROR_CALLS_LOG_H

#include <stdbool.h>
#include <stdint.h>

#define CALLS_WORDS 8
#define CALLS_PAGE  4096ull
#define CALLS_WIDE  (2ull << 20) /* distance of words if each is in its own extent */
/* distance if all words are in one extent, so that a sync of everything is fast */
#define CALLS_CLOSE (64ull << 10)

enum call {
	CALL_FLUSH,
	CALL_TICKET, /* rpmirror_flush_start() and _wait() */
	CALL_VERIFY,
	CALL_SYNC,
	CALL_SYNC_ALL,
	CALL_SYNC_ALSO, /* sync of everything by another thread */
	CALL_STORE8,    /* each store8 follows a flush */
	CALL_TOUCH,     /* touch, then read(2) into the word, then a flush */
	CALL_WORDS,     /* kinds up to here have words */
	CALL_CONFIRM = CALL_WORDS,
	CALL_LOOK, /* queries: state, events, errors, a backtrack point, texts */
	CALL_THREADS,
	CALL_MAP = CALL_THREADS,
	CALL_UNMAP,
	CALL_READ, /* map read-only, query the state, unmap; by the process that follows */
	CALL_COUNT
};

struct calls_count {
	uint64_t ok, fenced, other, longest_ns;
	char why[48];  /* the last other result, as a text */
	uint64_t late; /* how many times a call returned 0 after RPMIRROR_E_FENCED */
};

/* Fields of 8 bytes are read and written in one piece. */
struct calls_log {
	uint64_t stride;
	uint64_t stored[CALL_WORDS][CALLS_WORDS], acked[CALL_WORDS][CALLS_WORDS];
	uint64_t begun[CALLS_WORDS]; /* for CALL_TICKET: numbers whose tickets were not awaited */
	uint64_t seen[CALL_WORDS][CALLS_WORDS]; /* read by the next primary when it begins */
	struct calls_count counts[CALL_COUNT];
	uint64_t confirmed_ns; /* begin of the last confirmed read */
	uint64_t next_ns;      /* time since which the next primary may read; 0: there was none */
	int unmapped;          /* the result of unmapping */
	bool stop;             /* the caller's threads have to end, then it unmaps */
};

static inline uint64_t calls_offset(const struct calls_log *log, unsigned call, unsigned word)
{
	return word * log->stride + call * CALLS_PAGE;
}

#endif
