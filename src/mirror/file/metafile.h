/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metafile.h -- the metadata of a copy as a file, mapped; and the making of a copy.
 *
 * Each class of durability has its way to the medium: msync for a file system, the caches for
 * persistent memory, none for memory that a power cut clears. Errors are ERROR_LOCAL with an errno
 * as cause. One thread at a time.
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
	uint32_t persists; /* number of calls so far, for measurements */
};

enum metafile_mode {
	METAFILE_READ, /* for reading, also while another process has it */
	METAFILE_OWN   /* locked: EWOULDBLOCK if another one has it */
};

/* EIO: it cannot be read. */
int metafile_open(struct metafile *f, const char *path, enum metafile_mode mode, struct error *err);
/* For the library, which gets the descriptor from the daemon: no lock. The descriptor is taken
 * over, also on failure. */
int metafile_attach(struct metafile *f, int fd, struct error *err);
void metafile_close(struct metafile *f);
/* Write bytes of a mapped file, which starts at addr, back to the medium. 0 or -errno. */
int metafile_write_back(void *addr, enum rpma_durability durability, uint64_t offset, uint64_t len);
/* Valid until the file is closed. */
struct meta_store metafile_store(struct metafile *f);

/* Data and metadata as they are now, for meta_super.files. 0 or -errno. */
int metafile_identify(const char *data_path, int meta_fd, struct meta_files *files);

struct metafile_new {
	const char *data, *meta; /* paths */
	bool keep;               /* the data file exists, of the set's size, and stays as it is */
	bool is_private;         /* only its owner may open them; else the umask decides */
	const struct meta_super *super; /* all but `files` */
	const struct meta_members *members;
};

/* Both files, reserved on the disk and durable. The metadata file appears last, complete, under
 * a name that did not exist (EEXIST); without it a data file is no copy. On failure neither file
 * stays. */
int metafile_create(const struct metafile_new *opts, struct error *err);

/* A copy's files, open; paths are for texts and for the folders. */
struct metafile_room {
	int data_fd, meta_fd;
	const char *data, *meta;
	/* the rest of the data file after it is cut off, so that it reads as zeros */
	uint64_t keep;
	uint64_t size; /* size of the set that needs the room; not below `keep` */
};

/* Both files are made as long as a set of that size needs, reserved on the disk and durable. The
 * bytes in use stay as they are, also while other processes use them. On failure, such as
 * ENOSPC, the files get their former length. May take long. */
int metafile_make_room(const struct metafile_room *room, struct error *err);

#endif
