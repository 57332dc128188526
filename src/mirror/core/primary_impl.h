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
/* so many PRIMARY_REFUSED_SPLIT in a row count; a read under way may cause one or two */
#define PRIMARY_SPLITS 4
/* after so many losses while it was made equal, the member's medium counts as bad, and no flush
 * waits for it */
#define PRIMARY_BREAKS      3
#define PRIMARY_HOLDOFF_MAX (300 * 1000)
#define PRIMARY_SWAP_MS     100 /* first pause after a swap without success */
#define PRIMARY_SWAP_MAX_MS 5000

static inline bool primary_is_over(const struct primary *p)
{
	return p->state == PRIMARY_IDLE || p->state >= PRIMARY_DEMOTED;
}

/* True from the swap to `serving` until the last flush has ended. */
static inline bool primary_is_serving(const struct primary *p)
{
	return p->state == PRIMARY_SERVING || p->state == PRIMARY_QUIESCING;
}

/* May members join? At the end they may if the last flushes wait for more copies or for a good
 * copy. */
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

static inline bool primary_in_s(const struct primary *p, unsigned slot)
{
	return p->rec.view.insync & MIRROR_BIT(slot);
}

static inline const char *primary_name(const struct primary *p, unsigned slot)
{
	return p->rec.config.members[slot].name;
}

/* Members of S that a swap has to exclude. */
mirror_mask primary_lost(const struct primary *p);
bool primary_all_equal(const struct primary *p);

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

/* primary_member.c */
void primary_member_set(struct primary *p, unsigned slot, enum primary_member_state state);
/* End the work with the member, and fence it again after the pause. */
void primary_member_away(struct primary *p, unsigned slot, uint64_t pause_ms);
/* The same, with a pause that doubles each time. */
void primary_member_back_off(struct primary *p, unsigned slot);
void primary_member_hold_off(struct primary *p, unsigned slot);
/* Take over the configuration's slots: new, changed and removed ones. Returns the members that
 * begin anew. */
mirror_mask primary_members_configure(struct primary *p);
/* The member cannot be used in its present form; only the operator can change that. */
void primary_member_useless(struct primary *p, unsigned slot, const char *trouble);
/* Mark members as lost that must be reached and whose time is up. */
void primary_members_tick(struct primary *p);
/* The ranges of all members are known: make them equal. */
void primary_members_equalise(struct primary *p);

/* primary_swap.c */
/* Start the swap that is due; false: no swap is due. */
bool primary_offer(struct primary *p);

/* primary.c: transitions that follow from the present state; ends each event. */
void primary_settle(struct primary *p);

#endif
