/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/keyfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static int keyfile_parse_line(char *line, const struct keyfile_reader *reader, void *arg,
			      struct error *err)
{
	char *equal;

	line[strcspn(line, "#")] = '\0';
	line = text_trim(line);
	if (!line[0])
		return 0;
	if (reader->begin_section && line[0] == '[' && line[strlen(line) - 1] == ']') {
		line[strlen(line) - 1] = '\0';
		return reader->begin_section(arg, text_trim(line + 1), err);
	}
	equal = strchr(line, '=');
	if (!equal)
		return error_set(err, ERROR_ARGUMENT, EINVAL, "'%s' is not 'key = value'", line);
	*equal = '\0';
	return reader->set(arg, text_trim(line), text_trim(equal + 1), err);
}

int keyfile_parse(const char *text, size_t len, const char *name,
		  const struct keyfile_reader *reader, void *arg, struct error *err)
{
	char line[KEYFILE_LINE_MAX];
	struct error why;
	unsigned number = 0;
	int rc = 0;

	for (size_t at = 0; at < len && !rc;) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t n = end ? (size_t)(end - text) - at : len - at;

		number++;
		if (n >= sizeof(line) || memchr(text + at, '\0', n)) {
			rc = error_set(&why, ERROR_ARGUMENT, EINVAL,
				       "the line is too long or is no text");
		} else {
			memcpy(line, text + at, n);
			line[n] = '\0';
			rc = keyfile_parse_line(line, reader, arg, &why);
		}
		at += n + 1;
	}
	return rc ? error_set(err, why.kind, why.cause, "%s:%u: %s", name, number, why.text) : 0;
}

static int keyfile_read(FILE *file, const char *path, const struct keyfile_reader *reader,
			void *arg, struct error *err)
{
	char *text = malloc(KEYFILE_SIZE_MAX);
	size_t len;
	int rc = 0;

	if (!text)
		return error_set(err, ERROR_LOCAL, ENOMEM, "out of memory for %s", path);
	errno = 0;
	len = fread(text, 1, KEYFILE_SIZE_MAX, file);
	if (ferror(file) || len == KEYFILE_SIZE_MAX)
		rc = ferror(file) && errno ? errno : EFBIG;
	if (rc)
		rc = error_set(err, ERROR_LOCAL, rc, "cannot read configuration file %s: %s", path,
			       strerror(rc));
	else
		rc = keyfile_parse(text, len, path, reader, arg, err);
	free(text);
	return rc;
}

int keyfile_load(const char *path, const struct keyfile_reader *reader, void *arg,
		 struct error *err)
{
	FILE *file = fopen(path, "re");
	int rc;

	if (!file)
		return error_set(err, ERROR_LOCAL, errno, "cannot open configuration file %s: %s",
				 path, strerror(errno));
	rc = keyfile_read(file, path, reader, arg, err);
	fclose(file);
	return rc;
}
