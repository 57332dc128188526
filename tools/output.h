/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * output.h -- the target of get, handled as cp(1) handles its target.
 *
 * If the name does not exist, the complete file appears under the name. An existing regular file,
 * also one to which a symbolic link leads, is replaced as a whole by a file with the same owner,
 * mode and extended attributes. If this is not possible, or would separate the file from its other
 * links, the file is overwritten. Other targets, and standard output ("-"), are written to as a
 * stream.
 *
 * Functions return CLI_OK, or CLI_FILE after printing the error line.
 */
#ifndef TOOL_OUTPUT_H
#define TOOL_OUTPUT_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/newfile.h"

enum output_kind {
	OUTPUT_NEW,
	OUTPUT_REPLACED,
	OUTPUT_IN_PLACE,
	OUTPUT_STREAM,
};

struct output {
	const char *name;
	enum output_kind kind;
	int fd;              /* descriptor of the existing file; -1: the file does not exist yet */
	struct stat st;      /* status of the existing file */
	char path[PATH_MAX]; /* path without symbolic links; "": unknown */
	struct newfile made;
	uint64_t total;
};

/*
 * Check that `name` can be written. Opens the target if it exists, and waits for the reader of a
 * FIFO. If the target is standard output, all other text for standard output is written to standard
 * error.
 */
int output_open(struct output *out, const char *name);
/* Call this before writing the first byte. total: the number of bytes that will be written. */
int output_begin(struct output *out, uint64_t total);
/* Write the next bytes. */
int output_write(struct output *out, const uint8_t *src, size_t len);
/* Call this after all bytes are written: makes the bytes durable, and gives the file its name. */
int output_commit(struct output *out);
/* Close the target, in any state after output_open(). Without a commit no new file remains. */
void output_close(struct output *out);

#endif
