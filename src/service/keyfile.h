/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * keyfile.h -- configuration files: one `key = value` a line, '#' begins a comment, and
 * `[words]` begins a section where the reader has any.
 *
 * What stands before a wrong line has been set.
 */
#ifndef SERVICE_KEYFILE_H
#define SERVICE_KEYFILE_H

#include <limits.h>
#include <stddef.h>

#include "base/error.h"

#define KEYFILE_SIZE_MAX (1u << 20)
#define KEYFILE_LINE_MAX (PATH_MAX + 256)

/* Both return 0 or ERROR_ARGUMENT, which ends the reading. The texts are without white space at
 * their ends and last for the call. */
struct keyfile_reader {
	int (*set)(void *arg, const char *key, const char *value, struct error *err);
	int (*begin_section)(void *arg, const char *words, struct error *err); /* NULL: none */
};

/* Of len bytes; name is for the text of errors: "NAME:LINE: why". ERROR_ARGUMENT. */
int keyfile_parse(const char *text, size_t len, const char *name,
		  const struct keyfile_reader *reader, void *arg, struct error *err);
/* Of a file. Also ERROR_LOCAL with its errno as cause: it cannot be opened or read, or is longer
 * than KEYFILE_SIZE_MAX. */
int keyfile_load(const char *path, const struct keyfile_reader *reader, void *arg,
		 struct error *err);

#endif
