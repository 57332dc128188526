/* SPDX-License-Identifier: BSD-3-Clause */
/* place.h -- the one function by which the CPU writes registered memory. */
#ifndef RNIC_PLACE_H
#define RNIC_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Copy len bytes into held memory. Eight bytes to an 8-byte aligned address become one
 * store, so that no reader ever sees half of them. 0, or -EFAULT when the memory behind
 * dst is gone (truncated file, full file system); part of it may have been written.
 */
int place(void *dst, const void *src, size_t len);

/*
 * Call it before a store to memory that can stall: it loads from each page. A store that waits for
 * a file system then finds the page present, and waits with the lock of that one mapping (since
 * Linux 6.7). For a page that has to be read first the kernel takes the lock of all mappings of the
 * process, so that every thread that calls mmap() waits, too. 0 or -EFAULT.
 */
int place_prepare(const void *dst, size_t len);

/*
 * The new value of a word whose value is `old`. Returns false if the operation does not change the
 * word.
 */
typedef bool place_modify_fn(const void *arg, uint64_t old, uint64_t *new_value);
/*
 * Change the held, aligned word at dst in one indivisible step, also with regard to the CPU's
 * own atomics; *old is what was there. 0 or -EFAULT.
 */
int place_atomic(uint64_t *dst, place_modify_fn *modify, const void *arg, uint64_t *old);

#endif
