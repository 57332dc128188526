/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "base/digest.h"
#include "base/safecopy.h"
#include "softrnic/persist/pool.h"
#include "softrnic/persist/reader.h"
#include "softrnic/persist/writeback.h"

struct readback {
	struct digest sum;
	enum vext_digest_source source; /* the weakest source so far */
};

int readback_begin(struct persist_job *job)
{
	uint32_t alg = vext_digest_pick(job->alg, job->len);
	struct readback *rb;

	if (job->len > UINT32_MAX || !vext_digest_is_alg(alg))
		return -EINVAL;
	rb = aligned_alloc(_Alignof(struct readback), sizeof(*rb));
	if (!rb)
		return -ENOMEM;
	rb->source = VEXT_DIGEST_FROM_DAX;
	digest_init(&rb->sum, alg == VEXT_DIGEST_BLAKE2B);
	job->readback = rb;
	return 0;
}

static void readback_add(struct readback *rb, const void *bytes, size_t len,
			 enum vext_digest_source source)
{
	digest_update(&rb->sum, bytes, len);
	if (source < rb->source)
		rb->source = source;
}

/* Copy through the mapping. Loads from a page that is gone or unreadable fault, and the fault is
 * caught. */
static int readback_copy(void *buf, const struct range *r, uintptr_t start, uintptr_t end,
			 struct persist_job *job)
{
	int ret, cut;

	if (!pool_touch_begin(job))
		return -ECANCELED;
	ret = safecopy(buf, (const void *)start, end - start);
	pool_touch_end(job);
	cut = writeback_check_end(r, end, job);
	if (cut)
		return cut;
	return ret && r->cls == VEXT_DURABILITY_FILE ? -EIO : ret;
}

static enum vext_digest_source readback_copy_source(const struct range *r)
{
	static const enum vext_digest_source source[] = {
		[VEXT_DURABILITY_VOLATILE] = VEXT_DIGEST_FROM_MEMORY,
		[VEXT_DURABILITY_FILE] = VEXT_DIGEST_FROM_CACHE,
		[VEXT_DURABILITY_DAX] = VEXT_DIGEST_FROM_DAX,
	};

	return source[r->cls];
}

int readback_slice(struct persist_job *job, const struct range *r, uintptr_t start, uintptr_t end,
		   struct reader **reader)
{
	enum vext_digest_source source = readback_copy_source(r);
	const void *bytes;
	int ret = READER_NO_WAY;

	if (!*reader)
		*reader = reader_new();
	if (!*reader)
		return -ENOMEM;
	bytes = reader_buffer(*reader);
	if (r->cls == VEXT_DURABILITY_FILE)
		ret = reader_read(*reader, r->file, r->offset + (start - r->start), end - start,
				  &bytes, &source);
	if (ret == READER_NO_WAY)
		ret = readback_copy(reader_buffer(*reader), r, start, end, job);
	if (!ret)
		readback_add(job->readback, bytes, end - start, source);
	return ret;
}

int readback_inline(struct persist_job *job)
{
	uintptr_t pos = (uintptr_t)job->addr, end = pos + job->len;
	unsigned char buf[4096];
	int ret = 0;

	while (!ret && pos < end) {
		const struct range *r = region_range_at(job->region, pos);
		uintptr_t next = r->end < end ? r->end : end;

		if (next - pos > sizeof(buf))
			next = pos + sizeof(buf);
		ret = readback_copy(buf, r, pos, next, NULL);
		if (!ret)
			readback_add(job->readback, buf, next - pos, readback_copy_source(r));
		pos = next;
	}
	return ret;
}

void readback_end(struct persist_job *job, int status)
{
	struct readback *rb = job->readback;
	struct vext_digest *digest = job->digest;

	if (!rb)
		return;
	if (!status) {
		*digest = (struct vext_digest){
			.alg = vext_digest_pick(job->alg, job->len),
			.source = job->len ? rb->source : VEXT_DIGEST_FROM_MEMORY,
			.durability = persist_region_class(job->region, job->addr, job->len),
			.len = (uint32_t)job->len,
		};
		digest_final(&rb->sum, digest->bytes);
	}
	job->readback = NULL;
	free(rb);
}
