/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * medium.h -- find bytes of a file that have not reached its medium yet. Reading the file does not
 * reveal them: a read returns the bytes of the page cache, and the kernel writes dirty pages back
 * before a direct read.
 */
#ifndef TESTLIB_MEDIUM_H
#define TESTLIB_MEDIUM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Returns how many bytes in the pages around [at, +len) of the file are dirty: in the page cache
 * but not on the medium. smaps of a mapping of these pages shows the number. Returns -1 if the
 * pages cannot be mapped.
 */
long medium_dirty(int fd, off_t at, size_t len);

/*
 * Returns true if this file can become dirty and clean again, which is impossible on tmpfs, for
 * example. The file must be writable and not empty. The call writes the file back.
 */
bool medium_is_behind(int fd);

#endif
