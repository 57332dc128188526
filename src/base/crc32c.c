/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/crc32c.h"

#include <isa-l/crc.h>
#include <limits.h>

/*
 * crc32_iscsi() of ISA-L complements neither its seed nor its result, so both are running values.
 * Its length is an int, so a long buffer takes several calls.
 */
uint32_t crc32c_update(uint32_t crc, const void *buf, size_t len)
{
	const unsigned char *p = buf;

	while (len) {
		int n = len > INT_MAX / 2 ? INT_MAX / 2 : (int)len;

		/* The cast drops const: ISA-L's prototype lacks the const, but ISA-L only reads
		 * the buffer. */
		crc = crc32_iscsi((unsigned char *)p, n, crc);
		p += n;
		len -= (size_t)n;
	}
	return crc;
}
