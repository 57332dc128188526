/* SPDX-License-Identifier: BSD-3-Clause */
/* link.c -- functions that all links share. */
#include "softrnic/io/link.h"

#include <errno.h>

#include "base/safecopy.h"

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
