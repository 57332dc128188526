/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parts.h -- the parts of one pool set, from its text to locked files and one mapping of them.
 *
 * parts_load() reads the set and looks at what its paths name. parts_open_...() open and lock. What
 * is open is closed, and so unlocked, by parts_fini().
 */
#ifndef POOLSET_PARTS_H
#define POOLSET_PARTS_H

#include "poolset/pool.h"
#include "poolset/settext.h"

struct part {
	char *path;
	int fd;        /* locked; -1 */
	uint64_t size; /* that the file has to have */
	uint64_t align;
	bool is_device;  /* a device DAX */
	bool has_header; /* as the options say */
	bool is_made;    /* by this process */
	void *header;    /* a device's first bytes, mapped where they are needed; align of them */
};

struct parts {
	struct part *list;
	unsigned count;
	unsigned nheaders;
	unsigned options; /* of enum settext_option */
	bool is_plain;    /* the name is that of the only part, and no pool set file */
	unsigned nreplicas, nremotes;
	unsigned replica_line;
	uint64_t pool_size; /* of the first replica; once parts_measure() was called */
	char *name;         /* of the set, for words */
	int set_fd;         /* the pool set file, locked; -1 */
	/* A set of directories: what may be in them together, and where the next file belongs. */
	uint64_t reserved;
	char **directories;
	unsigned ndirectories;
};

int parts_load(struct parts *parts, const struct poolset_place *place, struct error *err);
void parts_fini(struct parts *parts);

/* Grows the list, by a copy of path. Inside the room only. */
int parts_add(struct parts *parts, const char *path, uint64_t size, unsigned replica,
	      struct error *err);

/* directories.c: the files 000000.pmem, 000001.pmem ... of the directories that the text names. */
int parts_from_directories(struct parts *parts, const struct settext *set, struct error *err);
/* One more such file, if the pool is smaller than size. */
int parts_extend_directories(struct parts *parts, uint64_t size, struct error *err);

/* Refuse more than one. line: of the REPLICA. */
int parts_check_replicas(const char *name, unsigned count, unsigned line, struct error *err);
/* One replica, sizes and options that fit together; computes pool_size. */
int parts_measure(struct parts *parts, struct error *err);

/* Open and lock those that exist; missing: ENOENT is no error, and fd stays -1. Their sizes must
 * fit. */
int parts_open_existing(struct parts *parts, bool may_be_missing, struct error *err);
/* Make, lock and store durably those that are not open. */
int parts_make_missing(struct parts *parts, struct error *err);
/* Remove those that parts_make_missing() made. */
void parts_unmake(struct parts *parts);

/* Open and lock one. */
int part_open(struct part *part, struct error *err);
/* It has its size, and its blocks are reserved. */
int part_check(const struct part *part, struct error *err);
int part_get_size(const struct part *part, uint64_t *size, struct error *err);
void part_close(struct part *part);
/* The first bytes of a part; a write is on the disk when it returns. */
int part_read_header(struct part *part, uint8_t page[HEADER_BYTES], struct error *err);
int part_write_header(struct part *part, const void *bytes, size_t at, size_t len,
		      struct error *err);
/* Unlink its name, if that still leads to the file; of a device clear the first page. */
int part_remove(struct part *part, struct error *err);
/* Bytes of the mapping that are the part's. */
uint64_t part_usable(const struct part *part);

/* memory.c: all parts in a row, as pool.h says; the first of the headers lies at the beginning. */
int parts_map(const struct parts *parts, struct poolset_memory *memory, struct error *err);

#endif
