/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ownmap.h -- an open file description of our own, kept by a mapping that nobody accesses.
 *
 * The kernel reports a failed write-back once to each open file description. If ours were the
 * application's, its fsync() or msync(), or those of another process that shares the description,
 * would take the report, and our msync() would claim success for lost bytes. An msync() of the
 * mapping writes back the pages of the file, whoever made them dirty, and its report is ours
 * alone. It works without the application's mapping, too, and where that was made of a descriptor
 * that is read-only: there the kernel's msync() does nothing.
 *
 * The mapping begins at the file's beginning. No descriptor is left open.
 */
#ifndef PERSIST_OWNMAP_H
#define PERSIST_OWNMAP_H

#include <stdint.h>
#include <sys/types.h>

struct ownmap {
	struct ownmap *older; /* shorter, and still there because it may be in use */
	unsigned char *base;
	size_t len;
};

struct ownmap_source {
	int path_fd; /* O_PATH */
	dev_t st_dev;
	ino_t st_ino; /* what fstat() says of path_fd */
	dev_t map_dev;
	ino_t map_ino; /* what the kernel says of mappings of the file */
};

/*
 * Open and map the file up to `end` at least. Waits as long as the file system does to open the
 * file. 0 or -errno: no description can be had now; -ESTALE: the descriptor leads to another file.
 */
int ownmap_open(const struct ownmap_source *from, uint64_t end, struct ownmap **out);
/* The same description, mapped up to `end` at least. The new one counts as the owner of `older`. */
int ownmap_extend(struct ownmap *older, uint64_t end, struct ownmap **out);
/* With all that are older. Accepts NULL. */
void ownmap_delete(struct ownmap *map);
/* In the child of a fork(), which has no such mappings: only forget them. */
void ownmap_forget(struct ownmap *map);

#endif
