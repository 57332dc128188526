/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * allocs.h -- system requests of the code under test that fail on demand: memory, whose blocks are
 * also tracked, descriptors and threads.
 *
 * The linker redirects calls of malloc, socket and similar functions to this file, from librpma's
 * rooms and from the software RNIC, in any thread; calls of libc and cmocka themselves are not
 * affected.
 */
#ifndef FAULT_ALLOCS_H
#define FAULT_ALLOCS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum alloc_kind { ALLOC_MEMORY, ALLOC_DESCRIPTOR };

/*
 * From now on the nth request of that kind fails (1: the next); with for_good all later requests,
 * too.
 */
void allocs_arm(enum alloc_kind kind, unsigned int nth, bool for_good);
void allocs_disarm(void);
/* Has a request failed since allocs_arm()? */
bool allocs_failed(void);
/* The place of the failure: a file and an offset for addr2line. */
const char *allocs_failed_at(void);

/* The number of live blocks of one size (0: of any size). */
unsigned int allocs_live(size_t size);
/* The number of live blocks larger than `size`. */
unsigned int allocs_live_above(size_t size);
/* Print to stderr the blocks made after a call of allocs_mark(). */
void allocs_mark(void);
void allocs_print_since_mark(void);

/* pthread_create(3), for the library under test; see threads.c. */
__attribute__((visibility("default"))) int
fault_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);

/* Counts the call for the wrappers, and returns true if the call must fail. */
bool alloc_must_fail(enum alloc_kind kind, const void *caller);

#endif
