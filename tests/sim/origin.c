/* SPDX-License-Identifier: BSD-3-Clause */
#include "origin.h"

#include <string.h>

#include "base/rand.h"
#include "reconnect.h"

/* limit of the initiator's processes: a new process replaces each dead process */
#define PROCESSES WORLD_CONNS

static struct formers formers[PROCESSES];
static unsigned process;
static struct fences fences;
static uint8_t instance_of_target[EXT_ID_LEN];
static bool origin_ignores_leave;

static struct node *origin_node(struct fence_member *m)
{
	return container_of(m, struct node, fenced);
}

/* A target must not cut a connection that its initiator has neither ended nor given up. */
static void origin_check_cut(const struct node *n)
{
	const struct node *initiator = n->peer;

	if (!initiator->ended && !initiator->former.given_up)
		sim_violate(n->sim, "a connection is cut that was not given up");
}

static void origin_cut(struct fence_member *m)
{
	origin_check_cut(origin_node(m));
	origin_node(m)->cut_due = true;
	reconnect_seen.cut++;
	node_pump_soon(origin_node(m));
}

static void origin_wake(struct fence_member *m)
{
	origin_node(m)->fence_ends = true;
	node_pump_soon(origin_node(m));
}

void origin_start(enum sim_mode mode)
{
	origin_ignores_leave = mode == SIM_NO_LEAVE;
	process = 0;
	for (unsigned i = 0; i < PROCESSES; i++)
		formers_init(&formers[i]);
	fences_init(&fences, origin_cut, origin_wake);
	rand_bytes(instance_of_target, sizeof(instance_of_target));
}

void origin_stop(void)
{
	for (unsigned i = 0; i < PROCESSES; i++)
		formers_reset(&formers[i]);
	fences_reset(&fences);
}

void origin_next_process(void)
{
	process++;
}

void origin_prepare(struct node *n, struct stream_config *cfg)
{
	struct reconnect *r = n->sim->world->reconnect;

	fence_member_init(&n->fenced);
	if (!r)
		return;
	n->process = process;
	cfg->takes_part = r->takes_part[n->index] && !scenario_lacks(&n->sim->sc, SIM_NO_BARRIER);
	if (n->index == 1)
		memcpy(cfg->instance, instance_of_target, sizeof(cfg->instance));
}

/* --- initiator ---------------------------------------------------------------------------- */

static bool origin_join(struct node *n, const uint8_t *instance)
{
	uint8_t fresh[EXT_ID_LEN];
	bool dropped;

	rand_bytes(fresh, sizeof(fresh));
	return former_join(&formers[n->process], &n->former, instance, fresh, &dropped) == 0;
}

bool origin_fill(void *owner, const uint8_t instance[EXT_ID_LEN], struct ext_origin *origin)
{
	struct node *n = owner;

	if (!n->former.target && !origin_join(n, instance))
		return false;
	former_name(&n->former, origin);
	if (origin->n > 0 && scenario_lacks(&n->sim->sc, SIM_NAMES_ALL))
		origin->ranges[0] = (struct ext_range_of_serials){1, origin->serial - 1};
	if (n->sim->world->reconnect->named && !n->owner_is_named) {
		origin->has_owner = true;
		memset(origin->owner, 0x6f, sizeof(origin->owner));
	}
	origin->asks = origin->n > 0 || origin->has_owner;
	reconnect_seen.questions += origin->asks;
	return true;
}

void origin_fenced(void *owner, const struct ext_origin *origin)
{
	struct node *n = owner;

	n->owner_is_named |= origin->has_owner;
	former_fenced(&n->former, origin);
}

void origin_give_up(struct node *n)
{
	former_give_up(&n->former);
}

/* --- target ------------------------------------------------------------------------------- */

void origin_arrive(struct node *n)
{
	if (stream_state(n->stream) == STREAM_REQ_RCVD && list_empty(&n->fenced.link))
		fence_arrive(&fences, &n->fenced);
}

/* Broken on purpose: the target answers the question before it has cut the former connections, or
 * it accepts a former connection whose Origin arrives too late. */
enum stream_fence origin_identify(void *owner, const struct ext_origin *origin)
{
	struct node *n = owner;
	enum stream_fence fence = fence_identify(&fences, &n->fenced, origin);

	reconnect_seen.waits += fence == STREAM_FENCE_WAIT;
	reconnect_seen.cut_late += fence == STREAM_FENCE_CUT;
	if (fence == STREAM_FENCE_WAIT && scenario_lacks(&n->sim->sc, SIM_BARRIER_EARLY))
		return STREAM_FENCE_DONE;
	if (fence == STREAM_FENCE_CUT && scenario_lacks(&n->sim->sc, SIM_LATE_ORIGIN))
		return STREAM_FENCE_DONE;
	return fence;
}

void origin_on_established(struct node *n)
{
	if (n->index == 1)
		fence_pass(&fences, &n->fenced);
}

void origin_do(struct node *n, struct stream_update *u)
{
	if (n->cut_due) {
		n->cut_due = false;
		stream_cut_off(n->stream, u);
	}
	if (n->fence_ends) {
		n->fence_ends = false;
		stream_fence_end(n->stream, n->sim->world->now, u);
	}
}

/* --- both ends ---------------------------------------------------------------------------- */

void origin_on_closed(struct node *n)
{
	if (n->index == 0)
		former_leave(&formers[n->process], &n->former, stream_is_over(n->stream));
	else
		fence_leave(&fences, &n->fenced);
}

/*
 * Broken on purpose: a target that ends the connection first does not report this end to the peer.
 */
bool __real_qp_peer_leaves(const struct qp *qp);
bool __wrap_qp_peer_leaves(const struct qp *qp);
bool __wrap_qp_peer_leaves(const struct qp *qp)
{
	return !origin_ignores_leave && __real_qp_peer_leaves(qp);
}
