/* SPDX-License-Identifier: BSD-3-Clause */
/* primary_action.c -- answers questions of the state machine's user: the next action, and the
 * members that a flush must reach. */
#include "mirror/core/primary_impl.h"

/* The order in which actions are returned: actions that end work come before actions that begin
 * work. */
static const enum primary_action_type primary_member_order[] = {
	PRIMARY_DO_DROP,     PRIMARY_DO_PROMISE, PRIMARY_DO_VIEW,   PRIMARY_DO_RANGES,
	PRIMARY_DO_EQUALISE, PRIMARY_DO_RESYNC,  PRIMARY_DO_RETIRE,
};
static const enum primary_action_type primary_self_order[] = {
	PRIMARY_DO_SERVE,   PRIMARY_DO_BLOCKED, PRIMARY_DO_UNBLOCKED, PRIMARY_DO_QUIESCE,
	PRIMARY_DO_DEMOTED, PRIMARY_DO_FENCED,  PRIMARY_DO_FAILED,    PRIMARY_DO_READ,
};

static bool primary_take(uint32_t *pending, const enum primary_action_type *order, unsigned count,
			 enum primary_action_type *type)
{
	for (unsigned i = 0; i < count; i++) {
		uint32_t bit = 1u << order[i];

		if (*pending & bit) {
			*pending &= ~bit;
			*type = order[i];
			return true;
		}
	}
	return false;
}

#define PRIMARY_TAKE(pending, order, type)                                                         \
	primary_take(&(pending), (order), sizeof(order) / sizeof((order)[0]), (type))

static bool primary_next_member(struct primary *p, struct primary_action *action)
{
	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++) {
		struct primary_member *m = &p->members[i];

		if (!PRIMARY_TAKE(m->pending, primary_member_order, &action->type))
			continue;
		action->slot = (uint8_t)i;
		action->whole = m->uncertain;
		/* A failed copy may have sent bytes to one member before the kernel dropped them,
		 * so another member may lack these bytes. The next primary makes these members
		 * equal, so keep the records. */
		action->keeps =
			action->type == PRIMARY_DO_RETIRE && (m->tail_unknown || p->local_failed);
		if (action->type == PRIMARY_DO_EQUALISE) {
			action->whole |= p->members[p->slot].uncertain;
			/* A copy with damaged or lost records does not count as clean (W8). */
			action->nothing = p->was_clean && !primary_is_serving(p) && !action->whole;
		}
		return true;
	}
	return false;
}

bool primary_next(struct primary *p, struct primary_action *action)
{
	*action = (struct primary_action){.slot = MIRROR_NO_SLOT};
	if (primary_next_member(p, action))
		return true;
	if (PRIMARY_TAKE(p->pending, primary_self_order, &action->type)) {
		if (action->type == PRIMARY_DO_BLOCKED || action->type == PRIMARY_DO_FAILED) {
			action->why = p->text;
			action->error = p->error;
		}
		return true;
	}
	if (!primary_offer(p))
		return false;
	action->type = PRIMARY_DO_SWAP;
	action->whole = primary_is_recovering(p) && p->members[p->slot].uncertain;
	action->promotion = p->state == PRIMARY_PROMOTING;
	action->record = &p->offer;
	action->expected = &p->rec;
	action->revision = p->revision;
	return true;
}

uint64_t primary_next_deadline(const struct primary *p)
{
	uint64_t due = UINT64_MAX;

	if (primary_is_over(p))
		return due;
	if (!p->swapping && p->swap_retry_ms > p->now)
		due = p->swap_retry_ms;
	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++) {
		const struct primary_member *m = &p->members[i];

		if (m->state == PRIMARY_MEMBER_AWAY && m->retry_ms > p->now && m->retry_ms < due)
			due = m->retry_ms;
		if (m->deadline_ms > p->now && m->deadline_ms < due)
			due = m->deadline_ms;
	}
	return due;
}

mirror_mask primary_must_have(const struct primary *p)
{
	mirror_mask mask = (mirror_mask)(p->rec.view.insync | p->unknown);

	if (p->swapping)
		mask |= p->offer.view.insync;
	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++)
		if (p->members[i].state == PRIMARY_MEMBER_JOINING ||
		    p->members[i].state == PRIMARY_MEMBER_JOINED)
			mask |= MIRROR_BIT(i);
	return mask;
}

mirror_mask primary_sends_to(const struct primary *p)
{
	mirror_mask mask = 0;

	if (!primary_is_serving(p))
		return 0;
	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++) {
		enum primary_member_state state = p->members[i].state;

		if (i != p->slot &&
		    (state == PRIMARY_MEMBER_EQUAL || state == PRIMARY_MEMBER_EQUALISE ||
		     state == PRIMARY_MEMBER_JOINING || state == PRIMARY_MEMBER_JOINED))
			mask |= MIRROR_BIT(i);
	}
	return mask;
}

mirror_mask primary_counts(const struct primary *p)
{
	return (mirror_mask)(p->rec.view.insync | p->unknown);
}

bool primary_may_ack(const struct primary *p)
{
	return primary_is_serving(p) && view_count(primary_counts(p)) >= p->rec.config.min_copies;
}

const char *primary_state_2str(enum primary_state state)
{
	static const char *const names[PRIMARY_STATE_COUNT] = {
		[PRIMARY_IDLE] = "idle",
		[PRIMARY_PROMOTING] = "promoting",
		[PRIMARY_RECOVERING] = "recovering",
		[PRIMARY_STARTING] = "starting",
		[PRIMARY_SERVING] = "serving",
		[PRIMARY_QUIESCING] = "quiescing",
		[PRIMARY_STOPPING] = "stopping",
		[PRIMARY_DEMOTED] = "demoted",
		[PRIMARY_FENCED] = "fenced",
		[PRIMARY_FAILED] = "failed",
	};

	return (unsigned)state < PRIMARY_STATE_COUNT ? names[state] : "?";
}

const char *primary_member_state_2str(enum primary_member_state state)
{
	static const char *const names[PRIMARY_MEMBER_STATE_COUNT] = {
		[PRIMARY_MEMBER_NONE] = "none",       [PRIMARY_MEMBER_AWAY] = "away",
		[PRIMARY_MEMBER_FENCING] = "fencing", [PRIMARY_MEMBER_RANGES] = "ranges",
		[PRIMARY_MEMBER_WAITING] = "waiting", [PRIMARY_MEMBER_EQUALISE] = "equalising",
		[PRIMARY_MEMBER_RESYNC] = "resync",   [PRIMARY_MEMBER_JOINING] = "joining",
		[PRIMARY_MEMBER_JOINED] = "joined",   [PRIMARY_MEMBER_EQUAL] = "equal",
	};

	return (unsigned)state < PRIMARY_MEMBER_STATE_COUNT ? names[state] : "?";
}

const char *primary_action_2str(enum primary_action_type type)
{
	static const char *const names[PRIMARY_DO_COUNT] = {
		[PRIMARY_DO_SWAP] = "SWAP",           [PRIMARY_DO_READ] = "READ",
		[PRIMARY_DO_PROMISE] = "PROMISE",     [PRIMARY_DO_RANGES] = "RANGES",
		[PRIMARY_DO_EQUALISE] = "EQUALISE",   [PRIMARY_DO_RESYNC] = "RESYNC",
		[PRIMARY_DO_DROP] = "DROP",           [PRIMARY_DO_RETIRE] = "RETIRE",
		[PRIMARY_DO_VIEW] = "VIEW",           [PRIMARY_DO_SERVE] = "SERVE",
		[PRIMARY_DO_QUIESCE] = "QUIESCE",     [PRIMARY_DO_BLOCKED] = "BLOCKED",
		[PRIMARY_DO_UNBLOCKED] = "UNBLOCKED", [PRIMARY_DO_DEMOTED] = "DEMOTED",
		[PRIMARY_DO_FENCED] = "FENCED",       [PRIMARY_DO_FAILED] = "FAILED",
	};

	return (unsigned)type < PRIMARY_DO_COUNT ? names[type] : "?";
}
