/* SPDX-License-Identifier: BSD-3-Clause */
/* link.c -- what every link would do alike. */
#include "softrnic/io/link.h"

#include <errno.h>
#include <stddef.h>

#include "base/safecopy.h"

size_t link_iov_len(const struct iovec *iov, int n)
{
	size_t sum = 0;

	for (int i = 0; i < n; i++)
		sum += iov[i].iov_len;
	return sum;
}

void link_iov_shorten(struct iovec *iov, int n, size_t len)
{
	for (int i = 0; i < n; i++) {
		if (iov[i].iov_len > len)
			iov[i].iov_len = len;
		len -= iov[i].iov_len;
	}
}

ssize_t link_iov_put(const struct iovec *iov, int n, const void *bytes, size_t len)
{
	size_t done = 0;

	for (int i = 0; i < n && done < len; i++) {
		size_t part = iov[i].iov_len < len - done ? iov[i].iov_len : len - done;

		if (safecopy(iov[i].iov_base, (const uint8_t *)bytes + done, part))
			return done ? (ssize_t)done : -EFAULT;
		done += part;
	}
	return (ssize_t)done;
}

ssize_t link_iov_get(const struct iovec *iov, int n, void *buf, size_t size)
{
	size_t done = 0;

	for (int i = 0; i < n && done < size; i++) {
		size_t part = iov[i].iov_len < size - done ? iov[i].iov_len : size - done;

		if (safecopy((uint8_t *)buf + done, iov[i].iov_base, part))
			return done ? (ssize_t)done : -EFAULT;
		done += part;
	}
	return (ssize_t)done;
}

/* By their lists, so that a further operation is one word here: it does not compile without. */
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
