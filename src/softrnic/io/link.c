/* SPDX-License-Identifier: BSD-3-Clause */
/* link.c -- what every link would do alike. */
#include "softrnic/io/link.h"

#include <errno.h>

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

/* The memory may vanish (safecopy.h): what comes before it is received. */
static ssize_t link_scatter(const uint8_t *bytes, const struct iovec *iov, int n)
{
	size_t done = 0;

	for (int i = 0; i < n; i++) {
		if (safecopy(iov[i].iov_base, bytes + done, iov[i].iov_len))
			return done ? (ssize_t)done : -EFAULT;
		done += iov[i].iov_len;
	}
	return (ssize_t)done;
}

ssize_t link_recv(struct link *l, struct iovec *iov, int n)
{
	const void *bytes;
	ssize_t len;

	if (l->ops->recv)
		return l->ops->recv(l, iov, n);
	len = l->ops->look(l, &bytes);
	if (len <= 0)
		return len;
	link_iov_shorten(iov, n, (size_t)len);
	len = link_scatter(bytes, iov, n);
	if (len > 0)
		l->ops->consume(l, (size_t)len);
	return len;
}
