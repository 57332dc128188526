/* SPDX-License-Identifier: BSD-3-Clause */
/* place.h -- the one function by which the CPU writes registered memory. */
#ifndef RNIC_PLACE_H
#define RNIC_PLACE_H

#include <stddef.h>

/*
 * Copy len bytes into held memory. Eight bytes to an 8-byte aligned address become one
 * store, so that no reader ever sees half of them. 0, or -EFAULT when the memory behind
 * dst is gone (truncated file, full file system); part of it may have been written.
 */
int place(void *dst, const void *src, size_t len);

#endif
