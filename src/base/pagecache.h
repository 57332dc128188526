/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pagecache.h -- removes or rewrites cached pages of a file that the kernel counts as clean
 * although the medium lacks them.
 *
 * A page that could not be written back stays in the page cache and counts as clean. Reads return
 * the bytes that the medium lacks. ext4's state for the page is wrong, too: ext4 treats an extent
 * that was only reserved as written. So later writes through this page succeed, but the page reads
 * as zeros after a power cut. Both faults last until the page leaves the cache.
 *
 * The functions ignore files without a medium or without a page cache (tmpfs, DAX). Functions
 * without a struct error return 0 or -errno.
 */
#ifndef BASE_PAGECACHE_H
#define BASE_PAGECACHE_H

#include <stdint.h>

#include "base/error.h"

/*
 * Write back the dirty pages, then drop the clean pages, so that the next reads come from the
 * medium. The call waits up to 100 ms for pages that are in use. *stay: the number of bytes that
 * remain cached, because another process has mapped them or reads them all the time. fd is `path`,
 * open for writing. If pages cannot be written, the call fails and drops them, because they were
 * never acknowledged. The next call does not report them again.
 */
int pagecache_evict(int fd, const char *path, uint64_t *stay, struct error *err);

/* Like pagecache_evict(), for a file without another writer. Pages that remain cached are written
 * once more. */
int pagecache_drop(const char *path);
/* Write every cached page once more; no page is dropped. */
int pagecache_rewrite(const char *path);

/*
 * Returns the errno of a failed write-back of the file, or 0. The result covers the time since the
 * last call with this descriptor, or since the descriptor was opened, whichever process started
 * the write-back. The call does not wait, except on a kernel without sync_file_range(). The kernel
 * does not report a failure again to descriptors that are opened after its first report.
 */
int pagecache_lost(int fd);

#endif
