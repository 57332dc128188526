/* SPDX-License-Identifier: BSD-3-Clause */
/* rpma bench: measures latency and throughput over sizes and depths. */
#include "bench.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli.h"
#include "commands.h"

#define BENCH_FILL      0x5a
#define BENCH_SETTLE_NS 20000000ull
/* number of bytes of a region that are used, unless the rounds need more or the region is
 * smaller */
#define BENCH_ROOM (1u << 20)

static uint64_t bench_largest(const struct bench_list *list)
{
	uint64_t largest = 0;

	for (unsigned i = 0; i < list->count; i++)
		largest = largest < list->values[i] ? list->values[i] : largest;
	return largest;
}

/* Choose the number of bytes so that no outstanding round touches the bytes of another round, if
 * the region is large enough. */
static int bench_choose_room(struct bench *b)
{
	uint64_t size = bench_largest(&b->opts->sizes), depth = bench_largest(&b->opts->depths);
	uint64_t there = b->s.region.size;

	if (bench_is_wanted(b->opts, &bench_works[BENCH_ATOMIC]) &&
	    size < RPMA_ATOMIC_WRITE_ALIGNMENT)
		size = RPMA_ATOMIC_WRITE_ALIGNMENT;
	if (size > there && b->opts->overwrite)
		return cli_fail(CLI_REFUSED, "--size %" PRIu64 " is larger than region '%s' of %s",
				size, b->s.region.region, text_bytes(there).text);
	if (size > there)
		return cli_fail(CLI_REFUSED,
				"--size %" PRIu64 " is larger than the server's scratch page of "
				"%s; --overwrite measures in the region itself",
				size, text_bytes(there).text);
	b->room = size > there / depth ? there : size * depth;
	if (b->room < BENCH_ROOM)
		b->room = there < BENCH_ROOM ? there : BENCH_ROOM;
	return CLI_OK;
}

int bench_make_buffer(struct bench *b)
{
	b->buf = mmap(NULL, b->room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (b->buf == MAP_FAILED) {
		b->buf = NULL;
		return cli_fail(CLI_TRANSFER, "out of memory for %" PRIu64 " bytes", b->room);
	}
	memset(b->buf, BENCH_FILL, b->room);
	return client_register(&b->s, b->buf, b->room, &b->mr);
}

static int bench_make_batch(struct bench *b)
{
	int rc = 0;

	if (bench_is_wanted(b->opts, &bench_works[BENCH_BATCH_VISIBLE]) ||
	    bench_is_wanted(b->opts, &bench_works[BENCH_BATCH_PERSISTENT]))
		rc = rpma_batch_new(b->s.conn, (uint32_t)b->opts->batch + 1, &b->batch);
	return rc ? client_post_failed(&b->s, "prepare to write to", rc) : CLI_OK;
}

const char *bench_why_not(const struct bench *b, const struct bench_work *work)
{
	if ((b->usage & work->needs_usage) != work->needs_usage)
		return "the server cannot persist this memory";
	if ((b->caps & work->needs_cap) != work->needs_cap)
		return "the server lacks the operation";
	return NULL;
}

/* Returns true if the table has a row for this work and size. Works of a fixed size are measured
 * only with the first size. */
static bool bench_has_row(const struct bench *b, const struct bench_work *work, unsigned size)
{
	return bench_is_wanted(b->opts, work) && (!work->fixed_size || size == 0);
}

static int bench_run_row(struct bench *b, const struct bench_work *work, uint64_t size,
			 uint64_t depth)
{
	struct bench_row row = {.work = work,
				.size = work->fixed_size ? work->fixed_size : size,
				.depth = (uint32_t)depth,
				.writes = bench_writes(b->opts, work)};
	int rc = bench_measure(b, &row);

	if (rc)
		return rc;
	if (work == &bench_works[BENCH_VISIBLE])
		b->visible_us = latency_permille_us(&b->samples, 500);
	bench_print_row(b, &row);
	b->row++;
	return CLI_OK;
}

/* Measure all works of one size and depth. */
static int bench_run_group(struct bench *b, unsigned size, unsigned depth)
{
	uint64_t bytes = b->opts->sizes.values[size], rounds = b->opts->depths.values[depth];
	int rc = CLI_OK;

	bench_print_group(b, bytes, rounds);
	b->visible_us = 0;
	for (size_t i = 0; i < BENCH_WORKS && !rc; i++) {
		const struct bench_work *work = &bench_works[i];
		const char *why_not = bench_why_not(b, work);

		if (bench_has_row(b, work, size) && !why_not)
			rc = bench_run_row(b, work, bytes, rounds);
		else if (bench_has_row(b, work, size))
			bench_print_impossible(b, work, why_not);
	}
	return rc;
}

static unsigned bench_count_rows(const struct bench *b)
{
	unsigned rows = 0;

	for (unsigned size = 0; size < b->opts->sizes.count; size++)
		for (size_t i = 0; i < BENCH_WORKS; i++)
			if (bench_has_row(b, &bench_works[i], size) &&
			    !bench_why_not(b, &bench_works[i]))
				rows += b->opts->depths.count;
	return rows;
}

/* Send for some time before the measurement: two ends on one host may change from TCP to shared
 * memory after the first messages. */
static int bench_settle(struct bench *b)
{
	uint64_t begun = clock_now_ns();
	int rc = CLI_OK;

	while (!rc && clock_now_ns() - begun < BENCH_SETTLE_NS) {
		rc = rpma_read(b->s.conn, b->mr, 0, b->s.remote, 0, 8, RPMA_F_COMPLETION_ALWAYS,
			       NULL);
		rc = rc ? client_post_failed(&b->s, "read from", rc) : client_reap(&b->s, 0);
	}
	memset(b->buf, BENCH_FILL, 8);
	return rc;
}

static int bench_run(struct bench *b)
{
	int rc = CLI_OK;

	b->rows = bench_count_rows(b);
	rc = bench_settle(b);
	if (rc)
		return rc;
	session_get_transport(&b->s, &b->transport);
	bench_print_head(b);
	progress_begin(&b->progress, "bench", b->rows * b->opts->duration_ms);
	b->progress.is_time = true;
	for (unsigned size = 0; size < b->opts->sizes.count && !rc; size++)
		for (unsigned depth = 0; depth < b->opts->depths.count && !rc; depth++)
			rc = bench_run_group(b, size, depth);
	progress_end(&b->progress);
	if (!rc)
		bench_print_end(b);
	return rc;
}

int bench_connect(struct bench *b)
{
	const struct bench_opts *opts = b->opts;
	int rc = client_open(&b->s, &opts->remote, opts->overwrite ? HELLO_WRITE : HELLO_SCRATCH,
			     opts->queue);

	if (rc)
		return rc;
	rpma_mr_remote_get_flush_type(b->s.remote, &b->usage);
	rpma_conn_get_remote_caps(b->s.conn, &b->caps);
	return CLI_OK;
}

void bench_disconnect(struct bench *b)
{
	rpma_batch_delete(&b->batch);
	rpma_mr_dereg(&b->mr);
	session_close(&b->s);
	if (b->buf)
		munmap(b->buf, b->room);
}

static int bench_with_session(struct bench *b)
{
	struct hello_begin begin = {.offset = 0, .length = b->room};
	int rc = bench_make_buffer(b);

	if (!rc)
		rc = bench_make_batch(b);
	/* The server must record, before the first byte, that the file in the region is
	 * overwritten. */
	if (!rc && b->opts->overwrite)
		rc = client_put_begin(&b->s, &begin);
	if (!rc)
		rc = bench_run(b);
	if (!rc && b->opts->overwrite)
		rc = client_confirm(&b->s);
	return rc;
}

static int bench_connect_and_run(struct bench *b)
{
	int rc = bench_connect(b);

	if (rc)
		return rc;
	rc = bench_choose_room(b);
	if (!rc)
		rc = bench_with_session(b);
	bench_disconnect(b);
	return rc;
}

int cmd_bench(int argc, char **argv)
{
	static struct bench bench;
	struct bench_opts opts;
	int rc = bench_parse(argc, argv, &opts);

	if (rc)
		return rc < 0 ? CLI_OK : rc;
	cli_log_init(opts.remote.verbose);
	bench.opts = &opts;
	return bench_connect_and_run(&bench);
}
