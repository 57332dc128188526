/* SPDX-License-Identifier: BSD-3-Clause */
/* copy.h -- shared by put and get: options, the open region, the summary. */
#ifndef TOOL_COPY_H
#define TOOL_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "progress.h"
#include "remote.h"

/* Flush regularly, so that a failed put has most of its bytes on the medium, and no flush takes as
 * long as --timeout. */
#define COPY_FLUSH_EVERY (64u << 20)

struct copy_opts {
	const char *file;
	struct remote_opts remote;
	bool is_raw;          /* a range of bytes (offset, length), not a file */
	uint64_t offset;      /* offset in the region */
	uint64_t length;      /* get: UINT64_MAX means to the end of the file, or of the region */
	uint64_t flush_every; /* put: 0 means once at the end */
	bool allow_volatile, no_verify, resume;
};

struct copy {
	const struct copy_opts *opts;
	struct rpma_file *file;
	struct rpma_file_info info;
	uint8_t *staging;
	uint64_t total, done;
	uint64_t from; /* bytes before this offset were already on the medium */
	struct progress progress;
};

/* Parse. Returns CLI_OK, CLI_USAGE, or -1 after --help. is_put: FILE comes first. */
int copy_parse(int argc, char **argv, bool is_put, struct copy_opts *opts);
/* Open the region with these flags, and make staging of this size. The caller sets total
 * afterwards. */
int copy_open(struct copy *c, const struct copy_opts *opts, uint32_t flags, size_t staging);
void copy_close(struct copy *c);
/* Remove the bar, then do the same as remote_check(). */
int copy_check(struct copy *c, int rc);
/* The offset of --offset is outside the region. */
int copy_check_offset(const struct copy *c);

/* more: the end of the line, or further members of the JSON object. */
void copy_summary(const struct copy *c, const char *verb, const char *more);

#endif
