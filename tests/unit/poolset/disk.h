/* SPDX-License-Identifier: BSD-3-Clause */
/* disk.h -- a folder with pool sets for a test, and expected results of the calls of pool.h. */
#ifndef UNIT_POOLSET_DISK_H
#define UNIT_POOLSET_DISK_H

#include "lib/unit.h"

#include "poolset/pool.h"

#define MIB ((uint64_t)1 << 20)

extern char disk_folder[]; /* absolute */
extern struct error disk_err;

/* For cmocka: a fresh folder, which is the working directory; it is removed with its content. */
int disk_setup(void **state);
int disk_teardown(void **state);

/* The text of a file; "@" stands for the folder. */
void disk_write_set(const char *name, const char *text);
void disk_write_bytes(const char *name, uint64_t at, const void *bytes, size_t len);
void disk_read_bytes(const char *name, uint64_t at, void *bytes, size_t len);
void disk_make_file(const char *name, uint64_t size);
bool disk_exists(const char *name);
unsigned disk_count_files(void);

/* The attributes that a program of libpmemobj requests. */
struct poolset_attr disk_attr(void);

struct poolset_place disk_place(const char *name);
struct poolset_pool *disk_create(const char *name, const struct poolset_attr *attr);
struct poolset_pool *disk_open(const char *name, struct poolset_attr *attr);
void disk_close(struct poolset_pool *pool);
/* The calls must fail, with this cause and this text; no file stays open. */
void disk_no_create(const char *name, uint64_t size, const struct poolset_attr *attr, int cause,
		    const char *words);
void disk_no_open(const char *name, uint64_t size, int cause, const char *words);
void disk_no_remove(const char *name, unsigned flags, int cause, const char *words);

#endif
