/* SPDX-License-Identifier: BSD-3-Clause */
/* impl.h -- an open pool, for the files of this folder. */
#ifndef POOLSET_IMPL_H
#define POOLSET_IMPL_H

#include "poolset/parts.h"

struct poolset_pool {
	struct parts parts;
	struct poolset_memory memory;
	/* The headers on the disk. Only the first parts of the pool have headers. */
	struct header *headers;
	uint8_t (*pages)[HEADER_BYTES];
	bool is_created; /* poolset_create() made the pool */
	bool is_dirty;   /* the stored shutdown state is dirty, and this process has to clear it */
};

/*
 * The shutdown state of the devices. It is always zero, as in PMDK without libndctl: the pool does
 * not notice power failures that the devices do not survive.
 */
extern const struct header_sds pool_devices;

/* pool.c */
int pool_alloc_headers(struct poolset_pool *pool, struct error *err);
int pool_check_size(const struct poolset_pool *pool, uint64_t size, struct error *err);
/* Read the headers. The header of a part that is not open becomes zero. */
int pool_read_headers(struct poolset_pool *pool, struct error *err);
/* Write the headers, the first one last: without the first header the pool does not exist yet. */
int pool_write_headers(struct poolset_pool *pool, struct error *err);

/* attr.c: the attributes of a pool. */
int pool_check_attr(const struct poolset_pool *pool, const struct poolset_attr *attr,
		    struct error *err);
/* Fill in the attributes that the caller left open. */
void pool_complete_attr(struct poolset_attr *attr);
void pool_apply_attr(struct poolset_pool *pool, const struct poolset_attr *attr);

/* create.c: creates a pool. */
int pool_create(struct poolset_pool *pool, uint64_t size, const struct poolset_attr *attr,
		struct error *err);
/* Remove the created files. A file that existed before the creation had a zero first page, so zero
 * that page again. */
void pool_undo_create(struct poolset_pool *pool);

#endif
