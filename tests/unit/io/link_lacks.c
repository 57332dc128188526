/* SPDX-License-Identifier: BSD-3-Clause */
#include "link_lacks.h"

#include <stddef.h>

/* These lists have each operation of a link as one word; the file does not compile if an operation
 * is missing. */
/* clang-format off */
#define LINK_OPS(X)                                                                                \
	X(watch_write) X(ready) X(recv) X(send) X(has_left) X(end_sending) X(error) X(has_ended)   \
	X(unacknowledged_ns) X(local) X(remote) X(segment) X(close) X(reset) X(forked)
#define LINK_CONNECTING(X)                                                                         \
	X(serves) X(route) X(same_host) X(bind) X(create) X(listen) X(accept) X(stop_listening)    \
	X(dial) X(dialed) X(watch)
#define LINK_POLLING(X)  X(report_read) X(wait_begin) X(wait_end)
#define LINK_IN_PLACE(X) X(pending) X(look) X(consume) X(look_for_end) X(has_room) X(lend) X(commit)
/* clang-format on */

#define LINK_COUNT(op)  +1
#define LINK_SIZE(LIST) ((0 LIST(LINK_COUNT)) * sizeof(void (*)(void)))
_Static_assert(sizeof(struct link_ops) - offsetof(struct link_ops, watch_write) ==
		       LINK_SIZE(LINK_OPS),
	       "LINK_OPS lists the operations of link_ops");
_Static_assert(sizeof(struct link_connecting) == LINK_SIZE(LINK_CONNECTING), "likewise");
_Static_assert(sizeof(struct link_polling) == LINK_SIZE(LINK_POLLING), "likewise");
_Static_assert(sizeof(struct link_in_place) == LINK_SIZE(LINK_IN_PLACE), "likewise");

const char *link_lacks(const struct link_ops *ops)
{
#define LINK_HAS(op)                                                                               \
	if (!part->op)                                                                             \
		return #op;
#define LINK_PART(type, from, LIST)                                                                \
	{                                                                                          \
		const struct type *part = from;                                                    \
		if (part) {                                                                        \
			LIST(LINK_HAS)                                                             \
		}                                                                                  \
	}
	LINK_PART(link_ops, ops, LINK_OPS)
	LINK_PART(link_connecting, ops->connecting, LINK_CONNECTING)
	LINK_PART(link_polling, ops->polling, LINK_POLLING)
	LINK_PART(link_in_place, ops->in_place, LINK_IN_PLACE)
	return NULL;
}
