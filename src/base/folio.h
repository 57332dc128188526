/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * folio.h -- splits large folios of the page cache, so that a store to a mapped file makes only
 * the touched pages dirty.
 *
 * The page cache keeps a file that was written or read in large pieces in large folios (of up to 2
 * MiB on ext4 since Linux 6.16, on XFS since 5.18). A store through a mapping makes the whole
 * folio dirty, and the next write-back writes the whole folio: up to 2 MiB for a block of 4 KiB.
 * Declaring a single page of a clean folio as cold (MADV_COLD) splits the folio into pages. The
 * kernel does not split a folio that is dirty or busy, or that another process has mapped.
 *
 * A mark for each page makes the system call rare: one call for each page and minute. All marks
 * are cleared every minute, because a page that left the cache may come back in a large folio.
 */
#ifndef BASE_FOLIO_H
#define BASE_FOLIO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In a zeroed struct no page has a mark, and no page can get one. */
struct folio_marks {
	_Atomic unsigned char *bits; /* one bit for each page; NULL: out of memory */
	uint64_t len;                /* bytes of the part of the file that has marks */
	unsigned page_bits;          /* a page has 2 to the power of page_bits bytes */
	_Atomic uint64_t since_ns;
};

/* If no memory is left for the marks, folios are not split. */
void folio_marks_init(struct folio_marks *marks, uint64_t len);
void folio_marks_fini(struct folio_marks *marks);

/*
 * Call this when the pages of a shared mapping at addr, which begin at `offset` in the file, are
 * about to be stored to, or have been written back. The call splits the folios that reach beyond
 * these pages. A page can be split off only if it is in the process's page table, so the caller
 * loads from the first and the last page first. If another mapping has replaced this one by now,
 * the call does no harm. Thread-safe.
 */
void folio_split(struct folio_marks *marks, const void *addr, uint64_t offset, uint64_t len);

/*
 * Call this before stores that the library does not see. The call splits all cached folios, unless
 * the first page has a mark. addr is the address of a page. The call reads nothing from the
 * medium. Async-signal-safe.
 */
void folio_split_cached(struct folio_marks *marks, void *addr, uint64_t offset, uint64_t len);

#endif
