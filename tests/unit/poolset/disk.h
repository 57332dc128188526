/* SPDX-License-Identifier: BSD-3-Clause */
/* disk.h -- a folder for the pool sets of a test, and expected results of the calls in pool.h. */
#ifndef UNIT_POOLSET_DISK_H
#define UNIT_POOLSET_DISK_H

#include "lib/unit.h"

#include "poolset/pool.h"

#define MIB ((uint64_t)1 << 20)

extern char disk_folder[]; /* absolute path */
extern struct error disk_err;

/* Set-up for cmocka: make a new folder, and change to it. The tear-down removes it with its
 * content. */
int disk_setup(void **state);
int disk_teardown(void **state);

/* Write this text to a file; "@" in the text becomes the folder. */
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
/* The call must fail with this cause and this text, and must leave no file open. */
void disk_no_create(const char *name, uint64_t size, const struct poolset_attr *attr, int cause,
		    const char *words);
void disk_no_open(const char *name, uint64_t size, int cause, const char *words);
void disk_no_remove(const char *name, unsigned flags, int cause, const char *words);

#endif
