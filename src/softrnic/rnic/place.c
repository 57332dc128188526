/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/rnic/place.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/safecopy.h"

int place(void *dst, const void *src, size_t len)
{
	uint64_t word;

	if (len != sizeof(word) || (uintptr_t)dst % sizeof(word) != 0)
		return safecopy(dst, src, len);
	memcpy(&word, src, sizeof(word));
	return safecopy_store64(dst, word);
}

int place_prepare(const void *dst, size_t len)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t at = (uintptr_t)dst, end = at + len;
	int err = 0;

	for (; !err && at < end; at = (at + page) & ~(page - 1))
		err = safecopy_probe((const void *)at);
	return err;
}

int place_atomic(uint64_t *dst, place_modify_fn *modify, const void *arg, uint64_t *old)
{
	uint64_t seen, now, new_value;
	int err = safecopy_load64(&seen, dst);

	/* The loop repeats only if another thread has changed the word meanwhile. */
	while (!err && modify(arg, seen, &new_value)) {
		now = seen;
		err = safecopy_cmpxchg64(dst, &now, new_value);
		if (now == seen)
			break;
		seen = now;
	}
	*old = seen;
	return err;
}
