/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * held_malloc.h -- malloc(3) and related functions with one lock for the process, which a thread
 * can hold. A call by the holder then ends the process; calls by other threads wait.
 */
#ifndef TESTS_MIRROR_HELD_MALLOC_H
#define TESTS_MIRROR_HELD_MALLOC_H

#include <stdbool.h>

/* Returns false if this build's malloc cannot be replaced. */
bool malloc_hold(void);
void malloc_release(void);

#endif
