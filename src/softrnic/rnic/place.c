/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/rnic/place.h"

#include <stdint.h>
#include <string.h>

#include "base/safecopy.h"

int place(void *dst, const void *src, size_t len)
{
	uint64_t word;

	if (len != sizeof(word) || (uintptr_t)dst % sizeof(word) != 0)
		return safecopy(dst, src, len);
	memcpy(&word, src, sizeof(word));
	return safecopy_store64(dst, word);
}
