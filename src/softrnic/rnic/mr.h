/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr.h -- memory regions and the STag table.
 *
 * Every touch of registered memory goes through mr_hold(): it checks STag, protection domain,
 * rights and bounds (RFC 5040 s8.1.1) and pins the region until mr_release(). mr_kill() makes the
 * STag unknown at once; mr_wait_idle() returns when there is no hold on the region any more.
 * Thread-safe; the table's mutex is a leaf lock.
 *
 * A hold pins the memory, a reference the description: a stream that has placed bytes in a region
 * keeps a reference until they are written back, even if the region is deregistered before.
 */
#ifndef RNIC_MR_H
#define RNIC_MR_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct mr_table; /* one per device: STag -> mr */
struct mw;       /* mw.h */

/* The medium of the memory: owned by the caller, not interpreted here. */
struct mr_backing {
	void *persist; /* NULL: a Flush need not care about this memory */
	bool durable;  /* some of it can be made persistent */
	bool lasting;  /* write-backs need no hold, and not even a registration */
	/*
	 * A load or store may wait for a file system; the kernel is not given this memory to store
	 * to.
	 */
	bool can_stall;
	/* Called before a store to memory that can stall, after its pages were loaded; or NULL. */
	void (*expect_store)(const void *persist, const void *addr, size_t len);
	void (*drop)(void *persist); /* called when the last reference is gone; or NULL */
};

struct mr {
	struct ibv_mr ibv; /* addr, length, lkey == rkey == STag */
	void *start;       /* `addr`, also after mr_succeed() */
	/* the description in force: itself, or the one that mr_succeed() put in its place */
	struct mr *now;
	uint64_t iova; /* TO of the first byte; the address unless zero-based */
	int access;    /* IBV_ACCESS_* */
	struct mr_backing backing;
	struct mr_table *table;
	struct list link; /* in a hash chain, or in the list of descriptions to be used again */
	/* never reset: mr_hold_near() may count a hold in a description that is used again */
	atomic_uint holds;
	/* written under the mutex; false: all fields above are those of a registration */
	atomic_bool killed;
	atomic_uint refs; /* one of the registration, and one for each mr_ref() */
	/* Of a window's binding, which has no ibv.pd: */
	struct mr *region; /* in which it lies, with a reference; NULL: a region itself */
	struct mw *window; /* read with the table's mutex; NULL: a region */
	uint64_t only;     /* the queue pair that it is bound to; 0: each of its domain */
	/* Of a region: bindings that lie in it. Under the mutex. */
	unsigned windows;
};

/* The region that the memory belongs to. Its notes and write-backs know no windows. */
static inline struct mr *mr_base(struct mr *mr)
{
	return __builtin_expect(mr->region != NULL, 0) ? mr->region : mr;
}

enum mr_verdict {
	MR_OK,
	MR_BAD_STAG,
	MR_BAD_PD,
	MR_BAD_ACCESS,
	MR_BAD_BOUNDS,
	MR_TO_WRAP,
};

int mr_table_new(struct mr_table **out);
void mr_table_delete(struct mr_table *table);
/* Around fork(): keep the table consistent in the child. */
void mr_table_atfork_prepare(struct mr_table *table);
void mr_table_atfork_parent(struct mr_table *table);
void mr_table_atfork_child(struct mr_table *table); /* also drops the holds of threads that do not
						       exist in the child */

/*
 * Register [addr, addr+len) under an unpredictable STag. backing may be NULL: the memory has no
 * medium. No field that a look-up may read is changed afterwards.
 */
int mr_new(struct mr_table *table, struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
	   int access, const struct mr_backing *backing, struct mr **out);
/*
 * A region is registered anew under its STag. mr_make() makes a description that no lookup finds, so
 * that all that may fail is done while the former one is in force. When that one is killed and idle,
 * mr_succeed() puts the new one in its place. The program keeps `handle`, which mr_new() made, and
 * sees the new values there; handle->now is the one in force. The handle's own reference stays until
 * the program deregisters it.
 */
int mr_make(struct mr_table *table, struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
	    int access, const struct mr_backing *backing, struct mr **out);
void mr_succeed(struct mr *handle, struct mr *next);
void mr_discard(struct mr *made); /* mr_make() made it, and it is not put in place */
/* Make the STag unknown: no look-up finds the region any more. */
void mr_kill(struct mr *mr);
/* The same, unless windows are bound to the region: -EBUSY. */
int mr_try_kill(struct mr *mr);
/* Wait until the last hold is gone. Only after mr_kill(). */
void mr_wait_idle(struct mr *mr);
bool mr_is_idle(struct mr *mr);
/* Give up the registration of a killed, idle region. It is freed with the last reference. */
void mr_delete(struct mr *mr);
void mr_ref(struct mr *mr); /* counts a reference on a region that is held or referred to */
void mr_unref(struct mr *mr);
bool mr_is_killed(struct mr *mr);

/*
 * Look up and check: the STag exists, belongs to `pd`, grants every bit of `access`
 * (0: local source, anything goes) and covers [to, to+len). On MR_OK the region is held
 * and *ptr is the address of `to`. len may be 0: then only STag, PD and rights are checked.
 */
enum mr_verdict mr_hold(struct mr_table *table, const struct ibv_pd *pd, uint32_t stag, uint64_t to,
			uint64_t len, int access, struct mr **out, void **ptr);
/*
 * The region that a caller found last, as most look-ups ask for the same one again. While the
 * caller looks up many, it holds the region once for all of them; between such turns it only
 * remembers the region. Zeroed: none.
 */
struct mr_near {
	struct mr *mr;
	bool held;
};
/* What a look-up asks for: every right of `all`, and one of `any` unless that is 0. By value, so that
 * it stays in registers where a look-up is inlined. */
struct mr_need {
	const struct ibv_pd *pd;
	uint64_t to, len;
	int all, any;
};
/* Does the held region refuse these bytes, and why? */
enum mr_verdict mr_refusal(const struct mr *mr, struct mr_need need);
static inline bool mr_permits(const struct mr *mr, struct mr_need need)
{
	return !atomic_load_explicit(&mr->killed, memory_order_acquire) && mr->ibv.pd == need.pd &&
	       (mr->access & need.all) == need.all && (!need.any || mr->access & need.any);
}
/* A region does not wrap. */
static inline bool mr_covers(const struct mr *mr, struct mr_need need)
{
	return need.len == 0 || (need.to >= mr->iova && need.len <= mr->ibv.length &&
				 need.to - mr->iova <= mr->ibv.length - need.len);
}
/* Call it with the table's mutex, or for a region that the caller holds. */
static inline enum mr_verdict mr_check(const struct mr *mr, struct mr_need need, void **ptr)
{
	if (__builtin_expect(!mr_permits(mr, need) || !mr_covers(mr, need), 0))
		return mr_refusal(mr, need);
	*ptr = (void *)((uintptr_t)mr->ibv.addr + (uintptr_t)(need.to - mr->iova));
	return MR_OK;
}
enum mr_verdict mr_hold_other(struct mr_table *table, struct mr_near *near, uint32_t stag,
			      struct mr_need need, void **ptr);
/*
 * As mr_hold(), but the region must also grant one right of `any`, unless that is 0. On MR_OK the
 * region is near->mr, and is held until mr_release_near() or the next look-up with this `near`.
 */
static inline enum mr_verdict mr_hold_near(struct mr_table *table, struct mr_near *near,
					   const struct ibv_pd *pd, uint32_t stag, uint64_t to,
					   uint64_t len, int access, int any, void **ptr)
{
	struct mr_need need = {.pd = pd, .to = to, .len = len, .all = access, .any = any};

	if (near->held && near->mr->ibv.rkey == stag)
		return mr_check(near->mr, need, ptr);
	return mr_hold_other(table, near, stag, need, ptr);
}
static inline void mr_hold_again(struct mr *mr) /* adds a hold to a region that is held */
{
	atomic_fetch_add(&mr->holds, 1);
}
void mr_release(struct mr *mr);
static inline void mr_release_near(struct mr_near *near)
{
	if (near->held)
		mr_release(near->mr);
	near->held = false;
}
/*
 * Send with Invalidate (RFC 5040 s5.3). The region must be of pd, whose other streams lose it too
 * (RFC 5042 s6.4.5), so it must also have been registered for that:
 * VEXT_ACCESS_REMOTE_INVALIDATE. No window may be bound to it.
 */
enum mr_verdict mr_invalidate(struct mr_table *table, const struct ibv_pd *pd, uint32_t stag);

#endif
