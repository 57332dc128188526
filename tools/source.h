/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * source.h -- the source of put: a regular file with a known size, or any other file that can be
 * read to its end (standard input, a pipe, a device).
 *
 * Functions return CLI_OK, or CLI_FILE after printing the error line.
 */
#ifndef TOOL_SOURCE_H
#define TOOL_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

struct source {
	const char *name;
	int fd;
	bool is_sized;
	uint64_t from, size; /* first byte and length of a source with a size */
	/* modification time of a regular file; for other sources the present time */
	uint64_t time_ns;
	bool ended;
};

/* Open the source. "-" is standard input. Waits for the writer of a FIFO. */
int source_open(struct source *src, const char *path);
void source_close(struct source *src);
/* Read bytes from offset `at`; calls must be in order. At the end of a source without a size, *len
 * shrinks and ended is set. A regular file that has become shorter is an error. */
int source_read(struct source *src, uint8_t *buf, uint64_t at, uint32_t *len);
/* Read a byte of a source without a size, to find out whether more bytes follow. */
int source_has_more(struct source *src, bool *more);

#endif
