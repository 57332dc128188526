/* SPDX-License-Identifier: BSD-3-Clause */
/* primary_order.c -- carries out an operator's orders about one member. */
#include <errno.h>

#include "mirror/core/primary_impl.h"

static bool primary_order_may(const struct primary *p, uint8_t slot)
{
	return p->state == PRIMARY_SERVING && slot < MIRROR_MEMBERS_MAX && slot != p->slot &&
	       p->members[slot].state != PRIMARY_MEMBER_NONE;
}

int primary_exclude(struct primary *p, uint8_t slot, const char **why)
{
	mirror_mask bit = MIRROR_BIT(slot);
	struct primary_member *m;

	*why = "the set has no such other member, or is not served";
	if (!primary_order_may(p, slot))
		return -EINVAL;
	m = &p->members[slot];
	if (primary_in_s(p, slot) && !view_may_shrink(&p->rec, primary_lost(p) | bit, why))
		return -EBUSY;
	m->kept_out = true;
	m->lost = primary_in_s(p, slot);
	primary_member_away(p, slot, 0);
	primary_settle(p);
	return 0;
}

void primary_readmit(struct primary *p, uint8_t slot)
{
	struct primary_member *m = &p->members[slot];

	if (!primary_order_may(p, slot))
		return;
	m->kept_out = false;
	m->holdoff_ms = 0;
	m->backoff_ms = 0;
	if (m->state == PRIMARY_MEMBER_AWAY)
		m->retry_ms = p->now;
	primary_settle(p);
}
