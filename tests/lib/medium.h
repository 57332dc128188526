/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * medium.h -- what of a file has not reached its medium yet. Its bytes do not answer that: a read
 * gets them from the page cache, and a direct read has the kernel write them back first.
 */
#ifndef TESTLIB_MEDIUM_H
#define TESTLIB_MEDIUM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * How many bytes of whole pages around [at, +len) of the file the page cache has and the medium has
 * not, as smaps shows them for a mapping of these pages; -1 if they cannot be mapped.
 */
long medium_dirty(int fd, off_t at, size_t len);

/*
 * Does the file, writable and not empty, get dirty and clean again here? Not on tmpfs, for one. It
 * is written back.
 */
bool medium_is_behind(int fd);

#endif
