/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parts.h -- the parts of one pool set, from its text to locked files and one mapping of them.
 *
 * parts_load() reads the set and examines the files that its paths name. parts_open_...() open and
 * lock the files. parts_fini() closes the files, which unlocks them.
 */
#ifndef POOLSET_PARTS_H
#define POOLSET_PARTS_H

#include "poolset/pool.h"
#include "poolset/settext.h"

struct part {
	char *path;
	int fd;        /* the open file, which is locked; -1: not open */
	uint64_t size; /* the required size of the file */
	uint64_t align;
	bool is_device;  /* a device DAX */
	bool has_header; /* the options give this part a header */
	bool is_made;    /* this process created the file */
	void *header;    /* the first `align` bytes of a device, mapped if needed */
};

struct parts {
	struct part *list;
	unsigned count;
	unsigned nheaders;
	unsigned options; /* bits of enum settext_option */
	bool is_plain;    /* the name leads to the only part, not to a pool set file */
	unsigned nreplicas, nremotes;
	unsigned replica_line;
	uint64_t pool_size; /* size of the first replica; set by parts_measure() */
	char *name;         /* the name of the set, for messages */
	int set_fd;         /* the pool set file, locked; -1: not open */
	/*
	 * For a set of directories: the largest number of bytes in all directories together, and
	 * the directory of the next new file.
	 */
	uint64_t reserved;
	char **directories;
	unsigned ndirectories;
};

int parts_load(struct parts *parts, const struct poolset_place *place, struct error *err);
void parts_fini(struct parts *parts);

/* Add a part, with a copy of path. For files of this folder only. */
int parts_add(struct parts *parts, const char *path, uint64_t size, unsigned replica,
	      struct error *err);

/* directories.c: find the files 000000.pmem, 000001.pmem ... in the directories that the text
 * names. */
int parts_from_directories(struct parts *parts, const struct settext *set, struct error *err);
/* Add another file in the next directory if the pool is smaller than size. */
int parts_extend_directories(struct parts *parts, uint64_t size, struct error *err);

/* Refuse more than one replica. line: the number of the line with the word REPLICA. */
int parts_check_replicas(const char *name, unsigned count, unsigned line, struct error *err);
/* Check that there is one replica, and that sizes and options fit together; compute pool_size. */
int parts_measure(struct parts *parts, struct error *err);

/*
 * Open and lock the existing parts, whose sizes must fit. may_be_missing: a missing file (ENOENT)
 * is no error, and its fd stays -1.
 */
int parts_open_existing(struct parts *parts, bool may_be_missing, struct error *err);
/* Create and lock the parts that are not open, and put them on the disk. */
int parts_make_missing(struct parts *parts, struct error *err);
/* Remove the files that parts_make_missing() created. */
void parts_unmake(struct parts *parts);

/* Open and lock one part. */
int part_open(struct part *part, struct error *err);
/* Check that the part has its size, and that its blocks are reserved. */
int part_check(const struct part *part, struct error *err);
int part_get_size(const struct part *part, uint64_t *size, struct error *err);
void part_close(struct part *part);
/* Read or write the first bytes of a part. Written bytes are on the disk when the function
 * returns. */
int part_read_header(struct part *part, uint8_t page[HEADER_BYTES], struct error *err);
int part_write_header(struct part *part, const void *bytes, size_t at, size_t len,
		      struct error *err);
/* Unlink the part's name if it still leads to this file. For a device, clear the first page. */
int part_remove(struct part *part, struct error *err);
/* Returns the number of bytes of the part that are in the mapping. */
uint64_t part_usable(const struct part *part);

/* memory.c: map all parts, one after the other, as pool.h describes; the first header lies at the
 * beginning. */
int parts_map(const struct parts *parts, struct poolset_memory *memory, struct error *err);

#endif
