/* SPDX-License-Identifier: BSD-3-Clause */
/* windows_owner.c -- the application that binds windows and ends them. */
#include <errno.h>

#include "softrnic/rnic/rnic.h"
#include "windows.h"
#include "workload.h"

#define FLUSHES     (VEXT_ACCESS_FLUSH_GLOBAL | VEXT_ACCESS_FLUSH_PERSISTENT)
#define LEAVES_EACH 100   /* an owner over UC disconnects in one of this many turns */
#define INVALIDATE  1000u /* wr_id of a Local Invalidate: this plus the binding's number */

/* Returns true if operations of this connection on the binding can be outstanding. */
static bool owner_is_in_use(const struct sim *sim, const struct win_binding *b)
{
	const struct win_conn *c = &sim->world->windows->conn[sim->index];
	unsigned known = node_is_acknowledged(&sim->node[0]) ? c->completed : c->answered;

	for (unsigned k = known; k < c->posted; k++) {
		if (c->op[k].b == b)
			return true;
	}
	return false;
}

/* On RC, an operation on a window that has ended fails, and its connection fails, too. */
static void owner_expect_errors(struct node *n, const struct win_binding *b)
{
	for (unsigned i = 0; i < n->sim->world->conns; i++) {
		const struct sim *sim = &n->sim->world->conn[i];

		if (!sim->sc.unreliable && owner_is_in_use(sim, b))
			n->sim->world->windows->conn[i].may_fail = true;
	}
}

void win_end_binding(struct win_conn *c, struct win_binding *b)
{
	struct win_window *win = &c->window[b->window];

	b->state = BIND_DEAD;
	if (win->live == (int)(b - c->binding))
		win->live = -1;
}

/* --- Bind ----------------------------------------------------------------------------------- */

static void bind_choose(struct node *n, struct win_binding *b)
{
	struct prng *rng = &n->sim->world->rng;
	const struct area *a;
	bool may_flush;

	b->area = prng_chance(rng, 70) ? AREA_TARGET0 : AREA_TARGET1;
	a = &n->mem->area[b->area];
	may_flush = a->mr->access & VEXT_ACCESS_FLUSH_PERSISTENT;
	b->len = prng_between(rng, 1, a->len);
	b->off = a->off + prng_below(rng, a->len - b->len + 1);
	b->access = (prng_chance(rng, 90) ? IBV_ACCESS_REMOTE_WRITE : 0) |
		    (prng_chance(rng, 60) ? IBV_ACCESS_REMOTE_READ : 0) |
		    (may_flush && prng_chance(rng, 80) ? FLUSHES : 0);
	b->to = memory_to(n->mem, b->area, b->off);
	if (prng_chance(rng, 20)) {
		b->access |= IBV_ACCESS_ZERO_BASED;
		b->to = 0;
	}
}

static int bind_post(struct node *n, struct win_window *win, const struct win_binding *b)
{
	struct ibv_send_wr wr = {
		.wr_id = (uint64_t)(b - win_of(n)->binding),
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {.mw = &win->mw->ibv,
			    .rkey = b->stag,
			    .bind_info = {.mr = &n->mem->area[b->area].mr->ibv,
					  .addr = memory_to(n->mem, b->area, b->off),
					  .length = b->len,
					  .mw_access_flags = (unsigned)b->access}},
	};
	struct ibv_send_wr *bad;
	struct stream_update u; /* not used: the visit performs the update */
	int err;

	win->mw->in_call = b->type == IBV_MW_TYPE_1;
	err = stream_post_send(n->stream, &wr, &bad, &u);
	win->mw->in_call = false;
	return err;
}

/* Detach the binding from all connections of the host. */
static void bind_detach(struct node *n, struct mr *binding)
{
	for (unsigned i = 0; i < n->sim->world->conns; i++) {
		struct node *other = &n->sim->world->conn[i].node[1];
		struct stream_update u;

		if (!other->qp)
			continue;
		stream_detach_mr(other->stream, binding, false, &u);
		node_perform(other, &u);
	}
	if (!mr_is_idle(binding))
		sim_violate(n->sim, "a window that has ended is still held");
}

/* As in ibv_bind_mw(), the call ends the former binding. */
static void bind_end_former(struct node *n, struct win_window *win, struct mr *former)
{
	struct win_conn *c = win_of(n);

	if (win->live >= 0) {
		owner_expect_errors(n, &c->binding[win->live]);
		windows_seen.rebinds++;
	}
	mr_kill(former);
	bind_detach(n, former);
	win_check_cache(n->sim);
	if (win->live >= 0)
		win_end_binding(c, &c->binding[win->live]);
}

/* The new STag must differ from all STags that the writers can still use. */
static uint32_t bind_new_stag(const struct node *n, uint32_t stag)
{
	const struct windows *all = n->sim->world->windows;

	stag = ibv_inc_rkey(stag);
	for (unsigned i = 0; i < n->sim->world->conns; i++) {
		for (unsigned k = 0; k < all->conn[i].bindings; k++) {
			if (all->conn[i].binding[k].stag == stag)
				return bind_new_stag(n, stag);
		}
	}
	return stag;
}

static void owner_bind(struct node *n, struct win_window *win, bool empty)
{
	struct win_conn *c = win_of(n);
	struct win_binding *b = &c->binding[c->bindings];
	bool refused = win->live >= 0 && win->mw->ibv.type == IBV_MW_TYPE_2;
	struct mr *former;

	*b = (struct win_binding){.window = (unsigned)(win - c->window),
				  .type = win->mw->ibv.type,
				  .stag = bind_new_stag(n, win->key),
				  .refused = refused};
	bind_choose(n, b);
	if (empty)
		b->len = 0;
	former = mw_former(win->mw);
	if (bind_post(n, win, b)) {
		mr_unref(former);
		return;
	}
	c->may_fail |= refused;
	win->key = b->stag;
	win->pending = (int)c->bindings++;
	if (b->type == IBV_MW_TYPE_1)
		bind_end_former(n, win, former);
	mr_unref(former);
	windows_seen.unbinds += empty;
}

static void owner_on_bound(struct node *n, struct win_binding *b, bool good)
{
	struct win_window *win = &win_of(n)->window[b->window];

	win->pending = -1;
	if (!good) {
		windows_seen.refused_binds += b->refused;
		b->state = BIND_DEAD;
		return;
	}
	if (b->refused)
		sim_violate(n->sim, "a window of type 2 is bound twice");
	b->state = BIND_LIVE;
	win->live = (int)(b - win_of(n)->binding);
	windows_seen.binds_1 += b->type == IBV_MW_TYPE_1;
	windows_seen.binds_2 += b->type == IBV_MW_TYPE_2;
	/* Broken on purpose: the window is longer than requested. */
	if (n->sim->sc.mode == SIM_LOOSE_WINDOW)
		win->mw->now->ibv.length += 64;
	if (n->sim->sc.mode == SIM_ANY_QP)
		win->mw->now->only = 0;
}

/* --- the end of a binding ------------------------------------------------------------------- */

static void owner_invalidate(struct node *n, struct win_binding *b)
{
	struct win_conn *c = win_of(n);
	struct ibv_send_wr wr = {.wr_id = INVALIDATE + (uint64_t)(b - c->binding),
				 .opcode = IBV_WR_LOCAL_INV,
				 .send_flags = IBV_SEND_SIGNALED,
				 .invalidate_rkey = b->stag};
	struct ibv_send_wr *bad;
	struct stream_update u; /* not used: the visit performs the update */

	if (n->sim->sc.mode == SIM_ANY_QP || stream_post_send(n->stream, &wr, &bad, &u))
		return;
	owner_expect_errors(n, b);
	b->state = BIND_ENDING;
}

static void owner_renew(struct node *n, struct win_window *win)
{
	struct win_conn *c = win_of(n);
	struct mr *binding;

	if (win->live >= 0)
		owner_expect_errors(n, &c->binding[win->live]);
	binding = mw_kill(win->mw);
	bind_detach(n, binding);
	mw_unbind(binding);
	mr_unref(binding);
	win_check_cache(n->sim);
	if (win->live >= 0)
		win_end_binding(c, &c->binding[win->live]);
	mw_delete(win->mw);
	win->mw = NULL;
	windows_seen.given_back++;
}

void win_give_back(struct node *n)
{
	for (int i = 0; i < WIN_WINDOWS; i++) {
		if (win_of(n)->window[i].mw)
			owner_renew(n, &win_of(n)->window[i]);
	}
	for (int i = AREA_TARGET0; i <= AREA_TARGET1; i++) {
		if (mr_try_kill(n->mem->area[i].mr))
			sim_violate(n->sim, "a region without a window cannot be deregistered");
	}
}

/* Broken on purpose: the STag still gives access to the memory. */
static void owner_keep(struct node *n, const struct win_binding *b)
{
	struct mw_bind bind = {.pd = &n->host->pd,
			       .stag = b->stag,
			       .window = b->stag,
			       .lkey = n->mem->area[b->area].mr->ibv.lkey,
			       .addr = memory_to(n->mem, b->area, b->off),
			       .len = b->len,
			       .access = b->access};

	(void)mw_bind(n->host->mrs, &bind);
	win_of(n)->window[b->window].pending = (int)(b - win_of(n)->binding); /* no further Bind */
}

void win_owner_on_completion(struct node *n, const struct ibv_wc *wc)
{
	struct win_conn *c = win_of(n);
	bool good = wc->status == IBV_WC_SUCCESS;

	if (wc->wr_id < INVALIDATE) {
		owner_on_bound(n, &c->binding[wc->wr_id], good);
		return;
	}
	if (good)
		win_end_binding(c, &c->binding[wc->wr_id - INVALIDATE]);
	if (good && n->sim->sc.mode == SIM_KEPT_WINDOW)
		owner_keep(n, &c->binding[wc->wr_id - INVALIDATE]);
	windows_seen.local_invalidates += good;
}

/* --- a turn --------------------------------------------------------------------------------- */

/* A region with a bound window must not be deregistered. */
static void owner_try_dereg(struct node *n, const struct win_binding *b)
{
	windows_seen.busy_regions++;
	if (mr_try_kill(n->mem->area[b->area].mr) != -EBUSY)
		sim_violate(n->sim, "a region with a window can be deregistered");
}

static void owner_end_live(struct node *n, struct win_window *win)
{
	struct win_binding *b = &win_of(n)->binding[win->live];
	unsigned dice = (unsigned)prng_below(&n->sim->world->rng, 100);

	if (b->state != BIND_LIVE)
		return;
	/* Without this condition most connections would end early. */
	if (!n->sim->sc.unreliable && owner_is_in_use(n->sim, b) &&
	    !prng_chance(&n->sim->world->rng, 3))
		return;
	if (dice < 4 && b->len > 0)
		owner_try_dereg(n, b);
	else if (dice < 24 && b->type == IBV_MW_TYPE_2)
		owner_invalidate(n, b);
	else if (dice < 24)
		owner_bind(n, win, dice < 12);
	else if (dice < 28)
		owner_renew(n, win);
	else if (dice < 29 && !n->sim->sc.unreliable && prng_chance(&n->sim->world->rng, 20))
		owner_bind(n, win, false);
}

static void owner_window(struct node *n, struct win_window *win)
{
	struct prng *rng = &n->sim->world->rng;
	struct win_conn *c = win_of(n);
	enum ibv_mw_type type = prng_chance(rng, 40) ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2;

	if (c->bindings == WIN_BINDINGS || win->pending >= 0)
		return;
	if (!win->mw) {
		if (mw_new(n->host->mrs, &n->host->pd, type, &win->mw))
			sim_violate(n->sim, "a window is refused");
		else
			win->key = win->mw->ibv.rkey;
	} else if (win->live >= 0) {
		owner_end_live(n, win);
	} else if (prng_chance(rng, 60)) {
		owner_bind(n, win, false);
	}
}

static void owner_accept(struct node *n)
{
	struct stream_params params = workload_params(n);
	struct stream_update u;

	n->answered = true;
	stream_accept(n->stream, &params, n->sim->sc.mss, n->sim->world->now, &u);
}

void win_owner_tick(struct node *n)
{
	struct prng *rng = &n->sim->world->rng;

	if (n->requested && !n->answered)
		owner_accept(n);
	if (prng_chance(rng, n->sim->sc.unreliable ? 15 : 50))
		inbox_post(n->box, n, 1);
	if (!n->established || n->disconnected || win_of(n)->failed)
		return;
	if (n->sim->sc.unreliable && prng_below(rng, LEAVES_EACH) == 0 && !n->disconnecting) {
		win_of(n)->cut = true;
		workload_disconnect(n);
	}
	for (int i = 0; i < WIN_WINDOWS; i++) {
		if (prng_chance(rng, 30))
			owner_window(n, &win_of(n)->window[i]);
	}
}
