/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/folio.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"

#define FOLIO_MARKS_NS (60 * NSEC_PER_SEC)

#ifndef MADV_COLD /* since Linux 5.4 */
#define MADV_COLD 20
#endif
#ifndef MADV_POPULATE_READ /* since Linux 5.14 */
#define MADV_POPULATE_READ 22
#endif

/* Number of pages that are split in one step. The buffers of a step are on the stack, possibly the
 * stack of a signal handler. */
#define FOLIO_WINDOW_PAGES 512u

static uint64_t folio_page(const struct folio_marks *marks)
{
	return (uint64_t)1 << marks->page_bits;
}

static size_t folio_bits_len(const struct folio_marks *marks)
{
	return (size_t)((marks->len >> marks->page_bits) / 8 + 1);
}

/*
 * The kernel allocates memory for the mapping page by page, at the first store to each page. A
 * child of fork() does not inherit the mapping.
 */
void folio_marks_init(struct folio_marks *marks, uint64_t len)
{
	void *p;

	*marks = (struct folio_marks){
		.len = len,
		.page_bits = (unsigned)__builtin_ctzl((unsigned long)sysconf(_SC_PAGESIZE))};
	p = mmap(NULL, folio_bits_len(marks), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return;
	madvise(p, folio_bits_len(marks), MADV_DONTFORK);
	marks->bits = p;
	marks->since_ns = clock_now_ns();
}

void folio_marks_fini(struct folio_marks *marks)
{
	if (marks->bits)
		munmap((void *)marks->bits, folio_bits_len(marks));
	marks->bits = NULL;
}

/* Returns true if this call set the mark. */
static bool folio_mark(struct folio_marks *marks, uint64_t offset)
{
	uint64_t page = offset >> marks->page_bits;
	unsigned char bit = (unsigned char)(1u << page % 8);

	if (offset >= marks->len || marks->bits[page / 8] & bit)
		return false;
	return !(atomic_fetch_or(&marks->bits[page / 8], bit) & bit);
}

static void folio_age(struct folio_marks *marks)
{
	uint64_t now_ns = clock_read_ns(CLOCK_MONOTONIC_COARSE),
		 since_ns = atomic_load(&marks->since_ns);

	if (now_ns > since_ns + FOLIO_MARKS_NS &&
	    atomic_compare_exchange_strong(&marks->since_ns, &since_ns, now_ns))
		madvise((void *)marks->bits, folio_bits_len(marks), MADV_DONTNEED);
}

static void folio_split_page(struct folio_marks *marks, uintptr_t at, uint64_t offset)
{
	uint64_t page = folio_page(marks);

	if (folio_mark(marks, offset))
		madvise((void *)(at & ~(page - 1)), page, MADV_COLD);
}

void folio_split(struct folio_marks *marks, const void *addr, uint64_t offset, uint64_t len)
{
	uintptr_t at = (uintptr_t)addr;

	if (!marks->bits || !len)
		return;
	folio_age(marks);
	folio_split_page(marks, at, offset);
	if ((at + len - 1) >> marks->page_bits != at >> marks->page_bits)
		folio_split_page(marks, at + len - 1, offset + len - 1);
}

/* ---- split all cached pages ---- */

/*
 * Put the cached pages of the window into the process's page table. Returns false if no page is
 * cached, or if the window cannot be read.
 */
static bool folio_bring_in(const struct folio_marks *marks, uint8_t *addr, unsigned pages)
{
	uint64_t page = folio_page(marks);
	unsigned char cached[FOLIO_WINDOW_PAGES];
	unsigned count = 0;

	if (mincore(addr, pages * page, cached))
		return false;
	for (unsigned i = 0; i < pages; i++) {
		unsigned first = i;

		while (i < pages && cached[i] & 1)
			i++;
		count += i - first;
		if (i > first &&
		    madvise(addr + first * page, (i - first) * page, MADV_POPULATE_READ))
			return false;
	}
	return count;
}

/* Try only even pages: a folio of more than one page begins at an even page. */
static void folio_split_window(const struct folio_marks *marks, uint8_t *addr, unsigned pages)
{
	uint64_t page = folio_page(marks);

	if (!folio_bring_in(marks, addr, pages))
		return;
	for (unsigned i = (uintptr_t)addr / page % 2; i < pages; i += 2)
		madvise(addr + i * page, page, MADV_COLD);
}

void folio_split_cached(struct folio_marks *marks, void *addr, uint64_t offset, uint64_t len)
{
	uint64_t pages = len >> marks->page_bits;

	if (!marks->bits)
		return;
	folio_age(marks);
	if (!folio_mark(marks, offset))
		return;
	for (uint64_t done = 0; done < pages; done += FOLIO_WINDOW_PAGES) {
		uint64_t left = pages - done;

		folio_split_window(marks, (uint8_t *)addr + done * folio_page(marks),
				   left < FOLIO_WINDOW_PAGES ? (unsigned)left : FOLIO_WINDOW_PAGES);
	}
}
