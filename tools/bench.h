/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench.h -- what the files of `rpma bench` share: options, the kinds of work, one row's result.
 *
 * A round is what completes as one: an operation, or several writes and the flush of all of them.
 * Depth is how many rounds are outstanding at a time.
 */
#ifndef TOOL_BENCH_H
#define TOOL_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "client.h"
#include "latency.h"
#include "progress.h"

#define BENCH_LIST_MAX  32
#define BENCH_DEPTH_MAX 1024
#define BENCH_QUEUE_MAX 32768 /* the software RNIC's */

struct bench_list {
	uint64_t values[BENCH_LIST_MAX];
	unsigned count;
};

struct bench_opts {
	struct remote_opts remote;
	uint32_t queue; /* operations that are outstanding at most */
	struct bench_list sizes, depths;
	unsigned works;       /* a bit for each of bench_works; 0: all that is possible */
	uint64_t batch;       /* writes of a round that is posted at once */
	uint64_t flush_every; /* writes of a round that are posted one by one */
	uint64_t count;       /* rounds of each row; 0: as many as the duration permits */
	uint64_t duration_ms;
	uint64_t most;    /* rounds of a row beyond which its duration does not last */
	unsigned spin_us; /* poll for so long, then sleep until a completion is announced */
	bool overwrite;
};

struct bench;
struct bench_row;

struct bench_work {
	const char *name; /* --work takes it, and JSON has it */
	const char *text; /* print_name() adds the writes of a round */
	/* Post round number nr. Its last operation is its only completion. */
	int (*post)(struct bench *b, const struct bench_row *row, uint64_t nr);
	enum { BENCH_SINGLE, BENCH_BATCH, BENCH_STREAM } shape;
	enum rpma_flush_type flush;
	int needs_usage;     /* of the remote region */
	uint32_t needs_cap;  /* of the server */
	uint64_t fixed_size; /* 0: any */
};

/* All kinds. The others are compared with VISIBLE, the first. */
enum {
	BENCH_VISIBLE,
	BENCH_PERSISTENT,
	BENCH_READ,
	BENCH_ATOMIC,
	BENCH_STREAM_VISIBLE,
	BENCH_BATCH_VISIBLE,
	BENCH_BATCH_PERSISTENT,
	BENCH_WORKS
};
extern const struct bench_work bench_works[BENCH_WORKS];

struct bench_row {
	const struct bench_work *work;
	uint64_t size;
	uint32_t depth, writes; /* of a round; 1 for other operations */
};

struct bench {
	const struct bench_opts *opts;
	struct session s;
	struct session_transport transport;
	int usage;
	uint32_t caps;
	struct rpma_batch *batch;
	void *buf; /* of room bytes, as many as are used of the region */
	struct rpma_mr_local *mr;
	uint64_t room;
	uint64_t started_ns[BENCH_DEPTH_MAX]; /* of the rounds that are outstanding */
	struct latency samples;               /* of a row's rounds */
	double seconds;
	double visible_us;  /* median of write + flush visible, same size and depth; 0: unknown */
	unsigned rows, row; /* 0 rows: no bar is shown */
	struct progress progress;
};

/* bench_opts.c: 0; an exit code with the line printed; or -1: --help was printed. */
int bench_parse(int argc, char **argv, struct bench_opts *opts);

/* bench_work.c: how many writes a round has. */
uint32_t bench_writes(const struct bench_opts *opts, const struct bench_work *work);
/* Operations that are outstanding at most. */
uint64_t bench_queue(const struct bench_opts *opts);
bool bench_is_wanted(const struct bench_opts *opts, const struct bench_work *work);

/* bench.c: the session, and a buffer of room bytes; ping has them as well. Exit codes. */
int bench_connect(struct bench *b);
int bench_make_buffer(struct bench *b);
void bench_disconnect(struct bench *b);
/* NULL: that work is possible with this server. */
const char *bench_why_not(const struct bench *b, const struct bench_work *work);

/* bench_run.c: b->samples and b->seconds. An exit code. */
int bench_measure(struct bench *b, const struct bench_row *row);

/* bench_print.c: the parts of the table, or of one JSON object, in their order. */
void bench_print_head(const struct bench *b);
void bench_print_group(const struct bench *b, uint64_t size, uint64_t depth);
void bench_print_row(const struct bench *b, const struct bench_row *row);
void bench_print_impossible(const struct bench *b, const struct bench_work *work, const char *why);
void bench_print_end(const struct bench *b);

#endif
