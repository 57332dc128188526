/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * folio.h -- stores to a mapped file that make no more dirty than the pages they touch.
 *
 * The page cache keeps a file that was written or read in large pieces in large folios (of up to
 * 2 MiB on ext4 since Linux 6.16, on XFS since 5.18). A store through a mapping makes all of a
 * folio dirty, and the next write-back writes all of it: up to 2 MiB for a block of 4 KiB. A page
 * of a clean folio that is declared cold, alone, splits the folio into pages. The kernel does not
 * split a folio that is dirty, busy, or mapped by another process, too.
 *
 * Marks keep the system call rare: one for each page and minute. They are forgotten after that, as
 * a page that left the cache may come back in a large folio.
 */
#ifndef BASE_FOLIO_H
#define BASE_FOLIO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed: no page is marked, and no page will ever be. */
struct folio_marks {
	_Atomic unsigned char *bits; /* one bit for each page; NULL: out of memory */
	uint64_t len;                /* bytes of the part of the file that has marks */
	unsigned page_bits;          /* a page has 2 to the power of page_bits bytes */
	_Atomic uint64_t since_ns;
};

/* If there is no memory for the marks, folios are not split. */
void folio_marks_init(struct folio_marks *marks, uint64_t len);
void folio_marks_fini(struct folio_marks *marks);

/*
 * The pages of a shared mapping at addr, which are those of the file from `offset` on, are about to
 * be stored to, or have been written back: split the folios that reach beyond them. A page can be
 * split off only if it is in the process's page table, so the caller has loaded from the first and
 * the last page. The address range may have another use by now; the hint does no harm to it.
 * Thread-safe.
 */
void folio_split(struct folio_marks *marks, const void *addr, uint64_t offset, uint64_t len);

/*
 * The same before stores of which the library gets no notice: split all cached folios, unless the
 * first page has a mark. addr is the address of a page. Reads nothing from the medium.
 * Async-signal-safe.
 */
void folio_split_cached(struct folio_marks *marks, void *addr, uint64_t offset, uint64_t len);

#endif
