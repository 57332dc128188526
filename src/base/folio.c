/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/folio.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"

#define FOLIO_MARKS_NS (60 * NSEC_PER_SEC)

#ifndef MADV_COLD /* Linux 5.4 */
#define MADV_COLD 20
#endif

static uint64_t folio_page(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

static size_t folio_bits_len(const struct folio_marks *marks)
{
	return (size_t)(marks->len / folio_page() / 8 + 1);
}

/* Only pages of it that are used take memory. A child of fork() has no such mapping. */
void folio_marks_init(struct folio_marks *marks, uint64_t len)
{
	void *p;

	*marks = (struct folio_marks){.len = len};
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

/* True: it is marked for the first time. */
static bool folio_mark(struct folio_marks *marks, uint64_t offset)
{
	uint64_t page = offset / folio_page();
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
	uint64_t page = folio_page();

	if (folio_mark(marks, offset))
		madvise((void *)(at & ~(page - 1)), page, MADV_COLD);
}

void folio_split(struct folio_marks *marks, const void *addr, uint64_t offset, uint64_t len)
{
	uintptr_t at = (uintptr_t)addr;
	uint64_t page = folio_page();

	if (!marks->bits || !len)
		return;
	folio_age(marks);
	folio_split_page(marks, at, offset);
	if ((at + len - 1) / page != at / page)
		folio_split_page(marks, at + len - 1, offset + len - 1);
}
