/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * keyfile.h -- configuration files: one `key = value` a line, '#' begins a comment, and `[words]`
 * begins a section if the reader has sections.
 *
 * The lines before a wrong line have been applied.
 */
#ifndef SERVICE_KEYFILE_H
#define SERVICE_KEYFILE_H

#include <limits.h>
#include <stddef.h>

#include "base/error.h"

#define KEYFILE_SIZE_MAX (1u << 20)
#define KEYFILE_LINE_MAX (PATH_MAX + 256)

/*
 * Both functions return 0 or ERROR_ARGUMENT, which ends the reading. The texts have no white space
 * at their ends, and are valid during the call.
 */
struct keyfile_reader {
	int (*set)(void *arg, const char *key, const char *value, struct error *err);
	/* NULL: the file has no sections */
	int (*begin_section)(void *arg, const char *words, struct error *err);
};

/* Parse len bytes. Errors quote name: "NAME:LINE: why". ERROR_ARGUMENT. */
int keyfile_parse(const char *text, size_t len, const char *name,
		  const struct keyfile_reader *reader, void *arg, struct error *err);
/*
 * Parse a file. Also ERROR_LOCAL with its errno as cause: the file cannot be opened or read, or is
 * longer than KEYFILE_SIZE_MAX.
 */
int keyfile_load(const char *path, const struct keyfile_reader *reader, void *arg,
		 struct error *err);

#endif
