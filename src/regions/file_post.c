/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations are collected in a batch, and leave as a post. */
#include "base/clock.h"
#include "regions/file_impl.h"

/* One more post completes. */
static int file_wait_one(struct rpma_file *f)
{
	return file_wait(f, &f->completed, f->completed + 1, CLOCK_NEVER);
}

int file_reserve(struct rpma_file *f, unsigned operations)
{
	int rc = 0;

	while (!rc &&
	       (f->operations + operations > FILE_DEPTH || f->posted - f->completed == FILE_POSTS))
		rc = file_wait_one(f);
	return rc;
}

/* Where a buffer of that length begins: in one piece, so at the ring's beginning if it does not fit
 * before the end. */
static uint64_t file_ring_begin(const struct rpma_file *f, size_t len)
{
	size_t at = f->ring_head % FILE_RING;

	return at + len <= FILE_RING ? f->ring_head : f->ring_head + (FILE_RING - at);
}

int file_ring_reserve(struct rpma_file *f, size_t len)
{
	int rc = 0;

	while (!rc && file_ring_begin(f, len) + len - f->ring_tail > FILE_RING) {
		if (f->posted == f->completed)
			rc = file_post_collected(f);
		if (!rc)
			rc = file_wait_one(f);
	}
	return rc;
}

size_t file_ring_take(struct rpma_file *f, size_t len)
{
	uint64_t begin = file_ring_begin(f, len);

	f->ring_head = begin + len;
	return begin % FILE_RING;
}

int file_close_run(struct rpma_file *f, int flags)
{
	int rc;

	if (!f->run.len)
		return 0;
	rc = rpma_batch_write(f->batch, f->s.remote, f->run.offset, f->ring_mr, f->run.at,
			      f->run.len, flags, NULL);
	if (rc)
		return file_post_failed(f, "write to", rc);
	f->run.len = 0;
	f->collected++;
	f->operations++;
	return 0;
}

struct file_post *file_post_new(struct rpma_file *f)
{
	struct file_post *post = &f->posts[f->posted % FILE_POSTS];

	post->ticket = 0;
	post->range_count = 0;
	post->read_to = NULL;
	return post;
}

/* direct: operations that were posted without the batch. */
int file_post(struct rpma_file *f, unsigned direct)
{
	struct file_post *post = &f->posts[f->posted % FILE_POSTS];
	int rc = f->collected ? rpma_batch_post(f->batch) : 0;

	if (rc)
		return file_post_failed(f, "write to", rc);
	post->operations = f->collected + direct;
	post->ring_end = f->ring_head;
	f->operations += direct;
	f->collected = 0;
	f->unposted = 0;
	f->posted++;
	return 0;
}

int file_post_collected(struct rpma_file *f)
{
	int rc;

	if (!f->unposted)
		return 0;
	rc = file_reserve(f, 1);
	if (rc || !f->unposted)
		return rc; /* or another thread has posted it meanwhile */
	rc = file_close_run(f, RPMA_F_COMPLETION_ALWAYS);
	if (rc)
		return rc;
	file_post_new(f);
	return file_post(f, 0);
}
