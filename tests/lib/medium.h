/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * medium.h -- which bytes of a file have not reached its medium yet. Reading the file does not show
 * that: a read gets bytes from the page cache, and before a direct read the kernel writes them
 * back.
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
 * Does the file, writable and not empty, get dirty and clean again here? Not on tmpfs, for example.
 * The file is written back.
 */
bool medium_is_behind(int fd);

#endif
