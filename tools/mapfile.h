/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mapfile.h -- a local file as memory that can be served: reserved on the disk, mapped shared.
 */
#ifndef TOOL_MAPFILE_H
#define TOOL_MAPFILE_H

#include <librpma.h>
#include <stdbool.h>
#include <stdint.h>

struct mapfile {
	int fd;
	void *addr;
	uint64_t size;
	enum rpma_durability durability;
	const char *made; /* path of a file that mapfile_open() created */
};

struct mapfile_wish {
	const char *path;
	uint64_t size; /* 0: as large as the file is */
	bool create;   /* the file must not exist yet; size is its size */
};

/* 0, or CLI_FILE with the error line printed and nothing left behind. */
int mapfile_open(struct mapfile *map, const struct mapfile_wish *wish);
/* A nameless file of its own in the same folder, for traffic that must not touch the region. */
int mapfile_open_scratch(struct mapfile *map, const char *beside, uint64_t size);
/* As it is, to look at and not to serve; durability is not set. */
int mapfile_open_readonly(struct mapfile *map, const char *path);
void mapfile_close(struct mapfile *map);
/* As close; a file that was created for this is removed again. */
void mapfile_discard(struct mapfile *map);

#endif
