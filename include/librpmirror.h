/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * librpmirror.h -- a memory-mapped file with copies on other hosts.
 *
 * An application maps a *mirror set*, stores into it and calls rpmirror_flush() with the ranges
 * that it changed. When that returns 0 the bytes are durable on this host and on every in-sync
 * copy. One process at a time maps a set writable: it is the *primary*. rpmirrord, a daemon on each
 * host, owns the copies; a set is made by the tool rpmirror.
 *
 * What holds for every call unless it says otherwise:
 * - The result is 0 or one of the negative RPMIRROR_E_* values; rpmirror_errormsg() then says which
 *   member and address it is about and what to do. On failure no output is written, but a result
 *   (struct rpmirror_result) always is, unless the arguments were wrong.
 * - A NULL where an object or an output is required, a range outside the mapping and an unknown
 *   flag give RPMIRROR_E_INVAL and change nothing.
 * - Sizes and offsets are in bytes, times in milliseconds, masks have bit i for the member in slot
 *   i (struct rpmirror_state has their names).
 * - Calls on one set may run in parallel, except rpmirror_unmap(), which is called alone. The
 *   object and the mapping belong to the library and are gone after rpmirror_unmap().
 * - A forked child has neither the object nor the mapping: each call in the child gives
 *   RPMIRROR_E_INVAL, and the parent is not affected. The child can neither read nor write the
 *   mapping. Exception: of an isolated mapping the child has a copy, as of any private memory.
 *
 * There is a manual page for each function, and librpmirror(7) for the whole.
 */
#ifndef LIBRPMIRROR_H
#define LIBRPMIRROR_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Results. Values down to -200009 are about the call or this process; the values below are about
 * the set. */
#define RPMIRROR_E_UNKNOWN  (-200000) /* no reason was reported */
#define RPMIRROR_E_NOSUPP   (-200001) /* not supported for this set or this mapping */
#define RPMIRROR_E_PROVIDER (-200002) /* this host's device, file or system failed */
#define RPMIRROR_E_NOMEM    (-200003) /* out of memory */
#define RPMIRROR_E_INVAL    (-200004) /* an argument is wrong */
#define RPMIRROR_E_AGAIN    (-200005) /* not finished in time: wait again */
#define RPMIRROR_E_NO_EVENT (-200006) /* no event, or no error, is pending */
#define RPMIRROR_E_DAEMON   (-200007) /* this host's rpmirrord cannot be reached */
#define RPMIRROR_E_QUORUM   (-200010) /* the register cannot be reached; waiting may help */
#define RPMIRROR_E_COPIES   (-200011) /* fewer copies than min_copies; waiting may help */
#define RPMIRROR_E_BUSY     (-200012) /* another process maps the set; waiting may help */
#define RPMIRROR_E_FENCED                                                                          \
	(-200013) /* another primary exists, or an operator demoted this one: unmap the set */
#define RPMIRROR_E_MEDIUM (-200014) /* the local copy has failed */
#define RPMIRROR_E_VERIFY (-200015) /* a copy differs from the flushed bytes */
/* this host's copy lacks acknowledged data: a primary resyncs the copy, or an operator decides */
#define RPMIRROR_E_NOTINSYNC (-200016)
#define RPMIRROR_E_SPLIT     (-200017) /* copies went on independently: operator needed */
#define RPMIRROR_E_LEASE     (-200018) /* the lease is over, so reads may be stale */

/* A static text for a result; "Unknown error" for other values. */
const char *rpmirror_err_2str(int ret);

/*
 * The reason of the calling thread's last failed call, in one line; "" before the first failure.
 * Each thread has its own text, which stays until its next failed call. RPMIRROR_E_AGAIN and
 * RPMIRROR_E_NO_EVENT do not change the text.
 */
const char *rpmirror_errormsg(void);

/* Map and unmap */

struct rpmirror; /* one mapped set */

#define RPMIRROR_MAP_WAIT (1u << 0) /* wait until this host can become the primary */
/* with STALE_OK: map this host's copy, also while another host is the primary */
#define RPMIRROR_MAP_READONLY (1u << 1)
#define RPMIRROR_MAP_STALE_OK (1u << 2) /* reads may lack acknowledged data */
#define RPMIRROR_MAP_ISOLATED (1u << 3) /* the default: stores reach the file by flushes only */
#define RPMIRROR_MAP_DIRECT   (1u << 4) /* stores reach the file at once */
/* Reaction while the lease does not hold. At most one of these flags; without a flag, the
 * environment variable RPMIRROR_ON_FENCED decides. */
#define RPMIRROR_MAP_FENCED_ERROR   (1u << 5) /* no reaction; only rpmirror_confirm() fails */
#define RPMIRROR_MAP_FENCED_PROTECT (1u << 6) /* the mapping can be neither read nor written */
#define RPMIRROR_MAP_FENCED_KILL    (1u << 7) /* the process ends by SIGKILL */

/*
 * Become the primary of the named set on this host's rpmirrord (the environment variable
 * RPMIRROR_SOCKET has the path of its socket), and map the file. hint: the wanted address, or NULL;
 * if the address is not free the call fails. The application may read the mapping as soon as this
 * returns: every copy that could become primary is equal by then, or excluded.
 *
 * Without WAIT the call fails at once in cases where waiting could help: RPMIRROR_E_BUSY,
 * _E_QUORUM, _E_COPIES, and _E_NOTINSYNC, which another member's primary or an operator ends. Only
 * an operator can end _E_SPLIT. RPMIRROR_E_DAEMON: there is no daemon, or the daemon has no such
 * set.
 *
 * READONLY needs STALE_OK and maps this host's copy as it is, also while another process or host is
 * the primary. rpmirror_get_state() returns the age of the copy. Such a mapping supports only
 * rpmirror_get_state() and rpmirror_unmap().
 *
 * Isolated: the mapping is private memory. No other process sees it, and unflushed stores are lost
 * with it.
 *
 * Direct: the mapping is the file. The first store to an extent of 2 MiB faults, and continues when
 * the extent is recorded as possibly different. For this the library handles SIGSEGV, and calls the
 * application's handler for other faults. Unflushed stores may reach the other copies as well, and
 * do so at rpmirror_unmap(). After the role is lost, stores reach no file.
 */
int rpmirror_map(const char *set, void *hint, unsigned flags, struct rpmirror **m_ptr,
		 void **addr_ptr, size_t *len_ptr);

/*
 * Give up the role in good order, so that another member may be promoted at once. Waits for the
 * flushes under way, and flushes nothing more. Afterwards the mapping is gone and *m_ptr is NULL,
 * also if a step failed (the call returns the first failure). A NULL pointer is no error.
 */
int rpmirror_unmap(struct rpmirror **m_ptr);

/* Flushes */

struct rpmirror_range {
	const void *addr; /* inside the mapping; any alignment */
	size_t len;       /* 0: nothing */
};

#define RPMIRROR_DEGRADED     (1u << 0) /* fewer copies than configured have the ranges */
#define RPMIRROR_SOLO         (1u << 1) /* only one copy has the ranges */
#define RPMIRROR_LOCAL_FAILED (1u << 2) /* the copy of this host lacks the ranges */

struct rpmirror_result {
	uint64_t seq;          /* flushes of a mapping count from 1; 0: nothing was flushed */
	uint32_t durable_mask; /* members on which the ranges are durable */
	/* configured members that were excluded, before or during the flush */
	uint32_t failed_mask;
	uint32_t flags; /* RPMIRROR_DEGRADED ... */
};

#define RPMIRROR_RANGES_MAX 65536

/*
 * Make n ranges durable on this host and on every in-sync copy, together. The ranges may overlap
 * and need no order. n 0 is no error unless the role is lost. flags is 0, and res may be NULL. The
 * flush may or may not contain bytes that other threads store meanwhile, in whole aligned words of
 * 8 bytes. The file is written back once for each 8 MiB on this host, and once for each 4 MiB on
 * the other hosts.
 *
 * 0: the ranges are durable on each member of durable_mask. Failed copies are no error if they were
 * excluded and min_copies are left.
 * RPMIRROR_E_QUORUM, _E_COPIES: the flush is not acknowledged and not undone; the same ranges may
 * be flushed again. Returned after the time in the set's configuration.
 * RPMIRROR_E_FENCED: the flush is undecided; unmap the set.
 * RPMIRROR_E_MEDIUM: durable on the members of durable_mask; the local copy has left the set, or
 * has lost stores (rpmirror_get_error()).
 */
int rpmirror_flush(struct rpmirror *m, const struct rpmirror_range *ranges, unsigned n,
		   unsigned flags, struct rpmirror_result *res);

/*
 * The same in two steps. The first call copies the content of the ranges, and the array is free
 * afterwards. Wait for each ticket once, in any thread, until the wait returns success or a final
 * error.
 */
int rpmirror_flush_start(struct rpmirror *m, const struct rpmirror_range *ranges, unsigned n,
			 unsigned flags, uint64_t *ticket);
/* timeout_ms -1: no limit, 0: do not wait. RPMIRROR_E_AGAIN: the flush still runs.
 * RPMIRROR_E_INVAL: the ticket does not exist. */
int rpmirror_flush_wait(struct rpmirror *m, uint64_t ticket, int timeout_ms,
			struct rpmirror_result *res);

/*
 * Flush, then compare digests of each member's medium. RPMIRROR_E_VERIFY: the members of
 * failed_mask differ and are excluded; the other members have the ranges. No thread may store into
 * or flush the ranges meanwhile.
 */
int rpmirror_flush_verify(struct rpmirror *m, const struct rpmirror_range *ranges, unsigned n,
			  struct rpmirror_result *res);

/* Flush one range. addr NULL and len 0: flush everything that was stored since the last flush. */
int rpmirror_sync(struct rpmirror *m, const void *addr, size_t len);

/*
 * Store a word and make it durable; each copy changes in one step. p is aligned to 8 bytes. No copy
 * gets the word before everything that this thread flushed earlier.
 */
int rpmirror_store8(struct rpmirror *m, uint64_t *p, uint64_t value);

/* Confirm that the lease holds now, so earlier reads were not stale. Only compares clocks.
 * RPMIRROR_E_LEASE, RPMIRROR_E_FENCED. */
int rpmirror_confirm(struct rpmirror *m);

/*
 * In a direct mapping, make the range writable for the kernel, until the next flush of the range.
 * Without this call, a kernel store such as read(2) into the range fails with EFAULT.
 * RPMIRROR_E_NOMEM: the mapping cannot keep so many bytes writable. In an isolated mapping the call
 * only checks the arguments.
 */
int rpmirror_touch(struct rpmirror *m, const void *addr, size_t len);

/* State, events, errors */

#define RPMIRROR_MEMBERS_MAX 8
#define RPMIRROR_NAME_MAX    31
#define RPMIRROR_ADDRESS_MAX 271

enum rpmirror_role { RPMIRROR_ROLE_READER, RPMIRROR_ROLE_PRIMARY, RPMIRROR_ROLE_FENCED };

enum rpmirror_health {
	RPMIRROR_HEALTH_FULL,     /* every member has everything */
	RPMIRROR_HEALTH_DEGRADED, /* the set serves with fewer copies than configured */
	RPMIRROR_HEALTH_BLOCKED,  /* flushes wait for the register or for copies */
	RPMIRROR_HEALTH_DOWN      /* this mapping cannot be used any more */
};

enum rpmirror_copy {
	RPMIRROR_COPY_UNKNOWN,
	RPMIRROR_COPY_IN_SYNC, /* has every acknowledged flush */
	RPMIRROR_COPY_SYNCING, /* a resync is under way */
	RPMIRROR_COPY_STALE,   /* lacks acknowledged flushes */
	RPMIRROR_COPY_FAILED   /* medium or write-back error */
};

struct rpmirror_member_state {
	char name[RPMIRROR_NAME_MAX + 1];       /* "": the slot is free */
	char address[RPMIRROR_ADDRESS_MAX + 1]; /* host and port of the member's daemon */
	enum rpmirror_copy copy;
	bool connected;
	uint64_t durable_seq; /* flushes up to this one are durable on the member */
	uint64_t remainder;   /* bytes that the resync still has to send */
	uint32_t flush_p50_us,
		flush_p99_us; /* times of the last flushes, each from the post to the completion */
	char reason[128];     /* the reason why the copy is not in sync; "": in sync */
};

struct rpmirror_state {
	size_t size; /* sizeof(struct rpmirror_state), set by the caller */
	enum rpmirror_role role;
	enum rpmirror_health health;
	uint64_t epoch, view_seq;
	/* flush_seq: last begun flush; acked_seq: all flushes up to this one are acknowledged */
	uint64_t flush_seq, acked_seq;
	uint32_t self; /* slot of this host */
	uint32_t insync_mask, config_mask;
	uint32_t min_copies;
	uint64_t lease_left_ms; /* 0: the lease is over */
	/*
	 * For a reader. age_ms: the copy has at least everything that was acknowledged this long
	 * ago; UINT64_MAX: the age is unknown to the daemon. flush_seq: the last flush of the epoch
	 * that has reached the copy. health: FULL; or BLOCKED, if the daemon does not answer or
	 * cannot tell.
	 */
	uint64_t age_ms;
	struct rpmirror_member_state members[RPMIRROR_MEMBERS_MAX];
};

int rpmirror_get_state(struct rpmirror *m, struct rpmirror_state *st);

enum rpmirror_event_type {
	RPMIRROR_EVENT_VIEW = 1, /* the set of in-sync members has changed */
	RPMIRROR_EVENT_LOST,     /* the connection to a member is lost */
	RPMIRROR_EVENT_SLOW,     /* a flush took longer than slow_ms; value: microseconds */
	RPMIRROR_EVENT_BLOCKED,  /* flushes wait */
	RPMIRROR_EVENT_UNBLOCKED,
	RPMIRROR_EVENT_LEASE_OVER,
	RPMIRROR_EVENT_FENCED,
	RPMIRROR_EVENT_LOCAL_FAILED,
	RPMIRROR_EVENT_ERROR,  /* rpmirror_get_error() has more */
	RPMIRROR_EVENT_MISSED, /* value: number of dropped events that the program had not taken */
	RPMIRROR_EVENT_VERIFIED, /* copies were compared; value: number of different bytes */
	/* no progress with a member, or none while flushes wait; value: ms */
	RPMIRROR_EVENT_STUCK
};

struct rpmirror_event {
	size_t size; /* sizeof(struct rpmirror_event), set by the caller */
	enum rpmirror_event_type type;
	uint32_t member; /* slot, or UINT32_MAX */
	uint64_t value;
	uint64_t time_ms; /* CLOCK_REALTIME */
	char text[256];
};

/* Readable while an event is pending. The library owns the descriptor: poll it, do not read or
 * close it. RPMIRROR_E_NOSUPP, also from rpmirror_next_event(): a read-only mapping has no
 * events. */
int rpmirror_get_fd(struct rpmirror *m, int *fd);
/* Take the next event without a wait. RPMIRROR_E_NO_EVENT: none is pending. */
int rpmirror_next_event(struct rpmirror *m, struct rpmirror_event *ev);

struct rpmirror_error {
	size_t size;          /* sizeof(struct rpmirror_error), set by the caller */
	uint64_t offset, len; /* place of the range in the file */
	bool repaired;        /* the range has the content of the last flush again */
	bool dirty;           /* stores after the last flush are lost */
	char text[256];
};

/*
 * The oldest error of the local medium that was not returned yet. RPMIRROR_E_NO_EVENT: there is no
 * such error.
 *
 * A page that cannot be read gets its content from another member while the access waits. While an
 * error is pending that reports lost stores (repaired and dirty), no flush begins, and each returns
 * RPMIRROR_E_MEDIUM: take the errors, go back to a consistent state, flush again.
 */
int rpmirror_get_error(struct rpmirror *m, struct rpmirror_error *e);
/*
 * Set the place at which the calling thread continues, by siglongjmp(*(sigjmp_buf *)env, 1), after
 * it touches a part of the mapping that has lost stored bytes. NULL: there is none, and the access
 * is repeated. A thread has one place for each set, and takes it back before env ends.
 */
int rpmirror_set_backtrack(struct rpmirror *m, void *env);

#ifdef __cplusplus
}
#endif

#endif
