/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pagecache.h -- pages of a file that the kernel calls clean, and that its medium does not have.
 *
 * A page that could not be written back stays in the page cache, is called clean, and reads as what
 * should have been written. What ext4 remembers with it is wrong, too: it takes an extent that was
 * reserved for written, so later writes through this page succeed, and read as zeros after a power
 * cut. Both last until the page leaves the cache.
 *
 * Files without a medium or without a page cache (tmpfs, DAX) are left alone. Functions without a
 * struct error return 0 or -errno.
 */
#ifndef BASE_PAGECACHE_H
#define BASE_PAGECACHE_H

#include <stdint.h>

#include "base/error.h"

/*
 * What is dirty is written, and what is clean then goes, so that what is read next comes from the
 * medium. *stay: so many bytes stay, because another process has them mapped, or reads them at this
 * moment. fd, of that path, is open for writing. What cannot be written is lost, as it was not
 * acknowledged: an error, for which the next call knows nothing.
 */
int pagecache_evict(int fd, const char *path, uint64_t *stay, struct error *err);

/* The same for a file to which nobody writes meanwhile: what stays is written once more. */
int pagecache_drop(const char *path);
/* So is every cached page, and none goes. */
int pagecache_rewrite(const char *path);

/* 0, or the errno of a write-back of the file that failed since this was asked last with this
 * descriptor, or since it was opened: whoever asked for it. It waits for nothing, but where the
 * kernel has no sync_file_range(). A failure that was reported to somebody is not reported to
 * descriptors that are opened later. */
int pagecache_lost(int fd);

#endif
