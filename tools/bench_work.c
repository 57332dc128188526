/* SPDX-License-Identifier: BSD-3-Clause */
/* The kinds of work: a table entry for each kind, with the function that posts its rounds. */
#include <stddef.h>

#include "bench.h"
#include "cli.h"

/* Returns the offset of a round. Consecutive rounds use consecutive offsets in the whole range. */
static uint64_t work_place(const struct bench *b, const struct bench_row *row, uint64_t nr)
{
	return nr % (b->room / row->size) * row->size;
}

/* Returns the offset of write i in a batch. The writes of a batch are spread evenly over the
 * range, and the next round writes beside them. */
static uint64_t work_scattered_place(const struct bench *b, const struct bench_row *row,
				     uint64_t nr, uint32_t i)
{
	uint64_t stride = b->room / row->writes / 8 * 8, places = stride / row->size;
	uint64_t at = i * stride + nr % (places ? places : 1) * row->size;

	return at <= b->room - row->size ? at : b->room - row->size;
}

static int work_failed(struct bench *b, const char *what, int rc)
{
	return rc ? client_post_failed(&b->s, what, rc) : CLI_OK;
}

static int work_write(struct bench *b, uint64_t at, uint64_t size)
{
	int rc = rpma_write(b->s.conn, b->s.remote, at, b->mr, at, size, RPMA_F_COMPLETION_ON_ERROR,
			    NULL);

	return work_failed(b, "write to", rc);
}

static int work_flush(struct bench *b, const struct bench_row *row, uint64_t at, uint64_t len)
{
	int rc = rpma_flush(b->s.conn, b->s.remote, at, len, row->work->flush,
			    RPMA_F_COMPLETION_ALWAYS, NULL);

	return work_failed(b, "flush at", rc);
}

static int work_post_write(struct bench *b, const struct bench_row *row, uint64_t nr)
{
	uint64_t at = work_place(b, row, nr);
	int rc = work_write(b, at, row->size);

	return rc ? rc : work_flush(b, row, at, row->size);
}

static int work_post_stream(struct bench *b, const struct bench_row *row, uint64_t nr)
{
	int rc = CLI_OK;

	for (uint32_t i = 0; i < row->writes && !rc; i++)
		rc = work_write(b, work_place(b, row, nr * row->writes + i), row->size);
	return rc ? rc : work_flush(b, row, 0, b->room);
}

static int work_post_batch(struct bench *b, const struct bench_row *row, uint64_t nr)
{
	int rc = 0;

	for (uint32_t i = 0; i < row->writes && !rc; i++) {
		uint64_t at = work_scattered_place(b, row, nr, i);

		rc = rpma_batch_write(b->batch, b->s.remote, at, b->mr, at, row->size,
				      RPMA_F_COMPLETION_ON_ERROR, NULL);
	}
	if (!rc)
		rc = rpma_batch_flush(b->batch, b->s.remote, 0, b->room, row->work->flush,
				      RPMA_F_COMPLETION_ALWAYS, NULL);
	if (!rc)
		rc = rpma_batch_post(b->batch);
	return work_failed(b, "write to", rc);
}

static int work_post_read(struct bench *b, const struct bench_row *row, uint64_t nr)
{
	uint64_t at = work_place(b, row, nr);
	int rc = rpma_read(b->s.conn, b->mr, at, b->s.remote, at, row->size,
			   RPMA_F_COMPLETION_ALWAYS, NULL);

	return work_failed(b, "read from", rc);
}

static int work_post_atomic_write(struct bench *b, const struct bench_row *row, uint64_t nr)
{
	static const char word[RPMA_ATOMIC_WRITE_ALIGNMENT] = "rpma";
	int rc = rpma_atomic_write(b->s.conn, b->s.remote, work_place(b, row, nr), word,
				   RPMA_F_COMPLETION_ALWAYS, NULL);

	return work_failed(b, "write to", rc);
}

const struct bench_work bench_works[BENCH_WORKS] = {
	[BENCH_VISIBLE] = {"write_flush_visible", "write + flush visible", work_post_write,
			   BENCH_SINGLE, RPMA_FLUSH_TYPE_VISIBILITY,
			   RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY, 0, 0},
	[BENCH_PERSISTENT] = {"write_flush_persistent", "write + flush persistent", work_post_write,
			      BENCH_SINGLE, RPMA_FLUSH_TYPE_PERSISTENT,
			      RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT, 0, 0},
	[BENCH_READ] = {"read", "read", work_post_read, BENCH_SINGLE, 0, 0, 0, 0},
	[BENCH_ATOMIC] = {"atomic_write", "atomic write of 8 bytes", work_post_atomic_write,
			  BENCH_SINGLE, 0, 0, RPMA_CAP_ATOMIC_WRITE, RPMA_ATOMIC_WRITE_ALIGNMENT},
	[BENCH_STREAM_VISIBLE] = {"writes_flush_visible", "writes + flush visible",
				  work_post_stream, BENCH_STREAM, RPMA_FLUSH_TYPE_VISIBILITY,
				  RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY, 0, 0},
	[BENCH_BATCH_VISIBLE] = {"batch_flush_visible", "visible", work_post_batch, BENCH_BATCH,
				 RPMA_FLUSH_TYPE_VISIBILITY, RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY, 0,
				 0},
	[BENCH_BATCH_PERSISTENT] = {"batch_flush_persistent", "persistent", work_post_batch,
				    BENCH_BATCH, RPMA_FLUSH_TYPE_PERSISTENT,
				    RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT, 0, 0},
};

uint32_t bench_writes(const struct bench_opts *opts, const struct bench_work *work)
{
	return work->shape == BENCH_BATCH    ? (uint32_t)opts->batch
	       : work->shape == BENCH_STREAM ? (uint32_t)opts->flush_every
					     : 1;
}

bool bench_is_wanted(const struct bench_opts *opts, const struct bench_work *work)
{
	return !opts->works || opts->works & 1u << (work - bench_works);
}

uint64_t bench_queue(const struct bench_opts *opts)
{
	uint64_t round = 0, depth = 0;

	for (size_t i = 0; i < BENCH_WORKS; i++)
		if (bench_is_wanted(opts, &bench_works[i]) &&
		    round < bench_writes(opts, &bench_works[i]) + 1u)
			round = bench_writes(opts, &bench_works[i]) + 1u;
	for (unsigned i = 0; i < opts->depths.count; i++)
		if (depth < opts->depths.values[i])
			depth = opts->depths.values[i];
	return round * depth;
}
