/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * librpmirror.h -- a memory-mapped file with copies on other hosts.
 *
 * An application maps a *mirror set*, stores into the mapping, and calls rpmirror_flush() with the
 * ranges that it changed. When the call returns 0, the bytes are durable on this host and on every
 * in-sync copy. Only one process at a time maps a set writable: this process is the *primary*. A
 * daemon on each host, rpmirrord, owns the copies. The tool rpmirror creates a set.
 *
 * These rules hold for every call, except where its comment states otherwise:
 * - The result is 0 or one of the negative RPMIRROR_E_* values; rpmirror_errormsg() then returns
 *   the reason, the member and address concerned, and what to do. On failure no output is written,
 *   except struct rpmirror_result, which is always written unless the arguments were wrong.
 * - A NULL where an object or an output is required, a range outside the mapping and an unknown
 *   flag give RPMIRROR_E_INVAL and change nothing.
 * - Sizes and offsets are in bytes, times in milliseconds. Bit i of a mask stands for the member in
 *   slot i (struct rpmirror_state has the names).
 * - Calls on one set may run in parallel, but no other call may run during rpmirror_unmap(). The
 *   object and the mapping belong to the library and are gone after rpmirror_unmap().
 * - A forked child has neither the object nor the mapping: each call in the child gives
 *   RPMIRROR_E_INVAL, and the parent is not affected. The child can neither read nor write the
 *   mapping. Exception: the child has a copy of an isolated mapping, as of any private memory.
 *
 * There is a manual page for each function; librpmirror(7) describes the whole library.
 */
#ifndef LIBRPMIRROR_H
#define LIBRPMIRROR_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Results. Values from -200000 to -200009 are about the call or this process; lower values are
 * about the set. */
#define RPMIRROR_E_UNKNOWN  (-200000) /* no reason was reported */
#define RPMIRROR_E_NOSUPP   (-200001) /* not supported for this set or this mapping */
#define RPMIRROR_E_PROVIDER (-200002) /* this host's device, file or system failed */
#define RPMIRROR_E_NOMEM    (-200003) /* out of memory */
#define RPMIRROR_E_INVAL    (-200004) /* an argument is wrong */
#define RPMIRROR_E_AGAIN    (-200005) /* not finished in time; the caller may wait again */
#define RPMIRROR_E_NO_EVENT (-200006) /* no event or error is pending */
#define RPMIRROR_E_DAEMON   (-200007) /* this host's rpmirrord cannot be reached */
#define RPMIRROR_E_QUORUM   (-200010) /* the register cannot be reached; waiting may help */
#define RPMIRROR_E_COPIES   (-200011) /* fewer copies exist than min_copies; waiting may help */
#define RPMIRROR_E_BUSY     (-200012) /* another process maps the set; waiting may help */
#define RPMIRROR_E_FENCED                                                                          \
	(-200013) /* another primary exists, or an operator demoted this one: unmap the set */
#define RPMIRROR_E_MEDIUM (-200014) /* the local copy's medium has failed */
#define RPMIRROR_E_VERIFY (-200015) /* a copy differs from the flushed bytes */
/* this host's copy lacks acknowledged data; a resync by a primary, or an operator, can help */
#define RPMIRROR_E_NOTINSYNC (-200016)
/* copies were written independently; only an operator can help */
#define RPMIRROR_E_SPLIT (-200017)
#define RPMIRROR_E_LEASE (-200018) /* the lease is over, so reads may be stale */

/* Returns a static text for a result; "Unknown error" for other values. */
const char *rpmirror_err_2str(int ret);

/*
 * Returns the reason of the calling thread's last failed call, in one line; "" before the first
 * failure. Each thread has its own text, which stays until the thread's next failed call.
 * RPMIRROR_E_AGAIN and RPMIRROR_E_NO_EVENT do not change the text.
 */
const char *rpmirror_errormsg(void);

/* Map and unmap */

struct rpmirror; /* one mapped set */

#define RPMIRROR_MAP_WAIT (1u << 0) /* wait until this host can become the primary */
/* with STALE_OK: map this host's copy even if another host is the primary */
#define RPMIRROR_MAP_READONLY (1u << 1)
#define RPMIRROR_MAP_STALE_OK (1u << 2) /* reads may lack acknowledged data */
#define RPMIRROR_MAP_ISOLATED (1u << 3) /* default: stores reach the file only by flushes */
#define RPMIRROR_MAP_DIRECT   (1u << 4) /* stores reach the file immediately */
/* What the library does while the lease does not hold. At most one of these flags; without a flag,
 * the environment variable RPMIRROR_ON_FENCED decides. */
#define RPMIRROR_MAP_FENCED_ERROR (1u << 5) /* do nothing; rpmirror_confirm() fails */
/* make the mapping inaccessible for reads and writes */
#define RPMIRROR_MAP_FENCED_PROTECT (1u << 6)
#define RPMIRROR_MAP_FENCED_KILL    (1u << 7) /* end the process by SIGKILL */

/*
 * Become the primary of the named set on this host's rpmirrord (the environment variable
 * RPMIRROR_SOCKET has the path of its socket), and map the file. hint: the requested address; with
 * NULL, the address in the set's configuration applies, if there is one. If the requested address
 * is not free, the call fails. The application may read the mapping as soon as this returns,
 * because every copy that could become primary is then either equal or excluded.
 *
 * Without WAIT the call fails at once in cases where waiting could help: RPMIRROR_E_BUSY,
 * RPMIRROR_E_QUORUM, RPMIRROR_E_COPIES, and RPMIRROR_E_NOTINSYNC, which another member's primary
 * or an operator ends. Only an operator can end RPMIRROR_E_SPLIT. RPMIRROR_E_DAEMON: there is no
 * daemon, or the daemon has no such set.
 *
 * READONLY needs STALE_OK and maps this host's copy as it is, also while another process or host
 * is the primary. rpmirror_get_state() returns the age of the copy. Such a mapping supports only
 * rpmirror_get_state() and rpmirror_unmap().
 *
 * Isolated: the mapping is private memory. No other process sees it, and unflushed stores are lost
 * with it.
 *
 * Direct: the mapping is the file itself. The first store to an extent of 2 MiB faults, and
 * continues after the extent is recorded as possibly different. For this the library handles
 * SIGSEGV, and calls the application's handler for other faults. Unflushed stores may also reach
 * the other copies, and always do so at rpmirror_unmap(). After the loss of the role, stores do
 * not reach the file any more.
 */
int rpmirror_map(const char *set, void *hint, unsigned flags, struct rpmirror **m_ptr,
		 void **addr_ptr, size_t *len_ptr);

/*
 * Give up the role of primary in good order, so that another member may be promoted immediately.
 * The call waits for the flushes that have begun. In an isolated mapping unflushed stores are lost;
 * in a direct mapping the call flushes them. Afterwards the mapping is gone and *m_ptr is NULL,
 * even if a step failed (the call returns the first failure). A NULL pointer is no error.
 */
int rpmirror_unmap(struct rpmirror **m_ptr);

/* Flushes */

struct rpmirror_range {
	const void *addr; /* an address inside the mapping; needs no alignment */
	size_t len;       /* 0: an empty range */
};

#define RPMIRROR_DEGRADED     (1u << 0) /* fewer copies than configured have the ranges */
#define RPMIRROR_SOLO         (1u << 1) /* only one copy has the ranges */
#define RPMIRROR_LOCAL_FAILED (1u << 2) /* the copy of this host lacks the ranges */

struct rpmirror_result {
	/* number of the flush; flushes of a mapping count from 1; 0: nothing was flushed */
	uint64_t seq;
	uint32_t durable_mask; /* members on which the ranges are durable */
	/* configured members that were excluded, before or during the flush */
	uint32_t failed_mask;
	uint32_t flags; /* RPMIRROR_DEGRADED and the other flags above */
};

#define RPMIRROR_RANGES_MAX 65536

/*
 * Make n ranges durable on this host and on every in-sync copy, together. The ranges may overlap
 * and need no order. n 0 is no error unless the role is lost. flags is 0, and res may be NULL. If
 * other threads store into the ranges meanwhile, the flush may or may not contain their bytes, in
 * whole aligned words of 8 bytes. The file is written back once for each 8 MiB on this host, and
 * once for each 4 MiB on the other hosts.
 *
 * 0: the ranges are durable on each member of durable_mask. Failed copies are no error if they
 * were excluded and min_copies are left. RPMIRROR_E_QUORUM, RPMIRROR_E_COPIES: the flush is
 * neither acknowledged nor undone; the same ranges may be flushed again. These errors are returned
 * after the time in the set's configuration. RPMIRROR_E_FENCED: the flush is undecided; unmap the
 * set. RPMIRROR_E_MEDIUM: the local copy could not be written back and has left the set; the ranges
 * are durable on the members of durable_mask. If durable_mask is 0, the flush is not acknowledged:
 * stores are lost (rpmirror_get_error()), or the ranges cannot be read.
 */
int rpmirror_flush(struct rpmirror *m, const struct rpmirror_range *ranges, unsigned n,
		   unsigned flags, struct rpmirror_result *res);

/*
 * Flush in two steps. The first call copies the content of the ranges, and the caller may then
 * reuse the array. For each ticket, any one thread calls rpmirror_flush_wait() until the call
 * returns success or a final error.
 *
 * The first call writes back the file of this host. But while other tickets are not waited for, it
 * returns at once, and one write-back serves all flushes that were begun meanwhile (not in a direct
 * mapping).
 */
int rpmirror_flush_start(struct rpmirror *m, const struct rpmirror_range *ranges, unsigned n,
			 unsigned flags, uint64_t *ticket);
/* Wait for a flush. timeout_ms -1: no limit, 0: do not wait. RPMIRROR_E_AGAIN: the flush still
 * runs. RPMIRROR_E_INVAL: the ticket does not exist. */
int rpmirror_flush_wait(struct rpmirror *m, uint64_t ticket, int timeout_ms,
			struct rpmirror_result *res);

/*
 * Flush, then compare the digest of the mapping with digests of each member's medium.
 * RPMIRROR_E_VERIFY: the members of failed_mask have other bytes, and are excluded unless too few
 * copies would be left; the ranges are durable on the members of durable_mask. RPMIRROR_E_NOSUPP:
 * the ranges are flushed, but a copy could not be compared. No thread may store into or flush the
 * ranges during the call.
 */
int rpmirror_flush_verify(struct rpmirror *m, const struct rpmirror_range *ranges, unsigned n,
			  struct rpmirror_result *res);

/* Flush one range. With addr NULL and len 0, flush all stores: in an isolated mapping each page
 * with stores since the set was mapped, in a direct mapping each extent with unflushed stores. */
int rpmirror_sync(struct rpmirror *m, const void *addr, size_t len);

/*
 * Store a word and make it durable; each copy changes in one step. p must be aligned to 8 bytes.
 * Before a copy gets the word, everything that this thread flushed earlier is durable. So the call
 * first waits for flushes that rpmirror_flush_start() has begun.
 */
int rpmirror_store8(struct rpmirror *m, uint64_t *p, uint64_t value);

/* Confirm that the lease holds now, so that earlier reads were not stale. The call only compares
 * clocks. RPMIRROR_E_LEASE, RPMIRROR_E_FENCED. */
int rpmirror_confirm(struct rpmirror *m);

/*
 * In a direct mapping, make the extents of the range writable. An extent stays writable until a
 * range of it is flushed. Without this call, a store by the kernel into the range, for instance by
 * read(2), fails with EFAULT. RPMIRROR_E_NOMEM: the library cannot keep so many extents writable.
 * In an isolated mapping the call only checks the arguments.
 */
int rpmirror_touch(struct rpmirror *m, const void *addr, size_t len);

/* State, events, errors */

#define RPMIRROR_MEMBERS_MAX 8
#define RPMIRROR_NAME_MAX    31
#define RPMIRROR_ADDRESS_MAX 271

enum rpmirror_role { RPMIRROR_ROLE_READER, RPMIRROR_ROLE_PRIMARY, RPMIRROR_ROLE_FENCED };

enum rpmirror_health {
	RPMIRROR_HEALTH_FULL,     /* every member has every acknowledged flush */
	RPMIRROR_HEALTH_DEGRADED, /* the set serves with fewer copies than configured */
	RPMIRROR_HEALTH_BLOCKED,  /* flushes wait for the register or for copies */
	RPMIRROR_HEALTH_DOWN      /* this mapping cannot be used any more */
};

enum rpmirror_copy {
	RPMIRROR_COPY_UNKNOWN,
	RPMIRROR_COPY_IN_SYNC, /* the copy has every acknowledged flush */
	RPMIRROR_COPY_SYNCING, /* a resync is running */
	RPMIRROR_COPY_STALE,   /* the copy lacks acknowledged flushes */
	RPMIRROR_COPY_FAILED   /* the copy has an error of its medium or of a write-back */
};

struct rpmirror_member_state {
	char name[RPMIRROR_NAME_MAX + 1];       /* "": the slot is free */
	char address[RPMIRROR_ADDRESS_MAX + 1]; /* host and port of the member's daemon */
	enum rpmirror_copy copy;
	bool connected;
	uint64_t durable_seq; /* flushes up to this one are durable on the member */
	uint64_t remainder;   /* bytes that the resync still has to send */
	/* 50th and 99th percentile over the last flushes, in us; each flush is timed from the post
	 * to the completion */
	uint32_t flush_p50_us, flush_p99_us;
	char reason[128]; /* the reason why the copy is not in-sync; "" if it is in-sync */
};

struct rpmirror_state {
	size_t size; /* sizeof(struct rpmirror_state), set by the caller */
	enum rpmirror_role role;
	enum rpmirror_health health;
	uint64_t epoch, view_seq;
	/* flush_seq: number of the last begun flush; acked_seq: all flushes up to this number are
	 * acknowledged */
	uint64_t flush_seq, acked_seq;
	uint32_t self; /* slot of this host's member */
	uint32_t insync_mask, config_mask;
	uint32_t min_copies;
	uint64_t lease_left_ms; /* time until the lease ends; 0: the lease is over */
	/*
	 * For a read-only mapping. age_ms: the copy has at least everything that was acknowledged
	 * this long ago; UINT64_MAX: the age is unknown. flush_seq: the last flush of the epoch
	 * that has begun to reach the copy. health: BLOCKED if the daemon does not answer or cannot
	 * find out the age, else FULL.
	 */
	uint64_t age_ms;
	struct rpmirror_member_state members[RPMIRROR_MEMBERS_MAX];
};

int rpmirror_get_state(struct rpmirror *m, struct rpmirror_state *st);

enum rpmirror_event_type {
	RPMIRROR_EVENT_VIEW = 1, /* the set of in-sync members has changed */
	RPMIRROR_EVENT_LOST,     /* the connection to a member is lost */
	RPMIRROR_EVENT_SLOW,     /* a flush took longer than slow_ms; value: microseconds */
	RPMIRROR_EVENT_BLOCKED,  /* flushes have to wait */
	RPMIRROR_EVENT_UNBLOCKED,
	RPMIRROR_EVENT_LEASE_OVER,
	RPMIRROR_EVENT_FENCED,       /* value: the epoch */
	RPMIRROR_EVENT_LOCAL_FAILED, /* the copy on this host has failed; value: an errno */
	/* the local medium has an error, which rpmirror_get_error() returns; or the daemon was
	 * replaced by a version that does not work with this library, as the text states */
	RPMIRROR_EVENT_ERROR,
	/* events were dropped because the program did not take them; value: their number */
	RPMIRROR_EVENT_MISSED,
	RPMIRROR_EVENT_VERIFIED, /* copies were compared; value: number of different bytes */
	/* a member is not in-sync and makes no progress, or flushes wait; value: time in ms */
	RPMIRROR_EVENT_STUCK
};

struct rpmirror_event {
	size_t size; /* sizeof(struct rpmirror_event), set by the caller */
	enum rpmirror_event_type type;
	uint32_t member; /* the member's slot, or UINT32_MAX */
	uint64_t value;
	uint64_t time_ms; /* time by CLOCK_REALTIME */
	char text[256];
};

/* Get a descriptor that is readable while an event is pending. The library owns the descriptor:
 * poll it, but do not read or close it. RPMIRROR_E_NOSUPP, also from rpmirror_next_event(): a
 * read-only mapping has no events. */
int rpmirror_get_fd(struct rpmirror *m, int *fd);
/* Take the next event without waiting. RPMIRROR_E_NO_EVENT: no event is pending. */
int rpmirror_next_event(struct rpmirror *m, struct rpmirror_event *ev);

struct rpmirror_error {
	size_t size;          /* sizeof(struct rpmirror_error), set by the caller */
	uint64_t offset, len; /* position of the range in the file */
	bool repaired;        /* the range has the content of the last flush again */
	bool dirty;           /* stores after the last flush are lost */
	char text[256];
};

/*
 * Get the oldest error of the local medium that was not returned yet. RPMIRROR_E_NO_EVENT: there
 * is no such error. A failed write-back is also such an error, with repaired false.
 *
 * A page that cannot be read gets its content from another member while the access waits. While an
 * error is pending that reports lost stores (both repaired and dirty are set), no flush begins,
 * and each flush returns RPMIRROR_E_MEDIUM: take the errors, return to a consistent state, flush
 * again.
 */
int rpmirror_get_error(struct rpmirror *m, struct rpmirror_error *e);
/*
 * Set the point at which the calling thread continues, by siglongjmp(*(sigjmp_buf *)env, 1), after
 * it touches a part of the mapping that has lost stored bytes. env NULL removes the point; then
 * the access is repeated. A thread has one point for each set, and must remove it before env
 * becomes invalid.
 */
int rpmirror_set_backtrack(struct rpmirror *m, void *env);

#ifdef __cplusplus
}
#endif

#endif
