/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * newfile.h -- a file that appears under its name complete, or not at all.
 *
 * It has no name while it is being filled, so that not even kill -9 leaves a half-made one.
 * File systems without unnamed files get a temporary name beside the final one.
 */
#ifndef TOOL_NEWFILE_H
#define TOOL_NEWFILE_H

#include <stdbool.h>
#include <stdint.h>

struct newfile {
	const char *path;
	int fd;
	char temp[4096]; /* "" while unnamed */
};

/* Open. 0, or -1 with errno and nothing printed. */
int newfile_try_open(struct newfile *nf, const char *path);
/* Open and reserve size bytes on the disk. 0, or CLI_FILE with the error line printed. */
int newfile_open(struct newfile *nf, const char *path, uint64_t size);
/* Make it durable under its name; without replace an existing file is an error. Leaves fd open. */
int newfile_commit(struct newfile *nf, bool replace);
/* The same; -1 with errno and nothing printed. */
int newfile_try_commit(struct newfile *nf, bool replace);
/* Give up: nothing stays. Closes fd. */
void newfile_abort(struct newfile *nf);
/* Put the name of a file on the disk: its folder, and that of a symbolic link to it. 0, or -1 with
 * errno and nothing printed. */
int newfile_sync_name(int fd, const char *path);
/* Put the file's metadata and its name on the disk, too. 0 or CLI_FILE. */
int newfile_settle(int fd, const char *path);
/* fallocate with a clear line when the disk is too small. 0 or CLI_FILE. */
int newfile_reserve(int fd, const char *path, uint64_t size);

#endif
