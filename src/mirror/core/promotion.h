/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * promotion.h -- an operator's order to promote a member. An order counts as long as its request
 * exists, and only for the view for which it was given. An order that failed or was interrupted has
 * no effect later.
 */
#ifndef MIRROR_CORE_PROMOTION_H
#define MIRROR_CORE_PROMOTION_H

#include <stdbool.h>

#include "mirror/core/types.h"

/* Each kind permits more than the one before. ORDER: a waiting process may take over from a primary
 * that has ended. FORCE: a process may take over even if its copy may lack acknowledged bytes, or
 * if a primary is alive. */
enum promotion_kind { PROMOTION_NO_ORDER, PROMOTION_ORDER, PROMOTION_FORCE };

struct promotion_order {
	enum promotion_kind kind;
	/* the request was answered or withdrawn, or its time limit has passed */
	bool is_over;
	struct mirror_view view; /* the view that the operator has seen */
};

/* Returns true if the set is unchanged since the order was given. Without force it is sufficient
 * that no other epoch has begun; the rules of a promotion check the rest. */
bool promotion_order_fits(const struct promotion_order *order, const struct mirror_view *view);
/* Returns the kind of promotion that the order permits in that view. */
enum promotion_kind promotion_order_permits(const struct promotion_order *order,
					    const struct mirror_view *view);
/*
 * Returns true if the swap of a promotion to the view `after` requires an order, and there is none.
 * Call this for each swap that is sent, because the order may have ended since the process was
 * permitted to map. may_follow: the process needs no order, because no other member is primary, the
 * set has `auto = yes`, or the process was started to be primary. order: the kind permitted in the
 * view that the swap compares with.
 */
bool promotion_lacks_order(const struct mirror_view *after, bool may_follow,
			   enum promotion_kind order);

#endif
