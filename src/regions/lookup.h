/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lookup.h -- checks that a name still leads to the open file, and that the file has the same
 * size.
 *
 * A separate thread makes the check, because the calling loop has to serve other clients. A file
 * system can block a thread, for instance a network file system that hangs, or a frozen file
 * system. The results removed, replaced and truncated are final: bytes written meanwhile are lost
 * even if the name leads to the file again. The thread also writes the file's record, because that
 * can block, too.
 */
#ifndef REGIONS_LOOKUP_H
#define REGIONS_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>

#include "regions/file_record.h"

enum lookup_result {
	LOOKUP_FOUND,
	LOOKUP_REMOVED,  /* removed or renamed: the name leads nowhere */
	LOOKUP_REPLACED, /* the name leads to another file */
	LOOKUP_TRUNCATED,
	LOOKUP_FAILED, /* the check failed, see error; the next check may have another result */
};

struct lookup_answer {
	uint64_t ticket; /* all questions up to this ticket are answered */
	enum lookup_result result;
	int error; /* with LOOKUP_FAILED: an errno */
	/* errno of the latest lookup_store() up to that ticket; 0: the record is stored */
	int store_error;
	/* free and total bytes of the file's file system; room 0: unknown, or the region is
	 * memory */
	uint64_t avail, room;
};

struct lookup;

/*
 * The thread writes the record at `place`. notify_fd, an eventfd, counts the answers. The
 * descriptor and the path are copied; a relative path is made absolute. fd -1: memory, which has
 * no name and counts as found. Returns NULL with errno on failure.
 */
struct lookup *lookup_new(const char *path, int fd, uint64_t size,
			  const struct file_record_place *place, int notify_fd);
/* Delete the lookup. If its thread hangs in the file system, the memory is not freed, because the
 * thread still uses it. */
void lookup_delete(struct lookup *l);
/* Returns the path of the lookup. */
const char *lookup_path(const struct lookup *l);

/* Ask for a check. durable: also put the name on the disk if the check finds it. Returns a
 * ticket. */
uint64_t lookup_ask(struct lookup *l, bool durable);
/* Put the record on the disk if the name still leads to the file, then check the name. If an
 * earlier record is not stored yet, this record replaces it. Returns a ticket. */
uint64_t lookup_store(struct lookup *l, const struct file_record *record, bool durable);
void lookup_get(struct lookup *l, struct lookup_answer *latest);
/* Ask for a check, and wait at most ms for the answer. If an earlier wait timed out and no answer
 * has come since, the call does not wait. Returns false if *latest is older than the question. */
bool lookup_wait(struct lookup *l, unsigned ms, struct lookup_answer *latest);

#endif
