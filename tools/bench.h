/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench.h -- declarations shared by the files of `rpma bench`: options, the kinds of work, and the
 * result of a row.
 *
 * A round is one operation, or several writes and one flush of all of them. Each round has one
 * completion. Depth is the number of outstanding rounds.
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
#define BENCH_QUEUE_MAX 32768 /* the limit of the software RNIC */

struct bench_list {
	uint64_t values[BENCH_LIST_MAX];
	unsigned count;
};

struct bench_opts {
	struct remote_opts remote;
	uint32_t queue; /* largest number of outstanding operations */
	struct bench_list sizes, depths;
	/* a bit for each entry of bench_works; 0: all works that are possible */
	unsigned works;
	uint64_t batch;       /* number of writes in a round that is posted by one call */
	uint64_t flush_every; /* number of writes in a round whose writes are posted one by one */
	uint64_t count;       /* rounds of each row; 0: as many as the duration permits */
	uint64_t duration_ms;
	uint64_t most;    /* limit of rounds of a row; the duration may end it earlier */
	unsigned spin_us; /* poll for this time, then sleep until a completion is announced */
	bool overwrite;
};

struct bench;
struct bench_row;

struct bench_work {
	const char *name; /* the name for --work and in JSON */
	/* the text in the table; print_name() adds the number of writes in a round */
	const char *text;
	/* Post round number nr. Only the last operation of the round gives a completion. */
	int (*post)(struct bench *b, const struct bench_row *row, uint64_t nr);
	enum { BENCH_SINGLE, BENCH_BATCH, BENCH_STREAM } shape;
	enum rpma_flush_type flush;
	int needs_usage;     /* usage that the remote region must have */
	uint32_t needs_cap;  /* capability that the server must have */
	uint64_t fixed_size; /* 0: any size */
};

/* The kinds of work. VISIBLE, the first kind, is the base of the ratios. */
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
	uint32_t depth, writes; /* writes: number of writes in a round; 1 for other operations */
};

struct bench {
	const struct bench_opts *opts;
	struct session s;
	struct session_transport transport;
	int usage;
	uint32_t caps;
	struct rpma_batch *batch;
	void *buf; /* `room` bytes: one for each used byte of the region */
	struct rpma_mr_local *mr;
	uint64_t room;
	uint64_t started_ns[BENCH_DEPTH_MAX]; /* start times of the outstanding rounds */
	struct latency samples;               /* samples of a row's rounds */
	double seconds;
	/* median of write + flush visible with the same size and depth; 0: unknown */
	double visible_us;
	unsigned rows, row; /* if rows is 0, no bar is shown */
	struct progress progress;
};

/* bench_opts.c: parses the command line. Returns 0; an exit code after printing the error line; or
 * -1: --help was printed. */
int bench_parse(int argc, char **argv, struct bench_opts *opts);

/* bench_work.c: the kinds of work. */
uint32_t bench_writes(const struct bench_opts *opts, const struct bench_work *work);
/* Returns the largest possible number of outstanding operations. */
uint64_t bench_queue(const struct bench_opts *opts);
bool bench_is_wanted(const struct bench_opts *opts, const struct bench_work *work);

/* bench.c: opens the session, and makes a buffer of `room` bytes; ping uses these functions, too.
 * They return exit codes. */
int bench_connect(struct bench *b);
int bench_make_buffer(struct bench *b);
void bench_disconnect(struct bench *b);
/* Returns NULL if that work is possible with this server, else the reason. */
const char *bench_why_not(const struct bench *b, const struct bench_work *work);

/* bench_run.c: measures a row, and sets b->samples and b->seconds. Returns an exit code. */
int bench_measure(struct bench *b, const struct bench_row *row);

/* bench_print.c: print the parts of the table, or of one JSON object, in this order. */
void bench_print_head(const struct bench *b);
void bench_print_group(const struct bench *b, uint64_t size, uint64_t depth);
void bench_print_row(const struct bench *b, const struct bench_row *row);
void bench_print_impossible(const struct bench *b, const struct bench_work *work, const char *why);
void bench_print_end(const struct bench *b);

#endif
