/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool.h -- a pool on the disk: the parts that a pool set file names, mapped as one piece of
 * memory.
 *
 * A caller names a set by a directory and a name below it; neither ".." nor a symbolic link leads
 * out of the directory. The name is that of a pool set file, or of a file that is itself a pool of
 * one part. Only one replica is supported. Files are locked (flock) against a second user: the set
 * file while it is read, the parts as long as the pool is open.
 *
 * Functions return 0 or the kind of the error (base/error.h), whose cause is an errno:
 *
 *   ENOENT       the set file, a part or a directory does not exist
 *   EACCES       one of these may not be used; other errors of open(2) are passed on
 *   EEXIST       create: a part has a header already, or a directory is named twice
 *   EWOULDBLOCK  another process uses the pool, or reads the set file
 *   EBADF        the name is absolute, empty, or leads out of the directory
 *   EINVAL       the set file is malformed, or does not fit the files, attributes or headers
 *   EINVAL       a power failure made the pool unusable
 *   EFBIG        the pool is smaller than the caller requires
 *   EBADMSG      a header is corrupt
 *   ENOSPC, EIO, ENOMEM and others of the system are passed on
 *
 * Only one thread at a time may use a pool; any thread may use its memory.
 */
#ifndef POOLSET_POOL_H
#define POOLSET_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "poolset/header.h"

#define POOLSET_MIN_PART (2u << 20)
#define POOLSET_MIN_POOL 8192u

struct poolset_place {
	const char *dir; /* absolute path of the folder */
	const char *name;
};

struct poolset_memory {
	/* aligned to pages; begins with the header of the first part, if the pool has headers */
	void *base;
	uint64_t size;
	bool has_headers;
	bool is_direct; /* every part is mapped with MAP_SYNC or is a device DAX */
};

struct poolset_pool;

/*
 * Creates the missing parts, for this user alone (0600), and writes the headers. Everything is on
 * the disk on return. A part that exists must have the size that the set file gives, and a zero
 * first page. attr is NULL or all zero for a pool without headers; the set file must then have the
 * option NOHDRS. On failure the created files are removed. size: the least size of the pool.
 */
int poolset_create(const struct poolset_place *place, uint64_t size,
		   const struct poolset_attr *attr, struct poolset_pool **pool, struct error *err);
/* Open a pool. *attr gets the attributes in the first header, or zeros for a pool without headers.
 * attr may be NULL. */
int poolset_open(const struct poolset_place *place, uint64_t size, struct poolset_attr *attr,
		 struct poolset_pool **pool, struct error *err);

/*
 * Remembers the files to which the paths of the parts lead. Another thread may use the result, also
 * after the pool is closed. NULL: out of memory.
 */
struct poolset_names;
struct poolset_names *poolset_names_new(const struct poolset_pool *pool);
void poolset_names_delete(struct poolset_names *names);
/*
 * Check that the paths still lead to the parts. ERROR_LOCAL: a part was removed, renamed, replaced
 * or truncated. The pool must be open. The check skips a path that cannot be examined.
 */
int poolset_names_check(const struct poolset_names *names, struct error *err);

const struct poolset_memory *poolset_memory(const struct poolset_pool *pool);

/*
 * Rewrite the headers; they are on the disk when the function returns. For a pool without headers
 * attr must be NULL or zero, and the call does nothing.
 */
int poolset_set_attr(struct poolset_pool *pool, const struct poolset_attr *attr, struct error *err);

/* Unmap the pool and free it, also on an error. An error means that the state "shut down" could
 * not be stored. */
int poolset_close(struct poolset_pool *pool, struct error *err);
/* Close the pool and remove its parts: files are unlinked. Devices, and files that existed before
 * poolset_create(), lose their headers. */
int poolset_discard(struct poolset_pool *pool, struct error *err);

enum poolset_remove_flag {
	POOLSET_REMOVE_FORCE = 1 << 0, /* continue after an obstacle */
	POOLSET_REMOVE_SET = 1 << 1,   /* also remove the set file */
};

/*
 * Removes the parts of a set that no process uses: files are unlinked, devices lose their first
 * page. The call refuses a file that is not a part of a pool, as rpmem-poolset(5) defines a part.
 * With POOLSET_REMOVE_FORCE the call returns 0 after an obstacle, and err reports the first one
 * (kind ERROR_NONE: there was none).
 */
int poolset_remove(const struct poolset_place *place, unsigned flags, struct error *err);

#endif
