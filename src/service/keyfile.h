/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * keyfile.h -- reads configuration files. A line is `key = value`; '#' begins a comment; `[words]`
 * begins a section, if the reader has sections.
 *
 * If a line is wrong, the lines before it have already been applied.
 */
#ifndef SERVICE_KEYFILE_H
#define SERVICE_KEYFILE_H

#include <limits.h>
#include <stddef.h>

#include "base/error.h"

#define KEYFILE_SIZE_MAX (1u << 20)
#define KEYFILE_LINE_MAX (PATH_MAX + 256)

/*
 * Both functions return 0, or ERROR_ARGUMENT to stop the reading. The texts begin and end without
 * white space, and are valid only during the call.
 */
struct keyfile_reader {
	int (*set)(void *arg, const char *key, const char *value, struct error *err);
	/* NULL: the file has no sections */
	int (*begin_section)(void *arg, const char *words, struct error *err);
};

/* Parse len bytes. An error's text begins with "NAME:LINE: ", where NAME is `name`. Returns 0 or
 * ERROR_ARGUMENT. */
int keyfile_parse(const char *text, size_t len, const char *name,
		  const struct keyfile_reader *reader, void *arg, struct error *err);
/*
 * Parse a file. Returns 0, ERROR_ARGUMENT, or ERROR_LOCAL with an errno as cause: the file cannot
 * be opened or read, or is longer than KEYFILE_SIZE_MAX.
 */
int keyfile_load(const char *path, const struct keyfile_reader *reader, void *arg,
		 struct error *err);

#endif
