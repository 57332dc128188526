/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * calls_log.h -- the stores of mirror_caller (caller_main.c), and the results of its calls with
 * their numbers. mirror_calls (calls_main.c) reads the log, even while a call does not return. The
 * log is in a file that both map.
 *
 * Each thread makes one kind of call, and has some words, each in a page of its own, in which it
 * stores growing numbers. So however the process ends, a word is at least the number that was
 * acknowledged last, and at most the number that was stored last.
 */
#ifndef SYSTEM_MIRROR_CALLS_LOG_H
#define SYSTEM_MIRROR_CALLS_LOG_H

#include <stdbool.h>
#include <stdint.h>

#define CALLS_WORDS 8
#define CALLS_PAGE  4096ull
/* distance of the words, so that each is in an extent of its own */
#define CALLS_WIDE (2ull << 20)
/* distance of the words, so that all are in one extent and a sync of the whole mapping is fast */
#define CALLS_CLOSE (64ull << 10)

enum call {
	CALL_FLUSH,
	CALL_TICKET, /* rpmirror_flush_start() and rpmirror_flush_wait() */
	CALL_VERIFY,
	CALL_SYNC,
	CALL_SYNC_ALL,
	CALL_SYNC_ALSO, /* a sync of the whole mapping, by a second thread */
	CALL_STORE8,    /* a flush, and then a store8 */
	CALL_TOUCH,     /* touch, then read(2) into the word, then a flush */
	CALL_WORDS,     /* the kinds before this one have words */
	CALL_CONFIRM = CALL_WORDS,
	CALL_LOOK, /* queries: the state, events, errors, a backtrack point, texts */
	CALL_THREADS,
	CALL_MAP = CALL_THREADS,
	CALL_UNMAP,
	/* map read-only, query the state and unmap; done by the next primary's process */
	CALL_READ,
	CALL_COUNT
};

struct calls_count {
	uint64_t ok, fenced, other, longest_ns;
	char why[48];  /* the last result other than 0 and FENCED, as a text */
	uint64_t late; /* how often a call returned 0 after it had returned RPMIRROR_E_FENCED */
};

/* Fields of 8 bytes are read and written as a whole. */
struct calls_log {
	uint64_t stride;
	uint64_t stored[CALL_WORDS][CALLS_WORDS], acked[CALL_WORDS][CALLS_WORDS];
	/* for CALL_TICKET: numbers whose tickets no thread has waited for */
	uint64_t begun[CALLS_WORDS];
	uint64_t seen[CALL_WORDS][CALLS_WORDS]; /* what the next primary reads when it begins */
	struct calls_count counts[CALL_COUNT];
	uint64_t confirmed_ns; /* time at which the last confirmed read began */
	uint64_t next_ns;      /* time since when the next primary may read; 0: there is none */
	int unmapped;          /* the result of the unmap call */
	bool stop;             /* the threads of the caller have to end, and then it unmaps */
};

static inline uint64_t calls_offset(const struct calls_log *log, unsigned call, unsigned word)
{
	return word * log->stride + call * CALLS_PAGE;
}

#endif
