/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metafile.h -- maps the metadata file of a copy, and creates the files of a copy.
 *
 * Each class of durability has its own kind of write-back: msync for a file system, flushes of
 * processor caches for persistent memory, none for memory that a power cut clears. Errors are
 * ERROR_LOCAL with an errno as cause. Only one thread at a time may use a file.
 */
#ifndef MIRROR_FILE_METAFILE_H
#define MIRROR_FILE_METAFILE_H

#include <librpma.h>

#include "base/error.h"
#include "mirror/core/meta.h"

#define METAFILE_SUFFIX ".rpmirror" /* added to the name of the data file */

struct metafile {
	int fd;
	void *addr;
	uint64_t len;
	enum rpma_durability durability;
	uint32_t persists; /* number of persist calls so far, for measurements */
};

enum metafile_mode {
	METAFILE_READ, /* read only, even while another process has locked the file */
	METAFILE_OWN   /* read, write and lock; EWOULDBLOCK: another process has the lock */
};

/* Open and map the metadata file. EIO: the file cannot be read. */
int metafile_open(struct metafile *f, const char *path, enum metafile_mode mode, struct error *err);
/* For the library, which gets the descriptor from the daemon: map the file without locking it. The
 * function owns the descriptor from then on, even on failure. */
int metafile_attach(struct metafile *f, int fd, struct error *err);
void metafile_close(struct metafile *f);
/* Write bytes of a mapped file, which starts at addr, back to the medium. Returns 0 or -errno. */
int metafile_write_back(void *addr, enum rpma_durability durability, uint64_t offset, uint64_t len);
/* Returns the store of the metadata, which is valid until the file is closed. */
struct meta_store metafile_store(struct metafile *f);

/* Read the present identity of both files, for meta_super.files. Returns 0 or -errno. */
int metafile_identify(const char *data_path, int meta_fd, struct meta_files *files);

struct metafile_new {
	const char *data, *meta; /* paths of the two files */
	/* the data file exists with the set's size, and stays unchanged */
	bool keep;
	/* only the owner may open the files; otherwise the umask decides */
	bool is_private;
	const struct meta_super *super; /* the superblock, except `files` */
	const struct meta_members *members;
};

/* Create both files, reserved on the disk and durable. The complete metadata file gets its name
 * last (EEXIST: the name exists); a data file without metadata is no copy. On failure both files
 * are removed. */
int metafile_create(const struct metafile_new *opts, struct error *err);

/* The open files of a copy. The paths are for error texts, and to find the folders. */
struct metafile_room {
	int data_fd, meta_fd;
	const char *data, *meta;
	/* number of bytes of the data file to keep; the rest is cut off, so that it reads as
	 * zeros */
	uint64_t keep;
	/* size of the set for which the files must be long enough; not less than `keep` */
	uint64_t size;
};

/* Extend both files to the length that a set of that size needs, reserved on the disk and durable.
 * Bytes in use do not change, and other processes may continue to use them. On failure, such as
 * ENOSPC, the files get their former length again. The call may take long. */
int metafile_make_room(const struct metafile_room *room, struct error *err);

#endif
