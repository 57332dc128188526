/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mw.h -- memory windows (RFC 5040 s1.1, ibv_alloc_mw(3)). A window is an STag that gives peers
 * access to a part of a region, with separate rights. A window can be invalidated while its region
 * stays registered.
 *
 * Each binding of a window has a separate description in the STag table (struct mr), whose member
 * `region` points to the region. Accesses hold the description as they hold a region's. So
 * invalidation works like deregistration: the description is killed, its users release it, and the
 * window counts as unbound after the last hold is released. While a window is bound, the region
 * cannot be deregistered: mr_try_kill() returns -EBUSY.
 */
#ifndef RNIC_MW_H
#define RNIC_MW_H

#include "softrnic/rnic/mr.h"

struct mw {
	struct ibv_mw ibv;
	struct mr_table *table;
	struct mr
		/* the description of the last binding, or of the unbound window; guarded by the
		 * table's mutex */
		*now;
	bool ended; /* the window is being deleted, so it can no longer be bound */
	/* ibv_bind_mw() is posting its request; only such a request can bind a window of type 1 */
	bool in_call;
};

/* Make an unbound window. `type` is 1 or 2. Type 2 means 2B: only the peer of the queue pair that
 * binds the window may use it. Returns 0 or -ENOMEM. */
int mw_new(struct mr_table *table, struct ibv_pd *pd, enum ibv_mw_type type, struct mw **out);
/*
 * Called before the window is deleted: make its STag unknown immediately. Returns the description
 * with a reference; the caller must wait until it is idle.
 */
struct mr *mw_kill(struct mw *mw);
/* Returns the description in force, with a reference. A bind that is posted now may replace this
 * description. */
struct mr *mw_former(struct mw *mw);
/* Release the region of a description that is killed and idle. A second call changes nothing. */
void mw_unbind(struct mr *now);
void mw_delete(struct mw *mw); /* the window must be killed, idle and unbound */

/* The parameters of a binding. They are values without pointers, because the window or region may
 * end between the posting of the request and its execution. */
struct mw_bind {
	const struct ibv_pd *pd;
	uint64_t qp;   /* qp_id() of the queue pair that posted the request */
	uint32_t stag; /* the new STag, whose index equals the index of the window's STag */
	/* `window`: any STag that the window had; `lkey`: STag of the region */
	uint32_t window, lkey;
	/* range of the region; len 0 (type 1 only) leaves the window unbound */
	uint64_t addr, len;
	int access; /* IBV_ACCESS_* flags */
};
/*
 * Bind a window. For a window of type 1 this ends the former binding. Returns 0; -EAGAIN if the
 * former binding is still in use (try again when it is idle); or another -errno if the domain has
 * no such window or region, if a window of type 2 is already bound, or if the binding asks for more
 * than the region permits.
 */
int mw_bind(struct mr_table *table, const struct mw_bind *bind);
/* Returns false if mw_bind() would return -EAGAIN now. `stag` is any STag that the window had. */
bool mw_is_idle(struct mr_table *table, uint32_t stag);
/*
 * Invalidate a window of type 2 that is bound to this queue pair: its STag becomes unknown
 * immediately. Returns the description with a reference, or NULL if there is no such window. The
 * caller must release all uses of the description and then call mw_unbind().
 */
struct mr *mw_invalidate(struct mr_table *table, const struct ibv_pd *pd, uint64_t qp,
			 uint32_t stag);
/* A form of mr_hold_near() for the STag of a window. (For such an STag mr_hold_near() returns
 * MR_BAD_PD.) */
enum mr_verdict mw_hold_near(struct mr_table *table, struct mr_near *near, uint32_t stag,
			     struct mr_need need, uint64_t qp, void **ptr);

#endif
