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
 * - Calls on one set may run in parallel, except rpmirror_unmap(), which is called alone. The object
 *   and the mapping belong to the library and are gone after rpmirror_unmap().
 * - A forked child has neither of them: each call in the child gives RPMIRROR_E_INVAL, and the
 *   parent is not affected. The child can neither read nor write the mapping, unless it is isolated:
 *   then the child has a copy of its own, as of any private memory.
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

/* Results. 0 to -200009 say what is wrong with the call or this process; the others are about the
 * set. */
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
	(-200013) /* another primary exists, or an operator demoted this one: unmap */
#define RPMIRROR_E_MEDIUM (-200014) /* the local copy has failed */
#define RPMIRROR_E_VERIFY (-200015) /* a copy differs from what was flushed */
/* this host's copy lacks acknowledged data: a primary makes it equal, or an operator decides */
#define RPMIRROR_E_NOTINSYNC (-200016)
#define RPMIRROR_E_SPLIT     (-200017) /* copies went on independently: operator needed */
#define RPMIRROR_E_LEASE     (-200018) /* the lease is over: what was read may be stale */

/* A static text for a result; "Unknown error" for other values. */
const char *rpmirror_err_2str(int ret);

/*
 * Why the calling thread's last failed call failed, in one line; "" as long as none has. The text
 * is the thread's own and stays until its next failed call. RPMIRROR_E_AGAIN and
 * RPMIRROR_E_NO_EVENT leave it as it is.
 */
const char *rpmirror_errormsg(void);

/* Map and unmap */

struct rpmirror; /* one mapped set */

#define RPMIRROR_MAP_WAIT (1u << 0) /* wait until this host may be the primary */
/* With STALE_OK: this host's copy, also while another host is the primary */
#define RPMIRROR_MAP_READONLY (1u << 1)
#define RPMIRROR_MAP_STALE_OK (1u << 2) /* what is read may lack acknowledged data */
#define RPMIRROR_MAP_ISOLATED (1u << 3) /* the default: stores reach the file by flushes only */
#define RPMIRROR_MAP_DIRECT   (1u << 4) /* stores reach the file at once */
/* While the lease does not hold; one of them at most, without: RPMIRROR_ON_FENCED of the
 * environment */
#define RPMIRROR_MAP_FENCED_ERROR   (1u << 5) /* nothing; rpmirror_confirm() fails */
#define RPMIRROR_MAP_FENCED_PROTECT (1u << 6) /* the mapping can be neither read nor written */
#define RPMIRROR_MAP_FENCED_KILL    (1u << 7) /* the process ends by SIGKILL */

/*
 * Become the primary of the set of that name on this host's rpmirrord (the environment variable
 * RPMIRROR_SOCKET has the path of its socket), and map the file. hint: the address that is wanted,
 * or NULL; if it is not free the call fails. An application may read what it maps as soon as this
 * returns: every copy that could become primary is equal by then, or excluded.
 *
 * Without WAIT it fails at once where waiting could help: RPMIRROR_E_BUSY, _E_QUORUM, _E_COPIES,
 * and _E_NOTINSYNC, which another member's primary or an operator ends. An operator is needed for
 * _E_SPLIT. RPMIRROR_E_DAEMON: there is no daemon, or it
 * does not know the set.
 *
 * READONLY needs STALE_OK and maps this host's copy as it is, also while another process or host is
 * the primary: rpmirror_get_state() says how old it is, and only that and rpmirror_unmap() work on
 * it.
 *
 * Isolated: the mapping is private memory; what was not flushed or synced is lost with it, and no
 * other process sees it.
 *
 * Direct: the mapping is the file. The first store to an extent of 2 MiB faults, and goes on when
 * the extent is recorded as one that may differ; the library handles SIGSEGV for that, and calls
 * the application's handler for other faults. What was not flushed may reach the other copies as
 * well, and does at rpmirror_unmap(). Once the role is lost, stores reach no file.
 */
int rpmirror_map(const char *set, void *hint, unsigned flags, struct rpmirror **m_ptr,
		 void **addr_ptr, size_t *len_ptr);

/*
 * Give up the role in good order: another member may be promoted at once. Waits for the flushes
 * that were begun; what was not flushed is not. *m_ptr is NULL afterwards and the mapping gone,
 * also when a step failed (the first failure is returned). A pointer that is NULL already is no
 * error.
 */
int rpmirror_unmap(struct rpmirror **m_ptr);

/* Flushes */

struct rpmirror_range {
	const void *addr; /* inside the mapping; any alignment */
	size_t len;       /* 0: nothing */
};

#define RPMIRROR_DEGRADED     (1u << 0) /* fewer copies than configured have it */
#define RPMIRROR_SOLO         (1u << 1) /* only one has it */
#define RPMIRROR_LOCAL_FAILED (1u << 2) /* this host's does not */

struct rpmirror_result {
	uint64_t seq;          /* flushes of a mapping count from 1; 0: there was nothing to do */
	uint32_t durable_mask; /* members that have it, durably */
	uint32_t failed_mask;  /* configured members that were excluded, before or meanwhile */
	uint32_t flags;        /* RPMIRROR_DEGRADED ... */
};

#define RPMIRROR_RANGES_MAX 65536

/*
 * Make n ranges durable on this host and on every in-sync copy, together. They may overlap and need
 * no order; n 0 is no error unless the role is lost, and flags is 0. What other threads store
 * meanwhile may be part of it or not, in whole aligned words of 8 bytes. res may be NULL. The file
 * is written back once for each 8 MiB here, and for each 4 MiB at the others.
 *
 * 0: the ranges are durable on each member of durable_mask. That copies failed is no error as long
 *   as they were excluded, and min_copies are left.
 * RPMIRROR_E_QUORUM, _E_COPIES: not acknowledged and not undone; the same ranges may be flushed
 *   again. Returned after the time that the set's configuration says.
 * RPMIRROR_E_FENCED: undecided; unmap. RPMIRROR_E_MEDIUM: durable where the mask says; the local
 *   copy has left the set, or has lost stores (rpmirror_get_error()).
 */
int rpmirror_flush(struct rpmirror *m, const struct rpmirror_range *ranges, unsigned n,
		   unsigned flags, struct rpmirror_result *res);

/* The same in two steps. The ranges' content is taken before the first returns, and the array may
 * go. Each ticket is to be waited for once successfully, or with a final error, by any thread. */
int rpmirror_flush_start(struct rpmirror *m, const struct rpmirror_range *ranges, unsigned n,
			 unsigned flags, uint64_t *ticket);
/* timeout_ms -1: no limit, 0: look. RPMIRROR_E_AGAIN: it still runs. RPMIRROR_E_INVAL: no such
 * ticket. */
int rpmirror_flush_wait(struct rpmirror *m, uint64_t ticket, int timeout_ms,
			struct rpmirror_result *res);

/*
 * Flush, then compare digests of what each member has on its medium. RPMIRROR_E_VERIFY: the members
 * of failed_mask differ and are excluded; the others have the ranges. Nobody may store into or
 * flush the ranges meanwhile.
 */
int rpmirror_flush_verify(struct rpmirror *m, const struct rpmirror_range *ranges, unsigned n,
			  struct rpmirror_result *res);

/* Flush one range; addr NULL and len 0: all that was stored since the last one. */
int rpmirror_sync(struct rpmirror *m, const void *addr, size_t len);

/*
 * Store a word, here and at every copy all at once, and make it durable. p is aligned to 8 bytes.
 * A copy never has it without what was flushed before by this thread.
 */
int rpmirror_store8(struct rpmirror *m, uint64_t *p, uint64_t value);

/* The lease holds now, hence what was read before this call was not stale. It is a comparison of
 * clocks. RPMIRROR_E_LEASE, RPMIRROR_E_FENCED. */
int rpmirror_confirm(struct rpmirror *m);

/*
 * A direct mapping: make the range writable for stores that the kernel does, as read(2), which fail
 * with EFAULT otherwise; until a flush of it. RPMIRROR_E_NOMEM: so much cannot be kept writable.
 * Isolated: only the arguments are checked.
 */
int rpmirror_touch(struct rpmirror *m, const void *addr, size_t len);

/* State, events, errors */

#define RPMIRROR_MEMBERS_MAX 8
#define RPMIRROR_NAME_MAX    31
#define RPMIRROR_ADDRESS_MAX 271

enum rpmirror_role { RPMIRROR_ROLE_READER, RPMIRROR_ROLE_PRIMARY, RPMIRROR_ROLE_FENCED };

enum rpmirror_health {
	RPMIRROR_HEALTH_FULL,     /* every member has everything */
	RPMIRROR_HEALTH_DEGRADED, /* it serves with fewer copies than configured */
	RPMIRROR_HEALTH_BLOCKED,  /* flushes wait for the register or for copies */
	RPMIRROR_HEALTH_DOWN      /* this mapping cannot be used any more */
};

enum rpmirror_copy {
	RPMIRROR_COPY_UNKNOWN,
	RPMIRROR_COPY_IN_SYNC, /* has every acknowledged flush */
	RPMIRROR_COPY_SYNCING, /* is being made equal */
	RPMIRROR_COPY_STALE,   /* lacks acknowledged flushes */
	RPMIRROR_COPY_FAILED   /* medium or write-back error */
};

struct rpmirror_member_state {
	char name[RPMIRROR_NAME_MAX + 1];       /* "": the slot is free */
	char address[RPMIRROR_ADDRESS_MAX + 1]; /* host and port of its daemon */
	enum rpmirror_copy copy;
	bool connected;
	uint64_t durable_seq; /* flushes up to this one are durable there */
	uint64_t remainder;   /* bytes that are still to be made equal */
	uint32_t flush_p50_us,
		flush_p99_us; /* of the last flushes, from its post to its completion */
	char reason[128];     /* why it is not in sync; "" */
};

struct rpmirror_state {
	size_t size; /* sizeof(struct rpmirror_state), set by the caller */
	enum rpmirror_role role;
	enum rpmirror_health health;
	uint64_t epoch, view_seq;
	uint64_t flush_seq, acked_seq; /* begun; up to which all are acknowledged */
	uint32_t self;                 /* this host's slot */
	uint32_t insync_mask, config_mask;
	uint32_t min_copies;
	uint64_t lease_left_ms; /* 0: it is over */
	/* A reader: the copy has all that was acknowledged so long ago, and perhaps more;
	 * UINT64_MAX: the daemon does not know. flush_seq: the last flush of the epoch that has
	 * reached the copy. health: FULL, or BLOCKED: the daemon does not answer or know. */
	uint64_t age_ms;
	struct rpmirror_member_state members[RPMIRROR_MEMBERS_MAX];
};

int rpmirror_get_state(struct rpmirror *m, struct rpmirror_state *st);

enum rpmirror_event_type {
	RPMIRROR_EVENT_VIEW = 1, /* who is in sync has changed */
	RPMIRROR_EVENT_LOST,     /* the connection to a member is lost */
	RPMIRROR_EVENT_SLOW,     /* a flush took longer than slow_ms; value: microseconds */
	RPMIRROR_EVENT_BLOCKED,  /* flushes wait */
	RPMIRROR_EVENT_UNBLOCKED,
	RPMIRROR_EVENT_LEASE_OVER,
	RPMIRROR_EVENT_FENCED,
	RPMIRROR_EVENT_LOCAL_FAILED,
	RPMIRROR_EVENT_ERROR,  /* rpmirror_get_error() has more */
	RPMIRROR_EVENT_MISSED, /* value: number of dropped events, which the program did not take */
	RPMIRROR_EVENT_VERIFIED, /* copies were compared; value: bytes that differ */
	RPMIRROR_EVENT_STUCK     /* no progress with a member, or while flushes wait; value: ms */
};

struct rpmirror_event {
	size_t size; /* sizeof(struct rpmirror_event), set by the caller */
	enum rpmirror_event_type type;
	uint32_t member; /* slot, or UINT32_MAX */
	uint64_t value;
	uint64_t time_ms; /* CLOCK_REALTIME */
	char text[256];
};

/* Readable while an event is pending. It is the library's: poll it, do not read or close it.
 * RPMIRROR_E_NOSUPP, also below: a mapping that is read-only has no events. */
int rpmirror_get_fd(struct rpmirror *m, int *fd);
/* Never waits. RPMIRROR_E_NO_EVENT. */
int rpmirror_next_event(struct rpmirror *m, struct rpmirror_event *ev);

struct rpmirror_error {
	size_t size;          /* sizeof(struct rpmirror_error), set by the caller */
	uint64_t offset, len; /* of the range in the file */
	bool repaired;        /* it has the content of the last flush again */
	bool dirty;           /* what was stored after that is lost */
	char text[256];
};

/*
 * The oldest error of the local medium that was not returned yet. RPMIRROR_E_NO_EVENT: none.
 *
 * A page that cannot be read gets its content from another member while the access waits. As long
 * as an error reports stores lost by that (repaired and dirty), no flush begins, and each returns
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
