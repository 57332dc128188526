/* SPDX-License-Identifier: BSD-3-Clause */
/* Collects operations in a batch, and sends them as posts. */
#include "base/clock.h"
#include "regions/file_impl.h"

/* If space is missing although no operation is outstanding, the collected operations fill the
 * ring, so post them. */
int file_wait_for_room(struct rpma_file *f, unsigned operations, size_t len)
{
	int rc = 0;

	while (!rc && !file_has_room(f, operations, len)) {
		if (f->posted == f->completed)
			rc = file_post_collected(f);
		if (!rc)
			rc = file_wait(f, &f->completed, f->completed + 1, CLOCK_NEVER);
	}
	return rc;
}

int file_add_run(struct rpma_file *f, int flags)
{
	int rc = rpma_batch_write(f->batch, f->s.remote, f->run.offset, f->ring_mr, f->run.at,
				  f->run.len, flags, NULL);

	if (rc)
		return file_post_failed(f, "write to", rc);
	f->run.len = 0;
	f->operations++;
	return 0;
}

static inline int file_post_end(struct rpma_file *f)
{
	struct file_post *post = &f->posts[f->posted++ % FILE_POSTS];

	post->operations = f->left = f->operations;
	post->ring_end = f->ring_head;
	f->unposted = 0;
	return 0;
}

int file_post(struct rpma_file *f)
{
	int rc = rpma_batch_post(f->batch);

	return rc ? file_post_failed(f, "write to", rc) : file_post_end(f);
}

int file_post_direct(struct rpma_file *f)
{
	f->operations++;
	return file_post_end(f);
}

int file_post_collected(struct rpma_file *f)
{
	int rc;

	if (!f->unposted)
		return 0;
	rc = file_close_run(f, RPMA_F_COMPLETION_ALWAYS);
	if (rc)
		return rc;
	file_post_new(f);
	return file_post(f);
}

int file_reserve_direct(struct rpma_file *f)
{
	int rc = file_reserve(f, 2, 0);

	return rc ? rc : file_post_collected(f);
}

int file_register(struct rpma_file *f, void *buf, size_t len, int usage, struct rpma_mr_local **mr)
{
	struct error err;
	int rc = rpma_mr_reg(f->s.peer, buf, len, usage, mr);

	if (!rc)
		return 0;
	session_post_failed(&f->s, "register a buffer for", rc, &err);
	return file_error(rc, "%s", err.text);
}
