/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr.h -- memory regions and the STag table.
 *
 * Every access to registered memory begins with mr_hold(). It checks STag, protection domain,
 * rights and bounds (RFC 5040 s8.1.1), and holds the region until mr_release(). After mr_kill() no
 * look-up finds the STag. mr_wait_idle() returns after the last hold is released. Thread-safe; the
 * table's mutex is a leaf lock.
 *
 * A hold keeps the memory registered; a reference only keeps the description (struct mr). A stream
 * that has placed bytes in a region keeps a reference until the bytes are written back, even if the
 * region is deregistered before.
 */
#ifndef RNIC_MR_H
#define RNIC_MR_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct mr_table; /* maps each STag of the device to its struct mr */
struct mw;       /* see mw.h */

/* The medium of the memory. The caller owns it, and this folder's code does not interpret it. */
struct mr_backing {
	void *persist; /* NULL: a Flush has nothing to do for this memory */
	bool durable;  /* some of the memory can be made persistent */
	/* the memory can be written back without a hold and without the registration */
	bool lasting;
	/* A load or store may wait for a file system, so the kernel gets no pointer to this memory
	 * for its own stores. */
	bool can_stall;
	/* Called before a store to memory that can stall, after the store's pages were loaded. May
	 * be NULL. */
	void (*expect_store)(const void *persist, const void *addr, size_t len);
	void (*drop)(void *persist); /* called when the last reference is dropped; may be NULL */
};

struct mr {
	struct ibv_mr ibv; /* addr, length, lkey == rkey == STag */
	void *start;       /* like ibv.addr, but never changed by mr_succeed() */
	/* the description in force, which is this one or the one that mr_succeed() made from it */
	struct mr *now;
	/* tagged offset of the first byte: the byte's address, or 0 for a zero-based region */
	uint64_t iova;
	int access; /* IBV_ACCESS_* flags */
	struct mr_backing backing;
	struct mr_table *table;
	struct list link; /* in a hash chain, or in the list of reusable descriptions */
	/* never reset, because mr_hold_near() may count a hold in a description that is being
	 * reused */
	atomic_uint holds;
	/* written under the mutex; false: the members above describe a registration */
	atomic_bool killed;
	atomic_uint refs; /* one reference for the registration, and one for each mr_ref() */
	/* The members for a window's binding. A binding has no ibv.pd. */
	/* in a binding: the region that contains it, with a reference; in a region: NULL */
	struct mr *region;
	/* in a binding: its window, read under the table's mutex; in a region: NULL */
	struct mw *window;
	/* id of the only queue pair that may use it; 0: all queue pairs of its domain */
	uint64_t only;
	/* in a region: number of windows bound to the region; guarded by the table's mutex */
	unsigned windows;
};

/* Returns the region whose memory this is: a binding's region, or the region itself. Dirty ranges
 * and write-backs refer to regions only, not to windows. */
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
/* Called around fork(), to keep the table consistent in the child. */
void mr_table_atfork_prepare(struct mr_table *table);
void mr_table_atfork_parent(struct mr_table *table);
/* called in a forked child; also drops the holds of threads that do not exist there */
void mr_table_atfork_child(struct mr_table *table);

/* Register [addr, addr+len) under an unpredictable STag. `backing` is NULL if the memory has no
 * medium. Afterwards the fields that a look-up reads never change. */
int mr_new(struct mr_table *table, struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
	   int access, const struct mr_backing *backing, struct mr **out);
/*
 * Register a region again under the same STag. mr_make() makes a new description that no look-up
 * finds. So all steps that may fail happen while the old description is still in force. After the
 * caller has killed the old description and waited until it is idle, mr_succeed() replaces it by
 * the new one. The program keeps `handle`, which mr_new() made, and sees the new values there;
 * handle->now is the description in force. The handle's own reference stays until the program
 * deregisters it.
 */
int mr_make(struct mr_table *table, struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
	    int access, const struct mr_backing *backing, struct mr **out);
void mr_succeed(struct mr *handle, struct mr *next);
void mr_discard(struct mr *made); /* drop a description made by mr_make() that is not in force */
/* Make the STag unknown: no look-up finds the region from now on. */
void mr_kill(struct mr *mr);
/* Kill the region like mr_kill(), or return -EBUSY if windows are bound to it. */
int mr_try_kill(struct mr *mr);
/* Wait until the last hold is released. Must only be called after mr_kill(). */
void mr_wait_idle(struct mr *mr);
bool mr_is_idle(struct mr *mr);
/* Drop the registration of a killed, idle region. The last reference frees it. */
void mr_delete(struct mr *mr);
void mr_ref(struct mr *mr); /* add a reference to a region; the caller has a hold or a reference */
void mr_unref(struct mr *mr);
bool mr_is_killed(struct mr *mr);

/*
 * Look up and check: the STag exists, belongs to `pd`, grants every right in `access` (0 for a
 * local source, which needs no right) and covers [to, to+len). On MR_OK the region is held, and
 * *ptr is the address of `to`. If len is 0, only STag, PD and rights are checked.
 */
enum mr_verdict mr_hold(struct mr_table *table, const struct ibv_pd *pd, uint32_t stag, uint64_t to,
			uint64_t len, int access, struct mr **out, void **ptr);
/*
 * The region of a caller's last look-up, because most look-ups need the same region again. During a
 * series of look-ups the caller holds the region once for all of them; between two series it only
 * remembers the region. All zeros: no region.
 */
struct mr_near {
	struct mr *mr;
	bool held;
};
/* The rights that a look-up requires: every right in `all`, and at least one right in `any` unless
 * `any` is 0. Passed by value, so that an inlined look-up keeps it in registers. */
struct mr_need {
	const struct ibv_pd *pd;
	uint64_t to, len;
	int all, any;
};
/* Returns the reason for which the held region refuses these bytes, or MR_OK if it does not refuse
 * them. */
enum mr_verdict mr_refusal(const struct mr *mr, struct mr_need need);
static inline bool mr_permits(const struct mr *mr, struct mr_need need)
{
	return !atomic_load_explicit(&mr->killed, memory_order_acquire) && mr->ibv.pd == need.pd &&
	       (mr->access & need.all) == need.all && (!need.any || mr->access & need.any);
}
/* Does the region cover the bytes? A region never wraps around the end of the address space. */
static inline bool mr_covers(const struct mr *mr, struct mr_need need)
{
	return need.len == 0 || (need.to >= mr->iova && need.len <= mr->ibv.length &&
				 need.to - mr->iova <= mr->ibv.length - need.len);
}
/* Must be called with the table's mutex, or for a held region. */
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
 * A form of mr_hold() that remembers the region in `near`. The region must grant all rights in
 * `all`, and one right in `any` unless `any` is 0. On MR_OK the region is near->mr, and is held
 * until mr_release_near() or the next look-up with this `near`.
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
static inline void mr_hold_again(struct mr *mr) /* adds a hold to a region that is held already */
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
 * Invalidate a region for a Send with Invalidate (RFC 5040 s5.3). The region must belong to pd. The
 * other streams of the domain can no longer use the region either (RFC 5042 s6.4.5), so the user
 * must have registered it with VEXT_ACCESS_REMOTE_INVALIDATE. No window may be bound to it.
 */
enum mr_verdict mr_invalidate(struct mr_table *table, const struct ibv_pd *pd, uint32_t stag);

#endif
