/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copy.h -- what put and get have in common: options, staging buffers with several operations
 * in flight, the summary.
 */
#ifndef TOOL_COPY_H
#define TOOL_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "progress.h"
#include "client.h"

/* Measured on loopback: more or larger buffers gain nothing, fewer or smaller ones lose. */
#define COPY_DEPTH   8
#define COPY_CHUNK   (256u << 10)
#define COPY_FLUSHES 4
/* So that a failed put has much on the medium, and no flush lasts as long as --timeout. */
#define COPY_FLUSH_EVERY (64u << 20)

struct copy_opts {
	const char *file;
	struct client_opts client;
	bool is_raw;          /* bytes from an offset on, or so many, and not a file */
	uint64_t offset;      /* in the region */
	uint64_t length;      /* get: UINT64_MAX means to the end of the file, or of the region */
	uint64_t flush_every; /* put: 0 means once at the end */
	bool allow_volatile, no_verify, resume;
	bool json;
};

/* An operation in flight. Completions of one connection come in the order of posting. */
struct copy_op {
	bool is_flush;
	uint64_t at; /* offset from the beginning of the copy */
	uint32_t len;
};

struct copy {
	const struct copy_opts *opts;
	struct session s;
	struct rpma_mr_local *mr;
	uint8_t *staging; /* COPY_DEPTH buffers of COPY_CHUNK */
	struct copy_op ops[COPY_DEPTH + COPY_FLUSHES];
	unsigned posted, finished; /* operations, ever */
	unsigned moves, moved;     /* of these, writes or reads */
	unsigned flushes, flushed; /* and flushes */
	uint64_t total, begun, done;
	uint64_t from; /* what lies before was there already */
	struct progress progress;
};

/* CLI_OK, CLI_USAGE, or -1 when --help was printed. is_put: FILE comes first. */
int copy_parse(int argc, char **argv, bool is_put, struct copy_opts *opts);
/* Connect and prepare the buffers; total is set by the caller afterwards. */
int copy_open(struct copy *c, const struct copy_opts *opts);
void copy_close(struct copy *c);

/* May another write or read be posted: is there work and a buffer? */
bool copy_has_room(const struct copy *c);
/* The next piece: its buffer, and in *op what it covers. */
uint32_t copy_next(struct copy *c, struct copy_op *op);
void copy_posted(struct copy *c, const struct copy_op *op);
/* Wait for the oldest operation; *op says which one it was, *buffer where its data is. */
int copy_finish_oldest(struct copy *c, struct copy_op *op, uint32_t *buffer);

/* more: the end of the line, or further members of the JSON object. */
void copy_summary(const struct copy *c, const char *verb, const char *more);

#endif
