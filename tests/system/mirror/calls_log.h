/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * calls_log.h -- what mirror_caller (caller_main.c) has stored, what calls have answered, and how
 * often; mirror_calls (calls_main.c) reads it, also while a call does not return. It is in a file
 * that both map.
 *
 * Each thread makes one kind of call, and has some words, each alone in its page: it stores numbers
 * that grow. So after any end a word is at least as large as the one that was
 * acknowledged last, and at most as large as the one that was stored last.
 */
#ifndef SYSTEM_MIRROR_CALLS_LOG_H
#define SYSTEM_MIRROR_CALLS_LOG_H

#include <stdbool.h>
#include <stdint.h>

#define CALLS_WORDS 8
#define CALLS_PAGE  4096ull
#define CALLS_WIDE  (2ull << 20)  /* from word to word: each is in an extent of its own, */
#define CALLS_CLOSE (64ull << 10) /* or all are in one, and a sync of everything is fast */

enum call {
	CALL_FLUSH,
	CALL_TICKET, /* rpmirror_flush_start() and _wait() */
	CALL_VERIFY,
	CALL_SYNC,
	CALL_SYNC_ALL,
	CALL_SYNC_ALSO, /* all, by another thread */
	CALL_STORE8,    /* each behind a flush */
	CALL_TOUCH,     /* then read(2), and a flush */
	CALL_WORDS,     /* up to here they have words */
	CALL_CONFIRM = CALL_WORDS,
	CALL_LOOK, /* state, events, errors, a backtrack point, texts */
	CALL_THREADS,
	CALL_MAP = CALL_THREADS,
	CALL_UNMAP,
	CALL_READ, /* map read-only, state and unmap; by the process that follows */
	CALL_COUNT
};

struct calls_count {
	uint64_t ok, fenced, other, longest_ns;
	char why[48];  /* the last result that is neither */
	uint64_t late; /* 0 after RPMIRROR_E_FENCED */
};

/* Fields of 8 bytes are read and written whole. */
struct calls_log {
	uint64_t stride;
	uint64_t stored[CALL_WORDS][CALLS_WORDS], acked[CALL_WORDS][CALLS_WORDS];
	uint64_t begun[CALLS_WORDS]; /* CALL_TICKET: of tickets that nobody has waited for */
	uint64_t seen[CALL_WORDS][CALLS_WORDS]; /* by the next primary, as it begins */
	struct calls_count counts[CALL_COUNT];
	uint64_t confirmed_ns; /* a confirmed read began then, at the latest */
	uint64_t next_ns;      /* the next primary may read since then; 0: there was none */
	int unmapped;          /* the result */
	bool stop;             /* the caller's threads end, then it unmaps */
};

static inline uint64_t calls_offset(const struct calls_log *log, unsigned call, unsigned word)
{
	return word * log->stride + call * CALLS_PAGE;
}

#endif
