/* SPDX-License-Identifier: BSD-3-Clause */
/* unit.h -- cmocka with the headers that it needs, and random numbers from a seed. */
#ifndef TESTLIB_UNIT_H
#define TESTLIB_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* xorshift64*: it gives the same numbers on every machine, so that a failure can be repeated. */
static inline uint64_t test_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dull;
}

#endif
