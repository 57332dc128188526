/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * allocs.h -- let requests for memory, descriptors and threads fail on demand in the code under
 * test. Memory blocks are also tracked.
 *
 * The linker redirects calls of malloc, socket and similar functions to this file, in any thread of
 * librpma and the software RNIC. Calls that libc and cmocka make are not affected.
 */
#ifndef FAULT_ALLOCS_H
#define FAULT_ALLOCS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum alloc_kind { ALLOC_MEMORY, ALLOC_DESCRIPTOR };

/* Let the nth request of this kind from now fail (1: the next one). If for_good is set, all later
 * requests fail, too. */
void allocs_arm(enum alloc_kind kind, unsigned int nth, bool for_good);
void allocs_disarm(void);
/* Returns true if a request has failed since allocs_arm(). */
bool allocs_failed(void);
/* Returns where the request failed: a file and an offset for addr2line. */
const char *allocs_failed_at(void);

/* Returns the number of live blocks of this size (0: of any size). */
unsigned int allocs_live(size_t size);
/* Returns the number of live blocks larger than `size`. */
unsigned int allocs_live_above(size_t size);
/* Print to stderr the blocks that were allocated after allocs_mark() and are still live. */
void allocs_mark(void);
void allocs_print_since_mark(void);

/* Replaces pthread_create(3) in the library under test; threads.c explains why. */
__attribute__((visibility("default"))) int
fault_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);

/* Count the request. Returns true if the wrapper must make it fail. */
bool alloc_must_fail(enum alloc_kind kind, const void *caller);

#endif
