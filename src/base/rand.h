/* SPDX-License-Identifier: BSD-3-Clause */
/* rand.h -- unpredictable numbers (getrandom(2), buffered), for STags and nonces. */
#ifndef BASE_RAND_H
#define BASE_RAND_H

#include <stddef.h>
#include <stdint.h>

/* Thread-safe and fork-safe: a child never repeats numbers of its parent. */
void rand_bytes(void *buf, size_t len);

static inline uint32_t rand_u32(void)
{
	uint32_t v;

	rand_bytes(&v, sizeof(v));
	return v;
}

#endif
