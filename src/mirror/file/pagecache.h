/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pagecache.h -- pages of a file that the kernel calls clean, and that its medium does not have.
 *
 * A page that could not be written back stays in the page cache, is called clean, and reads as what
 * should have been written. What ext4 remembers with it is wrong, too: it takes an extent that was
 * reserved for written, so later writes through this page succeed, and read as zeros after a power
 * cut. Both last until the page leaves the cache.
 *
 * Nobody may write to the file meanwhile. Files without a medium or without a page cache (tmpfs,
 * DAX) are left alone. Functions return 0 or -errno.
 */
#ifndef MIRROR_FILE_PAGECACHE_H
#define MIRROR_FILE_PAGECACHE_H

/* Every cached page is written to the medium once more. */
int pagecache_rewrite(const char *path);
/* Pages go, so that what is read next comes from the medium; those that stay, because they are
 * mapped, are written once more. */
int pagecache_drop(const char *path);

#endif
