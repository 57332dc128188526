/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * held_malloc.h -- replaces malloc(3) and related functions by ones that share one lock, which a
 * thread can hold. If the holder itself calls one of them, the process ends; calls by other threads
 * wait.
 */
#ifndef TESTS_MIRROR_HELD_MALLOC_H
#define TESTS_MIRROR_HELD_MALLOC_H

#include <stdbool.h>

/* Take the lock. Returns false if this build's malloc() cannot be replaced. */
bool malloc_hold(void);
void malloc_release(void);

#endif
