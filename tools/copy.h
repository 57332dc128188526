/* SPDX-License-Identifier: BSD-3-Clause */
/* copy.h -- declarations shared by put and get: options, the open region, the summary. */
#ifndef TOOL_COPY_H
#define TOOL_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "progress.h"
#include "remote.h"

/* Flush regularly, so that most bytes of a failed put are on the medium, and no flush takes longer
 * than --timeout. */
#define COPY_FLUSH_EVERY (64u << 20)

struct copy_opts {
	const char *file;
	struct remote_opts remote;
	bool is_raw;          /* true: a range of bytes (offset, length); false: a file */
	uint64_t offset;      /* offset of the file in the region */
	uint64_t length;      /* UINT64_MAX (get): up to the end of the file or of the region */
	uint64_t flush_every; /* put: 0 means to flush once at the end */
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

/* Parse the command line. Returns CLI_OK, CLI_USAGE, or -1 after --help. is_put: FILE is the first
 * operand. */
int copy_parse(int argc, char **argv, bool is_put, struct copy_opts *opts);
/* Open the region with these flags, and make a staging buffer of `staging` bytes. The caller sets
 * total afterwards. */
int copy_open(struct copy *c, const struct copy_opts *opts, uint32_t flags, size_t staging);
void copy_close(struct copy *c);
/* Remove the progress bar, then call remote_check(). */
int copy_check(struct copy *c, int rc);
/* Refuse an --offset outside the region. */
int copy_check_offset(const struct copy *c);

/* Print the summary. more: the end of the line, or further members of the JSON object. */
void copy_summary(const struct copy *c, const char *verb, const char *more);

#endif
