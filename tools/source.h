/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * source.h -- what put reads: a regular file, whose size is known, or anything else that can be
 * read to its end (standard input, a pipe, a device).
 *
 * Functions return CLI_OK, or CLI_FILE with the error line printed.
 */
#ifndef TOOL_SOURCE_H
#define TOOL_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

struct source {
	const char *name;
	int fd;
	bool is_sized;
	uint64_t from, size; /* of a sized one */
	uint64_t time_ns;    /* its modification; now, of what is no regular file */
	bool ended;
};

/* "-" is standard input. Waits for the writer of a FIFO. */
int source_open(struct source *src, const char *path);
void source_close(struct source *src);
/* The bytes from offset at on, called in order. *len shrinks, and ended is set, at the end of what
 * has no size; a sized one that has become shorter is an error. */
int source_read(struct source *src, uint8_t *buf, uint64_t at, uint32_t *len);
/* Reads a byte to find out; for what has no size. */
int source_has_more(struct source *src, bool *more);

#endif
