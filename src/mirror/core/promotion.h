/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * promotion.h -- an operator's order to promote a member: it counts while its request lives, and
 * for the view that it was given for. What has failed or was interrupted has no effect later.
 */
#ifndef MIRROR_CORE_PROMOTION_H
#define MIRROR_CORE_PROMOTION_H

#include <stdbool.h>

#include "mirror/core/types.h"

/* A later one permits more. ORDER: a process that waits may follow a primary that has ended. FORCE:
 * the copy may lack something, or a primary live. */
enum promotion_kind { PROMOTION_NO_ORDER, PROMOTION_ORDER, PROMOTION_FORCE };

struct promotion_order {
	enum promotion_kind kind;
	bool is_over;            /* its request was answered or withdrawn, or its time is over */
	struct mirror_view view; /* that the operator has looked at */
};

/* The set has not changed since the order was given. Without force it is enough that no other epoch
 * has begun: the rules of a promotion hold for the rest. */
bool promotion_order_fits(const struct promotion_order *order, const struct mirror_view *view);
/* What the order permits in that view. */
enum promotion_kind promotion_order_permits(const struct promotion_order *order,
					    const struct mirror_view *view);
/*
 * The swap of a promotion to the view `after` needs an order that there is not. Asked for each swap
 * that is sent, as the order may have ended since the process was let in. may_follow: the process
 * needs none, as no other member is primary, the set says `auto = yes`, or the process was started
 * to be primary. `order`: what is permitted in the view that the swap compares with.
 */
bool promotion_lacks_order(const struct mirror_view *after, bool may_follow,
			   enum promotion_kind order);

#endif
