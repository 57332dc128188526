/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * calls_log.h -- the stores of mirror_caller (caller_main.c), and the results of its calls with
 * their numbers. mirror_calls (calls_main.c) reads the log, even while a call does not return. The
 * log is in a file that both programs map.
 *
 * Each thread makes one kind of call, and stores growing numbers in several words, each in its own
 * page. So, no matter how the process exits, a word is at least the number that was acknowledged
 * last, and at most the number that was stored last.
 */
#ifndef SYSTEM_MIRROR_CALLS_LOG_H
#define SYSTEM_MIRROR_CALLS_LOG_H

#include <stdbool.h>
#include <stdint.h>

#define CALLS_WORDS 8
#define CALLS_PAGE  4096ull
/* distance of the words, so that each word is in its own extent */
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
	char why[48]; /* the last result other than 0 and FENCED, as a text */
	/* number of calls that returned 0 after a call had returned RPMIRROR_E_FENCED */
	uint64_t late;
};

/* Fields of 8 bytes are read and written as a whole. */
struct calls_log {
	uint64_t stride;
	uint64_t stored[CALL_WORDS][CALLS_WORDS], acked[CALL_WORDS][CALLS_WORDS];
	/* for CALL_TICKET: numbers of flushes for whose tickets no thread has waited */
	uint64_t begun[CALLS_WORDS];
	/* the words that the next primary reads when it begins */
	uint64_t seen[CALL_WORDS][CALLS_WORDS];
	struct calls_count counts[CALL_COUNT];
	uint64_t confirmed_ns; /* time at which the last confirmed read began */
	/* time from which on the next primary is allowed to read; 0: no next primary */
	uint64_t next_ns;
	int unmapped; /* the result of the unmap call */
	bool stop;    /* the threads of the caller must exit; then the caller unmaps */
};

static inline uint64_t calls_offset(const struct calls_log *log, unsigned call, unsigned word)
{
	return word * log->stride + call * CALLS_PAGE;
}

#endif
