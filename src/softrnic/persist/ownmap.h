/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ownmap.h -- the library's own mapping of a file, which keeps an open file description of its own.
 *
 * The kernel reports a failed write-back once to each open file description. With the application's
 * description, an fsync() or msync() of the application, or of another process that shares the
 * description, would take the report, and the library's msync() would claim success for lost bytes.
 * An msync() of the own mapping writes back the pages of the file, whatever made them dirty, and
 * gets a report of its own. It also works after the application's mapping is gone. And it works if
 * the application mapped a read-only descriptor, for which the kernel's msync() does nothing.
 *
 * The mapping begins at the file's beginning and allows no access. No descriptor is left open.
 */
#ifndef PERSIST_OWNMAP_H
#define PERSIST_OWNMAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/folio.h"

struct ownmap {
	struct ownmap *older; /* a shorter mapping, kept because it may be in use */
	unsigned char *base;
	size_t len;
	/* Pages whose folios were split before a store, and those split after a write-back: a folio
	 * that was dirty at the store gets a second chance. */
	struct folio_marks stored, written_back;
};

struct ownmap_source {
	int path_fd; /* O_PATH */
	dev_t st_dev;
	ino_t st_ino; /* from fstat() of path_fd */
	dev_t map_dev;
	ino_t map_ino; /* from mappings of the file */
};

/*
 * Open and map the file up to `end` at least. Waits as long as the file system does to open the
 * file. Returns 0 or -errno: the file cannot be opened and mapped now; -ESTALE: the descriptor
 * leads to another file.
 */
int ownmap_open(const struct ownmap_source *from, uint64_t end, struct ownmap **out);
/* Map the same description up to `end` at least. The new mapping owns `older`. */
int ownmap_extend(struct ownmap *older, uint64_t end, struct ownmap **out);
/* Delete the mapping and all older ones. Accepts NULL. */
void ownmap_delete(struct ownmap *map);
/* In a forked child, which has no such mappings: only forget them. */
void ownmap_forget(struct ownmap *map);

#endif
