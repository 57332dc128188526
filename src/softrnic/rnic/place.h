/* SPDX-License-Identifier: BSD-3-Clause */
/* place.h -- the functions by which the CPU writes to registered memory. */
#ifndef RNIC_PLACE_H
#define RNIC_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Copy len bytes into held memory. Eight bytes to an 8-byte aligned address become one store, so
 * that no reader sees half of them. Returns 0, or -EFAULT if the memory behind dst is gone
 * (truncated file, full file system); then part of it may have been written.
 */
int place(void *dst, const void *src, size_t len);

/*
 * To be called before a store to memory that can stall: load from each page. A store that waits for
 * a file system then finds the page present, and waits with the lock of that one mapping only
 * (since Linux 6.7). To read a missing page, the kernel would take the lock of all mappings of the
 * process, and every thread that calls mmap() would wait, too. Returns 0 or -EFAULT.
 */
int place_prepare(const void *dst, size_t len);

/* Compute the new value of a word whose value is `old`. Returns false if the operation does not
 * change the word. */
typedef bool place_modify_fn(const void *arg, uint64_t old, uint64_t *new_value);
/* Change the held, aligned word at dst in one indivisible step, also for the CPU's own atomics;
 * *old is the previous value. Returns 0 or -EFAULT. */
int place_atomic(uint64_t *dst, place_modify_fn *modify, const void *arg, uint64_t *old);

#endif
