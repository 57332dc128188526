/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/core/promotion.h"

bool promotion_order_fits(const struct promotion_order *order, const struct mirror_view *view)
{
	const struct mirror_view *given = &order->view;

	return mirror_epoch_is_equal(given->epoch, view->epoch) &&
	       (order->kind != PROMOTION_FORCE ||
		(given->seq == view->seq && given->insync == view->insync &&
		 given->primary == view->primary));
}

enum promotion_kind promotion_order_permits(const struct promotion_order *order,
					    const struct mirror_view *view)
{
	return order->is_over || !promotion_order_fits(order, view) ? PROMOTION_NO_ORDER
								    : order->kind;
}

bool promotion_lacks_order(const struct mirror_view *after, bool may_follow,
			   enum promotion_kind order)
{
	if (after->forced)
		return order != PROMOTION_FORCE;
	return !may_follow && order == PROMOTION_NO_ORDER;
}
