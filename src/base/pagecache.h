/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pagecache.h -- pages of a file that the kernel counts as clean, although the medium lacks them.
 *
 * A page that could not be written back stays in the page cache and counts as clean. Reads return
 * what should have been written. ext4's state for the page is wrong, too: it treats a merely
 * reserved extent as written. So later writes through this page succeed, and read as zeros after a
 * power cut. Both last until the page leaves the cache.
 *
 * Files without a medium or without a page cache (tmpfs, DAX) are left alone. Functions without a
 * struct error return 0 or -errno.
 */
#ifndef BASE_PAGECACHE_H
#define BASE_PAGECACHE_H

#include <stdint.h>

#include "base/error.h"

/*
 * Write back the dirty pages, then drop the clean ones, so that the next reads come from the
 * medium. *stay: the number of bytes that stay cached, because another process has them mapped or
 * reads them all the time; the call waits 100 ms for a page that is held. fd is path, open for
 * writing. If pages cannot be written, the call fails and drops them, because they were never
 * acknowledged. The next call does not report them again.
 */
int pagecache_evict(int fd, const char *path, uint64_t *stay, struct error *err);

/* The same for a file without another writer: pages that stay cached are written once more. */
int pagecache_drop(const char *path);
/* Write every cached page once more; no page is dropped. */
int pagecache_rewrite(const char *path);

/*
 * Returns the errno of a failed write-back of the file, or 0. It covers the time since the last
 * call with this descriptor, or since the descriptor was opened, whichever process started the
 * write-back. The call does not wait, except on a kernel without sync_file_range(). The kernel does
 * not report a failure again to descriptors that are opened after its first report.
 */
int pagecache_lost(int fd);

#endif
