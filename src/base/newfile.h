/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * newfile.h -- creates a file that appears under its name either complete and durable, or not at
 * all.
 *
 * The file has no name while it is being filled, so that not even kill -9 leaves a half-made file.
 * On a file system without unnamed files, the file has a temporary name beside the final one.
 * Errors are ERROR_LOCAL with an errno as cause. Thread-safe; only one thread at a time uses a
 * file.
 */
#ifndef BASE_NEWFILE_H
#define BASE_NEWFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Progress of a long step on a file, reported after each slice. */
struct newfile_progress {
	const char *path, *what; /* the file, and what the step does: "reserve", "read in" */
	uint64_t done, total;
};

/* step() returns false to stop the work. Then the cause of the error is ECANCELED. */
struct newfile_watch {
	bool (*step)(void *arg, const struct newfile_progress *progress);
	void *arg;
};

struct newfile_opts {
	const char *path; /* owned by the caller */
	uint64_t size;    /* bytes to reserve on the disk; 0: reserve nothing */
	/* bytes that must remain free on the disk for a scratch file */
	uint64_t scratch;
	/* only the owner may open the file; otherwise the umask decides */
	bool is_private;
	const struct newfile_watch *watch; /* NULL: nothing watches the steps */
};

struct newfile {
	const char *path; /* owned by the caller */
	int fd;
	char temp[4096]; /* "" while the file has no temporary name */
};

/* Open a nameless file, and reserve its size. */
int newfile_open(struct newfile *nf, const struct newfile_opts *opts, struct error *err);
/* Make the file durable under its name. If `replace` is false, an existing file is an error
 * (EEXIST). fd stays open. After a failure the caller must call newfile_abort(). */
int newfile_commit(struct newfile *nf, bool replace, struct error *err);
/* Give up and close fd. No part of the file remains. */
void newfile_abort(struct newfile *nf);
/*
 * Do all of these steps for a file that has a size and no content yet. The caller gets *fd. On
 * failure no part of the file remains, and *fd is not set.
 */
int newfile_make(const struct newfile_opts *opts, int *fd, struct error *err);

/* The functions below work on an existing file, open as fd. */
/*
 * Reserve blocks by fallocate(). If the disk is too small, the error reports the free space. On a
 * file system without fallocate() the call writes zeros, which are on the disk on return.
 */
int newfile_reserve(int fd, const struct newfile_opts *opts, struct error *err);
/* Ask the watch of a long step whether to continue. Returns 0, or ERROR_LOCAL with ECANCELED. */
int newfile_ask(const struct newfile_watch *watch, const struct newfile_progress *progress,
		struct error *err);
/* Write all bytes at the position of fd. Returns 0 or -errno. */
int newfile_write(int fd, const void *bytes, size_t len);
/* Put the folder that contains `path` on the disk, for instance after the name was removed. Returns
 * 0 or -errno. */
int newfile_sync_folder(const char *path);
/* Put the name of the file on the disk: sync its folder and, for a symbolic link, the folder of the
 * link. Returns 0 or -errno. */
int newfile_sync_name(int fd, const char *path);
/* Put the file's content, metadata and name on the disk. */
int newfile_settle(int fd, const char *path, struct error *err);

#endif
