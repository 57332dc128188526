/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ownmap.h -- a mapping of a file that the library makes for itself, with a separate open file
 * description.
 *
 * The kernel reports a failed write-back once to each open file description. If the library used
 * the application's description, an fsync() or msync() of the application, or of another process
 * that shares the description, could get the report. The library's msync() would then return
 * success although bytes were lost. An msync() of the own mapping writes back all dirty pages of
 * the file, also those that other mappings made dirty, and gets a separate report. The own mapping
 * also works after the application's mapping is gone. It works as well if the application mapped a
 * read-only descriptor, whose mapping msync() ignores.
 *
 * The own mapping begins at the file's beginning and allows no access. Its descriptor is closed.
 */
#ifndef PERSIST_OWNMAP_H
#define PERSIST_OWNMAP_H

#include <stdint.h>
#include <sys/types.h>

#include "base/folio.h"

struct ownmap {
	struct ownmap *older; /* a shorter mapping, kept because it may be in use */
	unsigned char *base;
	size_t len;
	/* Pages whose folios were split before a store, and pages whose folios were split after a
	 * write-back. The second set exists because a folio that is dirty before the store is not
	 * split then; splitting is tried again after the write-back. */
	struct folio_marks stored, written_back;
};

struct ownmap_source {
	int path_fd; /* O_PATH */
	dev_t st_dev;
	ino_t st_ino; /* from fstat() of path_fd */
	dev_t map_dev;
	ino_t map_ino; /* inode number that /proc/self/maps shows for mappings of the file */
};

/*
 * Open and map the file up to `end` at least. Waits as long as the file system takes to open the
 * file. Returns 0, -ESTALE if the descriptor leads to another file, or another -errno if the file
 * cannot be opened and mapped now.
 */
int ownmap_open(const struct ownmap_source *from, uint64_t end, struct ownmap **out);
/* Map the same open file description up to `end` at least. The new mapping owns `older`. */
int ownmap_extend(struct ownmap *older, uint64_t end, struct ownmap **out);
/* Delete the mapping and all older ones. Accepts NULL. */
void ownmap_delete(struct ownmap *map);
/* Called in a forked child, which has no such mappings: free the description only. */
void ownmap_forget(struct ownmap *map);

#endif
