/* SPDX-License-Identifier: BSD-3-Clause */
/* primary_impl.h -- declarations that the files of the primary's state machine share. */
#ifndef MIRROR_CORE_PRIMARY_IMPL_H
#define MIRROR_CORE_PRIMARY_IMPL_H

#include <stddef.h>

#include "mirror/core/primary.h"
#include "mirror/core/view.h"

#define PRIMARY_RETRY_MS 200 /* first pause between attempts to reach a member */
/* first pause while a process that unmaps still holds the copy */
#define PRIMARY_HELD_MS      2
#define PRIMARY_RETRY_MAX_MS 10000 /* longest pause between attempts to reach a member */
/* this number of PRIMARY_REFUSED_SPLIT in a row counts as a split; a read that has not ended yet
 * may cause one or two */
#define PRIMARY_SPLITS 4
/* if a member is lost this often while it is made equal, its medium counts as bad, and no flush
 * waits for the member */
#define PRIMARY_BREAKS      3
#define PRIMARY_HOLDOFF_MAX (300 * 1000)
#define PRIMARY_SWAP_MS     100 /* first pause after a swap without success */
#define PRIMARY_SWAP_MAX_MS 5000

static inline bool primary_is_over(const struct primary *p)
{
	return p->state == PRIMARY_IDLE || p->state >= PRIMARY_DEMOTED;
}

/* Returns true from the swap to `serving` until the last flush has ended. */
static inline bool primary_is_serving(const struct primary *p)
{
	return p->state == PRIMARY_SERVING || p->state == PRIMARY_QUIESCING;
}

/* Returns true if members may join. While the primary stops, they may join if the last flushes
 * wait for more copies or for a good copy. */
static inline bool primary_admits(const struct primary *p)
{
	return primary_is_source(p) &&
	       (p->state == PRIMARY_SERVING ||
		(p->state == PRIMARY_QUIESCING && (!primary_may_ack(p) || p->local_failed)));
}

static inline bool primary_is_recovering(const struct primary *p)
{
	return p->state == PRIMARY_RECOVERING || p->state == PRIMARY_STARTING;
}

/*
 * Returns true before the set serves, if S without its lost members has too few copies (min_copies)
 * and all other members of S are equal. Then members outside of S are made equal, and one swap
 * exchanges them for the lost members. The lost members leave in the same swap, because the records
 * of the new members name no range in which the lost members may differ.
 */
bool primary_fills(const struct primary *p);

static inline bool primary_in_s(const struct primary *p, unsigned slot)
{
	return p->rec.view.insync & MIRROR_BIT(slot);
}

static inline const char *primary_name(const struct primary *p, unsigned slot)
{
	return p->rec.config.members[slot].name;
}

/* Returns the members of S that a swap has to exclude. */
mirror_mask primary_lost(const struct primary *p);

void primary_set_state(struct primary *p, enum primary_state state, const char *event);
void primary_pend(struct primary *p, enum primary_action_type type);
static inline void primary_read(struct primary *p)
{
	primary_pend(p, PRIMARY_DO_READ);
}

void primary_pend_member(struct primary *p, unsigned slot, enum primary_action_type type);
/* End the primary, with a text for people. */
void primary_fail(struct primary *p, int error, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* primary_member.c: the states of one member. */
void primary_member_set(struct primary *p, unsigned slot, enum primary_member_state state);
/* End the work with the member, and fence it again after the pause. */
void primary_member_away(struct primary *p, unsigned slot, uint64_t pause_ms);
/* Like primary_member_away(), with a pause that doubles each time. */
void primary_member_back_off(struct primary *p, unsigned slot);
void primary_member_hold_off(struct primary *p, unsigned slot);
/* Adopt the configuration's slots: new, changed and removed members. Returns the members that
 * start again. */
mirror_mask primary_members_configure(struct primary *p);
/* Mark the member as unusable in its present form; only the operator can change this. */
void primary_member_useless(struct primary *p, unsigned slot, const char *trouble);
/* Mark as lost each member that must be reached and whose deadline has passed. */
void primary_members_tick(struct primary *p);
/* Begin to make the members equal if the ranges of all members of S are known; otherwise do
 * nothing. */
void primary_members_equalise(struct primary *p);

/* primary_swap.c: swaps of the record. */
/* Start the swap that is due. Returns false if no swap is due. */
bool primary_offer(struct primary *p);

/* primary.c: makes the transitions that follow from the present state; every event ends with this
 * call. */
void primary_settle(struct primary *p);

#endif
