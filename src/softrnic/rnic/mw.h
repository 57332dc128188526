/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mw.h -- memory windows (RFC 5040 s1.1, ibv_alloc_mw(3)): an STag that opens a part of a region to
 * peers, with rights of its own, and that ends without the region.
 *
 * Each binding of a window is a description of its own in the STag table (struct mr), whose `region`
 * is the region. It is held like one. So invalidation is made safe like deregistration: the
 * description is killed, what uses it lets it go, and the window counts as unbound when nothing holds
 * it any more. Until then the region cannot be deregistered: mr_try_kill().
 */
#ifndef RNIC_MW_H
#define RNIC_MW_H

#include "softrnic/rnic/mr.h"

struct mw {
	struct ibv_mw ibv;
	struct mr_table *table;
	struct mr
		*now; /* the description of its last binding, or of none; under the table's mutex */
	bool ended;   /* no request binds it any more */
	bool in_call; /* ibv_bind_mw() posts its request, the only one that binds type 1 */
};

/* Unbound. 0 or -ENOMEM. type: 1, or 2, which means 2B: only its queue pair's peer may use it. */
int mw_new(struct mr_table *table, struct ibv_pd *pd, enum ibv_mw_type type, struct mw **out);
/*
 * Make its STag unknown at once. The caller waits until the description, on which it gets a reference,
 * is idle. The window is about to be deleted.
 */
struct mr *mw_kill(struct mw *mw);
/* The description in force, with a reference: a bind that is posted now may replace it. */
struct mr *mw_former(struct mw *mw);
/* The description is killed and idle: its region may go. Once more changes nothing. */
void mw_unbind(struct mr *now);
void mw_delete(struct mw *mw); /* killed, idle and unbound */

/* Values only, as the objects may go between the post of a request and its turn. */
struct mw_bind {
	const struct ibv_pd *pd;
	uint64_t qp;           /* qp_id() of the queue pair whose request it is */
	uint32_t stag;         /* which it gets; the index is that of the window */
	uint32_t window, lkey; /* any STag that the window had; STag of the region */
	uint64_t addr, len;    /* in the region; len 0: of type 1, none */
	int access;            /* IBV_ACCESS_* */
};
/*
 * Bind a window. The former binding of one of type 1 ends; -EAGAIN: when it is idle. Other errors:
 * there is no such window or region in the domain, a window of type 2 is bound, or more is asked for
 * than the region permits.
 */
int mw_bind(struct mr_table *table, const struct mw_bind *bind);
/* Would mw_bind() return something other than -EAGAIN? stag: any that the window had. */
bool mw_is_idle(struct mr_table *table, uint32_t stag);
/*
 * Invalidate a window of type 2 that is bound to this queue pair: its STag is unknown at once. The
 * caller gets a reference on the description, lets it go, and then calls mw_unbind(). NULL: there is
 * none.
 */
struct mr *mw_invalidate(struct mr_table *table, const struct ibv_pd *pd, uint64_t qp,
			 uint32_t stag);
/* As mr_hold_near(), for the STag of a window: mr_hold_near() answers MR_BAD_PD to that. */
enum mr_verdict mw_hold_near(struct mr_table *table, struct mr_near *near, uint32_t stag,
			     struct mr_need need, uint64_t qp, void **ptr);

#endif
