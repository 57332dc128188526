/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * medium.h -- the bytes of a file that have not reached its medium yet. Reading the file does not
 * show them: a read gets bytes from the page cache, and before a direct read the kernel writes them
 * back.
 */
#ifndef TESTLIB_MEDIUM_H
#define TESTLIB_MEDIUM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * The number of bytes, in whole pages around [at, +len) of the file, that the page cache has and
 * the medium lacks, as smaps shows them for a mapping of these pages; -1 if they cannot be mapped.
 */
long medium_dirty(int fd, off_t at, size_t len);

/*
 * Can this file, which is writable and not empty, become dirty and clean again on this system? On
 * tmpfs, for example, a file cannot. The call writes the file back.
 */
bool medium_is_behind(int fd);

#endif
