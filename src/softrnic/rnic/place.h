/* SPDX-License-Identifier: BSD-3-Clause */
/* place.h -- the functions by which the CPU writes to registered memory. */
#ifndef RNIC_PLACE_H
#define RNIC_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Copy len bytes into held memory. No reader sees an aligned word of 8 bytes half written; on
 * processors other than x86-64 this holds only for a copy of one such word. Returns 0, or -EFAULT
 * if the memory at dst is gone (truncated file, full file system); a part of the bytes may have been
 * written then.
 */
int place(void *dst, const void *src, size_t len);

/*
 * Load from each page. Must be called before a store to memory that can stall. The page is then
 * present when the store is executed; if the store still waits for a file system, the kernel holds
 * only the lock of that one mapping (since Linux 6.7). If the page were missing, the kernel would
 * read it with the lock of all mappings of the process, and every thread that calls mmap() would
 * wait as well. Returns 0 or -EFAULT.
 */
int place_prepare(const void *dst, size_t len);

/* Compute the new value of a word whose value is `old`. Returns false if the operation does not
 * change the word. */
typedef bool place_modify_fn(const void *arg, uint64_t old, uint64_t *new_value);
/* Change the word at dst, which is aligned and held, in one step that is atomic also for the CPU's
 * own atomics. *old is the previous value. Returns 0 or -EFAULT. */
int place_atomic(uint64_t *dst, place_modify_fn *modify, const void *arg, uint64_t *old);

#endif
