/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mapfile.h -- maps a local file as memory that a server can serve: the file's blocks are reserved
 * on the disk, its name is durable, and its pages are mapped shared and read into memory.
 *
 * Errors are ERROR_LOCAL. Thread-safe; only one thread at a time may use a file.
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
	const char *made; /* path of the file, if mapfile_open() created it */
	uint64_t cached;  /* with from_medium: number of bytes that stayed in the page cache */
};

struct mapfile_opts {
	const char *path; /* owned by the caller; valid as long as the file is open */
	uint64_t size;    /* 0: the file's own size */
	bool create;      /* the file must not exist yet; the call creates it with `size` bytes */
	bool from_medium; /* drop the cached pages of an existing file (base/pagecache.h) */
	bool is_private;  /* only the owner may open a new file */
	uint64_t scratch; /* bytes that must remain free on the disk for mapfile_open_scratch() */
	const struct newfile_watch *watch; /* NULL: nothing watches the steps */
};

/*
 * Open and map the file, and lock it so that it is not served twice (EWOULDBLOCK). Other causes:
 * EEXIST, ENOENT, ENODATA (the file is empty), EFBIG (opts->size exceeds the file's size), ENOSPC,
 * ECANCELED (the watch stopped the work). On failure no new file remains.
 */
int mapfile_open(struct mapfile *map, const struct mapfile_opts *opts, struct error *err);
/* Open a nameless file in the same folder, for traffic that must not touch the file itself. */
int mapfile_open_scratch(struct mapfile *map, const char *beside, uint64_t size, struct error *err);
/* Map the file only for reading. This mapping cannot be served, and no durability is set. */
int mapfile_open_readonly(struct mapfile *map, const char *path, struct error *err);
void mapfile_close(struct mapfile *map);
/* Like mapfile_close(), but also remove the file if mapfile_open() created it. */
void mapfile_discard(struct mapfile *map);

#endif
