/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures one row of the table. */
#include "bench.h"

#include "base/clock.h"
#include "cli.h"

#define RUN_WARM_UP       10
#define RUN_WARM_UP_NS    100000000ull
#define RUN_SHOW_EVERY_NS 100000000ull

/* The rounds of one measurement, and their progress. */
struct run {
	const struct bench_row *row;
	uint32_t depth;
	uint64_t count, limit_ns; /* the run ends at the first of these limits */
	uint64_t begun_ns, now_ns, shown_ns;
	uint64_t posted, done;
	bool is_warm_up;
};

static int run_post(struct bench *b, struct run *r)
{
	int rc = CLI_OK;

	while (!rc && r->posted - r->done < r->depth && r->posted < r->count &&
	       r->now_ns - r->begun_ns < r->limit_ns) {
		b->started_ns[r->posted % r->depth] = clock_now_ns();
		rc = r->row->work->post(b, r->row, r->posted++);
	}
	return rc;
}

/* Show the progress of all rows together. */
static void run_show(struct bench *b, struct run *r)
{
	uint64_t each, part;

	if (!b->rows || r->is_warm_up || r->now_ns - r->shown_ns < RUN_SHOW_EVERY_NS)
		return;
	r->shown_ns = r->now_ns;
	each = b->progress.total / b->rows;
	part = b->opts->count ? each * r->done / r->count : (r->now_ns - r->begun_ns) / 1000000;
	progress_show(&b->progress, each * b->row + (part < each ? part : each));
}

static int run_rounds(struct bench *b, struct run *r)
{
	int rc;

	r->begun_ns = r->now_ns = r->shown_ns = clock_now_ns();
	rc = run_post(b, r);
	while (!rc && r->done < r->posted) {
		rc = client_reap(&b->s, b->opts->spin_us);
		r->now_ns = clock_now_ns();
		if (!rc)
			latency_add(&b->samples, r->now_ns - b->started_ns[r->done++ % r->depth]);
		run_show(b, r);
		if (!rc)
			rc = run_post(b, r);
	}
	return rc;
}

int bench_measure(struct bench *b, const struct bench_row *row)
{
	struct run warm_up = {.row = row,
			      .depth = 1,
			      .count = RUN_WARM_UP,
			      .limit_ns = RUN_WARM_UP_NS,
			      .is_warm_up = true};
	struct run run = {.row = row,
			  .depth = row->depth,
			  .count = b->opts->count ? b->opts->count : b->opts->most,
			  .limit_ns = b->opts->count ? UINT64_MAX : b->opts->duration_ms * 1000000};
	int rc;

	latency_reset(&b->samples);
	rc = run_rounds(b, &warm_up);
	latency_reset(&b->samples);
	if (!rc)
		rc = run_rounds(b, &run);
	b->seconds = (double)(run.now_ns - run.begun_ns) / 1e9 + 1e-9;
	return rc;
}
