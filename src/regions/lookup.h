/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lookup.h -- does a name still lead to the open file, with the same size?
 *
 * A separate thread looks, because a file system may block it (a hung network file system, a frozen
 * one), and the loop that asks serves other clients. The results removed, replaced and truncated
 * are final: bytes written meanwhile are lost even if the name comes back. The thread also writes
 * the file's record, for the same reason.
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
	LOOKUP_FAILED, /* the look failed, see error; this result may change later */
};

struct lookup_answer {
	uint64_t ticket; /* all questions up to this ticket are answered */
	enum lookup_result result;
	int error; /* errno of LOOKUP_FAILED */
	/* errno of the latest lookup_store() up to the ticket; 0: the record is stored */
	int store_error;
	uint64_t avail, room; /* bytes of the file's file system; room 0: unknown, or memory */
};

struct lookup;

/*
 * The record is written at place. notify_fd, an eventfd, counts the answers. The descriptor and the
 * path are copied; a relative path is resolved now. fd -1: memory, which has no name and is always
 * found. Returns NULL with errno set on failure.
 */
struct lookup *lookup_new(const char *path, int fd, uint64_t size,
			  const struct file_record_place *place, int notify_fd);
/* Delete the lookup. If its thread hangs in the file system, the thread is left behind. */
void lookup_delete(struct lookup *l);
/* The path of the lookup. */
const char *lookup_path(const struct lookup *l);

/* Ask for a look. durable: also put the name on the disk if the look finds it. Returns a ticket. */
uint64_t lookup_ask(struct lookup *l, bool durable);
/* Put the record on the disk if the name still leads to the file, then look. The record replaces an
 * earlier one that still waits. Returns a ticket. */
uint64_t lookup_store(struct lookup *l, const struct file_record *record, bool durable);
void lookup_get(struct lookup *l, struct lookup_answer *latest);
/* Ask for a look, and wait at most ms for the answer. Does not wait if an earlier answer is already
 * overdue by ms. Returns false if *latest is older than the question. */
bool lookup_wait(struct lookup *l, unsigned ms, struct lookup_answer *latest);

#endif
