/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * newfile.h -- a file that appears under its name complete and durable, or not at all.
 *
 * It has no name while it is being filled, so that not even kill -9 leaves a half-made one.
 * File systems without unnamed files get a temporary name beside the final one. Errors are
 * ERROR_LOCAL with an errno as cause. Thread-safe, one thread a file.
 */
#ifndef EXPORT_NEWFILE_H
#define EXPORT_NEWFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct newfile {
	const char *path; /* the caller's */
	int fd;
	char temp[4096]; /* "" while unnamed */
};

/* Open, and reserve size bytes on the disk (0: none). */
int newfile_open(struct newfile *nf, const char *path, uint64_t size, struct error *err);
/* Make it durable under its name; without replace an existing file is an error (EEXIST). Leaves fd
 * open, and a failure leaves newfile_abort() to do. */
int newfile_commit(struct newfile *nf, bool replace, struct error *err);
/* Give up: nothing stays. Closes fd. */
void newfile_abort(struct newfile *nf);

/* The same for a file that exists, open as fd. */
/* fallocate(), with an error that says how much room there is when the disk is too small. */
int newfile_reserve(int fd, const char *path, uint64_t size, struct error *err);
/* Put the name of the file on the disk: its folder, and that of a symbolic link to it. 0 or -errno.
 */
int newfile_sync_name(int fd, const char *path);
/* Put its content, its metadata and its name on the disk. */
int newfile_settle(int fd, const char *path, struct error *err);

#endif
