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
	/* the copy has no data yet and needs a resync; otherwise the copy is in-sync */
	bool is_empty;
	uint32_t hot_slots; /* 0: the default */
	bool keeps_data;    /* the data file exists and becomes the set's content */
};

/* Create the data file and the metadata file durably under their names. Neither file may exist,
 * except a data file that is kept. After an error no created file remains. */
int copyfile_create(const struct copyfile_opts *opts, struct error *err);
/* Undo the creation. A data file that existed before stays. */
void copyfile_remove(const struct copyfile_opts *opts);

/* The metadata of a copy, opened for reading. */
struct copyfile {
	struct metafile file;
	struct meta meta;
	bool has_data;      /* the data file exists */
	uint64_t data_size; /* size of the data file */
};

/* path: path of the copy, or of its metadata. err->cause is that of meta_load() and
 * metafile_open(). */
int copyfile_open(struct copyfile *f, const char *path, struct error *err);
void copyfile_close(struct copyfile *f);

#endif
