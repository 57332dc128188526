/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/crc32c.h"

#include <isa-l/crc.h>
#include <limits.h>

/*
 * ISA-L complements neither the seed nor the result, so its value is our running value. ISA-L's
 * length is an int.
 */
uint32_t crc32c_update(uint32_t crc, const void *buf, size_t len)
{
	const unsigned char *p = buf;

	while (len) {
		int n = len > INT_MAX / 2 ? INT_MAX / 2 : (int)len;

		/* The prototype lacks a const; the buffer is only read. */
		crc = crc32_iscsi((unsigned char *)p, n, crc);
		p += n;
		len -= (size_t)n;
	}
	return crc;
}
