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
 * Before a store to memory that can stall: load from each page of it. A store that waits for a file
 * system then finds the page there, and waits with the lock of that one mapping (since Linux 6.7);
 * for a page that has to be read first the kernel takes the lock of all of the process's mappings,
 * and every thread that calls mmap() waits as well. 0 or -EFAULT.
 */
int place_prepare(const void *dst, size_t len);

/*
 * What an atomic operation leaves where `old` was; false: it changes nothing.
 */
typedef bool place_modify_fn(const void *arg, uint64_t old, uint64_t *new_value);
/*
 * Change the held, aligned word at dst in one indivisible step, also with regard to the CPU's
 * own atomics; *old is what was there. 0 or -EFAULT.
 */
int place_atomic(uint64_t *dst, place_modify_fn *modify, const void *arg, uint64_t *old);

#endif
