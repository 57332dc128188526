/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/staging.h"

#include <sys/mman.h>

#include "librpmirror.h"
#include "mirror/errmsg.h"

#define STAGING_ALIGN 64u
/* If no byte is in use, begin again with the first bytes: they are in the cache, and their pages
 * exist. */
#define STAGING_NEAR (64ull << 10)

int staging_init(struct staging *s, struct rpma_peer *peer, uint64_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*s = (struct staging){.size = size};
	if (p == MAP_FAILED)
		return errmsg_fail(RPMIRROR_E_NOMEM, "no memory for the data of flushes");
	s->base = p;
	madvise(p, size, MADV_DONTFORK);
	if (rpma_mr_reg(peer, p, size, RPMA_MR_USAGE_WRITE_SRC, &s->mr))
		return errmsg_fail(RPMIRROR_E_PROVIDER, "cannot register memory: %s",
				   rpma_err_last());
	return 0;
}

void staging_fini(struct staging *s)
{
	rpma_mr_dereg(&s->mr);
	if (s->base)
		munmap(s->base, s->size);
	s->base = NULL;
}

bool staging_take(struct staging *s, uint64_t len, uint64_t *at)
{
	uint64_t begin = s->end, left;

	len = (len + STAGING_ALIGN - 1) & ~(uint64_t)(STAGING_ALIGN - 1);
	left = s->size - begin % s->size;
	if (left < len) /* the piece would wrap around the end of the memory */
		begin += left;
	if (begin + len - s->begin > s->size)
		return false;
	*at = begin % s->size;
	s->end = begin + len;
	return true;
}

void staging_return(struct staging *s, uint64_t at)
{
	s->end -= (s->end - at) % s->size;
}

void staging_free(struct staging *s, uint64_t upto)
{
	if (upto > s->begin)
		s->begin = upto;
	if (s->begin == s->end && s->end % s->size >= STAGING_NEAR)
		s->begin = s->end += s->size - s->end % s->size;
}
