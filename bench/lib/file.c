/* SPDX-License-Identifier: BSD-3-Clause */
#include "file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "die.h"

#define FILE_CHUNK ((size_t)1 << 20)

static void file_fill(int fd, size_t size)
{
	char *zeros = calloc(1, FILE_CHUNK);

	for (size_t at = 0; zeros && at < size; at += FILE_CHUNK) {
		size_t len = size - at < FILE_CHUNK ? size - at : FILE_CHUNK;

		if (pwrite(fd, zeros, len, (off_t)at) != (ssize_t)len)
			die_errno("write the file");
	}
	if (!zeros || fsync(fd))
		die_errno("fill the file");
	free(zeros);
}

int file_open(const char *folder, size_t size)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/rpma-bench.XXXXXX", folder);
	fd = mkstemp(path);
	if (fd < 0 && (errno == ENOENT || errno == EACCES || errno == EROFS))
		skip("%s: %s", folder, strerror(errno));
	if (fd < 0)
		die_errno(path);
	unlink(path);
	file_fill(fd, size);
	return fd;
}
