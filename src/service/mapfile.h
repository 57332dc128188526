/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mapfile.h -- a local file as memory that can be served: reserved on the disk, durable under its
 * name, mapped shared and brought in.
 *
 * Errors are ERROR_LOCAL. Thread-safe, one thread a file.
 */
#ifndef SERVICE_MAPFILE_H
#define SERVICE_MAPFILE_H

#include <librpma.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/newfile.h"

struct mapfile {
	int fd;
	void *addr;
	uint64_t size;
	enum rpma_durability durability;
	const char *made; /* path of a file that mapfile_open() created */
	uint64_t cached;  /* from_medium: bytes that stayed in the page cache */
};

struct mapfile_opts {
	const char *path; /* the caller's; valid as long as the file is open */
	uint64_t size;    /* 0: the file's own size */
	bool create;      /* the file must not exist yet; size is its size */
	bool from_medium; /* drop the cached pages of an existing file (base/pagecache.h) */
	bool is_private;  /* a new file may be opened by its owner only */
	uint64_t scratch; /* room that must be left on the disk for mapfile_open_scratch() */
	const struct newfile_watch *watch; /* NULL: no watch */
};

/*
 * The file is locked, so that it is not served twice (EWOULDBLOCK). Other causes: EEXIST, ENOENT,
 * ENODATA (it is empty), EFBIG (more bytes are requested than it has), ENOSPC, ECANCELED (the
 * watch). On failure nothing is left behind.
 */
int mapfile_open(struct mapfile *map, const struct mapfile_opts *opts, struct error *err);
/* A nameless file in the same folder, for traffic that must not touch the file itself. */
int mapfile_open_scratch(struct mapfile *map, const char *beside, uint64_t size, struct error *err);
/* Map the file to read it, not to serve it; durability is not set. */
int mapfile_open_readonly(struct mapfile *map, const char *path, struct error *err);
void mapfile_close(struct mapfile *map);
/* Like close, but a file that was created for this is removed again. */
void mapfile_discard(struct mapfile *map);

#endif
