/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * newfile.h -- a file that appears under its name complete and durable, or not at all.
 *
 * It has no name while it is being filled, so that not even kill -9 leaves a half-made one.
 * File systems without unnamed files get a temporary name beside the final one. Errors are
 * ERROR_LOCAL with an errno as cause. Thread-safe, one thread a file.
 */
#ifndef BASE_NEWFILE_H
#define BASE_NEWFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* A long step on a file, after each slice: how many bytes of it are done. */
struct newfile_progress {
	const char *path, *what; /* "reserve", "read in" */
	uint64_t done, total;
};

/*
 * The function step() decides whether to go on. If it stops the work, the error's cause is
 * ECANCELED.
 */
struct newfile_watch {
	bool (*step)(void *arg, const struct newfile_progress *progress);
	void *arg;
};

struct newfile_opts {
	const char *path; /* the caller's */
	uint64_t size;    /* to reserve on the disk; 0: nothing */
	/* bytes that must be left beside the file, for a scratch file */
	uint64_t scratch;
	bool is_private;                   /* only its owner may open it; else the umask decides */
	const struct newfile_watch *watch; /* NULL: none */
};

struct newfile {
	const char *path; /* the caller's */
	int fd;
	char temp[4096]; /* "" while unnamed */
};

/* Open, and reserve its size. */
int newfile_open(struct newfile *nf, const struct newfile_opts *opts, struct error *err);
/* Make it durable under its name; without replace an existing file is an error (EEXIST). Leaves fd
 * open, and a failure leaves newfile_abort() to do. */
int newfile_commit(struct newfile *nf, bool replace, struct error *err);
/* Give up: nothing stays. Closes fd. */
void newfile_abort(struct newfile *nf);
/*
 * All of these steps for a file that has a size and no content yet. The caller gets *fd. On failure
 * nothing stays, and *fd is not set.
 */
int newfile_make(const struct newfile_opts *opts, int *fd, struct error *err);

/* The same for a file that exists, open as fd. */
/*
 * fallocate(), with an error that says how much room there is when the disk is too small. On a file
 * system without fallocate() zeros are written, and they are on the disk on return.
 */
int newfile_reserve(int fd, const struct newfile_opts *opts, struct error *err);
/* Ask the watch of a long step whether to go on. 0, or ERROR_LOCAL with ECANCELED. */
int newfile_ask(const struct newfile_watch *watch, const struct newfile_progress *progress,
		struct error *err);
/* Put the folder of a name on the disk, for instance after the name was removed. 0 or -errno. */
int newfile_sync_folder(const char *path);
/* Put the name of the file on the disk: its folder, and
 * that of a symbolic link to it. 0 or -errno. */
int newfile_sync_name(int fd, const char *path);
/* Put its content, its metadata and its name on the disk. */
int newfile_settle(int fd, const char *path, struct error *err);

#endif
