/* SPDX-License-Identifier: BSD-3-Clause */
/* copyfile.h -- creates, removes and reads a copy on this host, as a record describes it. */
#ifndef RPMIRROR_COPYFILE_H
#define RPMIRROR_COPYFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "mirror/file/metafile.h"

struct copyfile_opts {
	const struct mirror_record *record;
	uint8_t slot;
	bool is_empty;      /* the copy has no data yet and needs a resync; else it is in-sync */
	uint32_t hot_slots; /* 0: the default */
	bool keeps_data;    /* the data file exists and becomes the set's content */
};

/* Create both files durably under their names. Neither may exist, except a data file that is kept.
 * Errors leave nothing behind. */
int copyfile_create(const struct copyfile_opts *opts, struct error *err);
/* Undo the creation. A data file that was kept stays. */
void copyfile_remove(const struct copyfile_opts *opts);

/* A copy's metadata, opened for reading. */
struct copyfile {
	struct metafile file;
	struct meta meta;
	bool has_data;      /* the data file exists */
	uint64_t data_size; /* size of the data file */
};

/* path: of the copy, or of its metadata. err->cause is that of meta_load() and metafile_open(). */
int copyfile_open(struct copyfile *f, const char *path, struct error *err);
void copyfile_close(struct copyfile *f);

#endif
