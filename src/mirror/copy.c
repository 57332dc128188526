/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <libpmem.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/filemap.h"
#include "base/pagecache.h"
#include "base/word.h"
#include "librpmirror.h"
#include "mirror/errmsg.h"

#define COPY_PAGE 4096u

static int copy_check_size(const struct copy *copy)
{
	struct stat st;

	if (fstat(copy->fd, &st))
		return errmsg_fail(RPMIRROR_E_PROVIDER, "cannot get the size of the copy: %s",
				   strerror(errno));
	if ((uint64_t)st.st_size < copy->size)
		return errmsg_fail(
			RPMIRROR_E_PROVIDER,
			"the copy has %llu bytes and the set %llu: the copy was truncated",
			(unsigned long long)st.st_size, (unsigned long long)copy->size);
	return 0;
}

static int copy_map_shared(struct copy *copy)
{
	void *p = filemap(copy->fd, copy->size, PROT_READ | PROT_WRITE);
	char why[128];

	if (p == MAP_FAILED)
		return errmsg_fail(RPMIRROR_E_PROVIDER, "cannot map the copy: %s", strerror(errno));
	copy->shared = p;
	madvise(p, copy->size, MADV_DONTFORK);
	if (rpma_utils_get_durability(p, copy->size, &copy->durability, why, sizeof(why)))
		return errmsg_fail(RPMIRROR_E_PROVIDER,
				   "cannot find out what medium the copy is on: %s",
				   rpma_err_last());
	if (copy_has_cache(copy))
		folio_marks_init(&copy->stored, copy->size);
	return 0;
}

int copy_open(struct copy *copy, int fd, int sentinel, uint64_t size)
{
	int rc;

	*copy = (struct copy){.fd = fd, .own = ownfd_of(fd), .sentinel = sentinel, .size = size};
	commit_init(&copy->commit);
	rc = copy_check_size(copy);
	if (!rc)
		rc = copy_map_shared(copy);
	if (rc)
		copy_close(copy);
	return rc;
}

int copy_open_readonly(struct copy *copy, int fd, uint64_t size)
{
	int rc;

	*copy = (struct copy){.fd = fd, .sentinel = -1, .size = size};
	rc = copy_check_size(copy);
	if (rc)
		copy_close(copy);
	return rc;
}

void copy_close(struct copy *copy)
{
	if (copy->shared)
		munmap(copy->shared, copy->size);
	folio_marks_fini(&copy->stored);
	if (copy->fd >= 0 && !ownfd_is_lost(&copy->own))
		close(copy->fd);
	if (copy->sentinel >= 0)
		close(copy->sentinel);
	commit_fini(&copy->commit);
	copy->shared = NULL;
	copy->fd = copy->sentinel = -1;
}

bool copy_knows_losses(const struct copy *copy, int *error)
{
	bool is_known = !copy_has_cache(copy) || copy->sentinel >= 0;

	*error = is_known && copy_has_cache(copy) ? pagecache_lost(copy->sentinel) : 0;
	return is_known;
}

/* Write back only the span of the ranges: the application may have changed many other pages. */
static int copy_persist_span(const struct copy *copy, const struct mirror_range *v, uint32_t n)
{
	uint64_t from = n ? v[0].offset / COPY_PAGE * COPY_PAGE : 0;
	uint64_t to = n ? v[n - 1].offset + v[n - 1].len : 0;

	return msync(copy->shared + from, to - from, MS_SYNC) ? -errno : 0;
}

/*
 * Use no flag of sync_file_range() that waits: such a wait would consume the kernel's only report
 * of a failure, and fdatasync() would succeed.
 */
void copy_write_out(const struct copy *copy, const struct mirror_range *v, uint32_t n)
{
	uint64_t from = v[0].offset, to = v[n - 1].offset + v[n - 1].len;

	if (copy_has_cache(copy) && !copy->is_direct && !ownfd_is_lost(&copy->own))
		sync_file_range(copy->fd, (off_t)from, (off_t)(to - from), SYNC_FILE_RANGE_WRITE);
}

static int copy_sync(void *arg)
{
	const struct copy *copy = arg;

	if (fdatasync(copy->fd))
		return -errno;
	/* the descriptor was exchanged, so another file was synced */
	return ownfd_is_lost(&copy->own) ? -EBADF : 0;
}

int copy_persist(struct copy *copy, const struct mirror_range *v, uint32_t n)
{
	switch (copy->durability) {
	case RPMA_DURABILITY_VOLATILE:
		return 0;
	case RPMA_DURABILITY_DAX:
		for (uint32_t i = 0; i < n; i++)
			pmem_flush(copy->shared + v[i].offset, v[i].len);
		pmem_drain();
		return 0;
	default:
		if (copy->is_direct)
			return copy_persist_span(copy, v, n);
		/* one write-back for all ranges, and for flushes of other threads: only flushes
		 * write to this file */
		return commit_join(&copy->commit, copy_sync, copy);
	}
}

bool copy_has_cache(const struct copy *copy)
{
	return copy->durability != RPMA_DURABILITY_VOLATILE &&
	       copy->durability != RPMA_DURABILITY_DAX;
}

bool copy_persists_all(const struct copy *copy)
{
	return copy_has_cache(copy) && !copy->is_direct;
}

bool copy_shares_errors(const struct copy *copy)
{
	return copy_has_cache(copy) && copy->is_direct;
}

/* Copy `len` bytes into a word, from byte `skip` of the word on. A resync that reads the word
 * meanwhile reads it again later. */
static void copy_part(uint8_t *dst, const uint8_t *word, unsigned skip, unsigned len)
{
	uint64_t value = __atomic_load_n((const uint64_t *)(const void *)word, __ATOMIC_RELAXED);

	for (unsigned i = 0; i < len; i++)
		__atomic_store_n(&dst[i], ((const uint8_t *)&value)[skip + i], __ATOMIC_RELAXED);
}

static inline void copy_word(uint64_t *dst, const uint64_t *src)
{
	__atomic_store_n(dst, __atomic_load_n(src, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

/* Copy n words. Compilers do not merge the accesses of a loop over atomics. */
static void copy_aligned(uint64_t *dst, const uint64_t *src, uint64_t n)
{
	for (; n >= 4; n -= 4, dst += 4, src += 4) {
		copy_word(dst, src);
		copy_word(dst + 1, src + 1);
		copy_word(dst + 2, src + 2);
		copy_word(dst + 3, src + 3);
	}
	for (; n; n--)
		copy_word(dst++, src++);
}

void copy_words(uint8_t *dst, const uint8_t *src, uint64_t len)
{
	unsigned skip = (uintptr_t)src % WORD_LEN;

	if (skip) {
		unsigned part = WORD_LEN - skip < len ? WORD_LEN - skip : (unsigned)len;

		copy_part(dst, src - skip, skip, part);
		dst += part;
		src += part;
		len -= part;
	}
	copy_aligned((uint64_t *)(void *)dst, (const uint64_t *)(const void *)src, len / WORD_LEN);
	if (len % WORD_LEN)
		copy_part(dst + len / WORD_LEN * WORD_LEN, src + len / WORD_LEN * WORD_LEN, 0,
			  (unsigned)(len % WORD_LEN));
}

/* Load the pages first, because folio_split() needs them in the page table. */
void copy_put(struct copy *copy, uint64_t offset, const uint8_t *src, uint64_t len)
{
	uint8_t *dst = copy->shared + offset;

	(void)*(volatile uint8_t *)dst;
	(void)*(volatile uint8_t *)(dst + len - 1);
	folio_split(&copy->stored, dst, offset, len);
	copy_words(dst, src, len);
}
