/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * orders.c -- `rpmirror promote [--force]`: the tool waits for a host's daemon until its time
 * limit, an interruption, or the daemon's end. If the tool ended without success, its order must
 * have no effect: it must not permit any later promotion.
 */
#include "sim.h"

#define ORDER_LIVES_MIN (20 * MS)
#define ORDER_LIVES_MAX (2500 * MS)

/*
 * In some runs the set has `auto = no`, and operators order promotions. These runs use separate
 * random numbers.
 */
void orders_choose(struct world *w)
{
	w->may_order = prng_below(&w->orders_rng, 1000) < 200;
	w->is_manual = w->may_order && prng_below(&w->orders_rng, 1000) < 500;
}

static void orders_end(struct world *w, struct host *h)
{
	h->operator.waits = false;
	if (w->mode != SIM_ORDER_OUTLIVES_REQUEST)
		h->promotion.is_over = true;
}

static void orders_time_is_over(struct world *w, struct event *e)
{
	struct host *h = &w->host[e->host];

	if (h->daemon_uid != e->uid || h->operator.number != e->arg || !h->operator.waits)
		return;
	sim_trace(w, "%u: the order to promote it ends", h->id);
	orders_end(w, h);
}

/* The order is valid for the view that the daemon read last. */
void orders_give(struct world *w, struct host *h, enum promotion_kind kind, uint64_t lives)
{
	if (!h->daemon_uid || !h->has_polled || h->lib)
		return;
	sim_trace(w, "%u: an operator orders to promote it%s", h->id,
		  kind == PROMOTION_FORCE ? " by force" : "");
	w->count.orders++;
	h->promotion = (struct promotion_order){.kind = kind, .view = h->polled};
	h->operator=(struct operator){.waits = true,
				      .is_forcing = kind == PROMOTION_FORCE,
				      .number = h->operator.number + 1,
				      .since = w->now,
				      .cut_until = h->operator.cut_until,
				      .view = h->polled};
	sched_add(w, lives, orders_time_is_over, h->id, h->daemon_uid, h->operator.number, NULL);
}

/* The order exists only in the daemon's memory, so it ends with the daemon. */
void orders_forget(struct host *h)
{
	h->promotion = (struct promotion_order){.is_over = true};
	h->operator.waits = false;
	h->has_polled = false;
}

/* The daemon has read the register. Returns the kind of promotion that the order permits. */
enum promotion_kind orders_on_read(struct world *w, struct host *h, const struct register_seen *r,
				   const struct mirror_view *now)
{
	h->polled = *now;
	h->has_polled = true;
	/* The register was read before the order was given, so ignore this read. */
	if (r->at < h->operator.since)
		return PROMOTION_NO_ORDER;
	if (w->mode == SIM_ORDER_OF_ANY_VIEW)
		h->promotion.view = *now;
	if (!h->promotion.is_over && !promotion_order_fits(&h->promotion, now))
		orders_end(w, h);
	return promotion_order_permits(&h->promotion, now);
}

bool orders_may_follow(const struct world *w, const struct host *h, const struct mirror_view *now,
		       enum promotion_kind order)
{
	return !w->is_manual || order != PROMOTION_NO_ORDER || now->primary == MIRROR_NO_SLOT ||
	       now->primary == h->id;
}

/* A process requests the swap of a promotion. Returns true if the daemon has no order that permits
 * it. */
bool orders_lack(const struct world *w, const struct host *h, const struct primary_action *a)
{
	const struct mirror_view *before = &a->expected->view;

	if (w->mode == SIM_ORDER_ASKED_ONCE)
		return false;
	return promotion_lacks_order(&a->record->view,
				     orders_may_follow(w, h, before, PROMOTION_NO_ORDER),
				     promotion_order_permits(&h->promotion, before));
}

/* A process sends the swap of a promotion. Returns true if an operator still waits for this
 * promotion. */
bool orders_want(const struct world *w, const struct host *h, const struct primary_action *a)
{
	const struct operator* o = & h->operator;
	const struct mirror_view *before = &a->expected->view;

	if (!a->record->view.forced && orders_may_follow(w, h, before, PROMOTION_NO_ORDER))
		return true;
	if (!o->waits || !mirror_epoch_is_equal(o->view.epoch, before->epoch))
		return false;
	return !a->record->view.forced ||
	       (o->is_forcing && o->view.seq == before->seq && o->view.insync == before->insync);
}

/* ---- orders at random moments ---- */

static bool orders_is_nobody_alive(const struct world *w)
{
	for (unsigned i = 0; i < w->hosts; i++)
		if (w->host[i].lib)
			return false;
	return true;
}

/* Give an order that fails: the host cannot reach the register while the tool waits. */
static void orders_give_in_vain(struct world *w, struct host *h, enum promotion_kind kind)
{
	uint64_t lives = ORDER_LIVES_MIN + prng_below(&w->orders_rng, 300 * MS);

	orders_give(w, h, kind, lives);
	h->operator.cut_until = w->now + lives + 1 + prng_below(&w->orders_rng, 300 * MS);
}

static uint64_t orders_life(struct world *w)
{
	return ORDER_LIVES_MIN + prng_below(&w->orders_rng, ORDER_LIVES_MAX - ORDER_LIVES_MIN);
}

/*
 * An order with force is given while no primary is alive, or while the host cannot reach the
 * register. In the second case the order fails, and must have no effect. An order without force can
 * be given at any time, because the lease protects a live primary.
 */
void orders_trouble(struct world *w, struct event *e)
{
	struct host *h = &w->host[prng_below(&w->orders_rng, w->hosts)];
	uint64_t what = prng_below(&w->orders_rng, 4);

	(void)e;
	if (w->healing || w->now > w->trouble_until)
		return;
	if (what == 0 && orders_is_nobody_alive(w) && world_may_be_forced(h))
		orders_give(w, h, PROMOTION_FORCE, orders_life(w));
	else if (what == 1 && world_may_be_forced(h))
		orders_give_in_vain(w, h, PROMOTION_FORCE);
	else if (what == 2)
		orders_give_in_vain(w, h, PROMOTION_ORDER);
	else
		orders_give(w, h, PROMOTION_ORDER, orders_life(w));
	sched_add(w, 50 * MS + prng_below(&w->orders_rng, 500 * MS), orders_trouble, 0, 0, 0, NULL);
}
