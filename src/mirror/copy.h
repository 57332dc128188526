/* SPDX-License-Identifier: BSD-3-Clause */
/* copy.h -- this host's copy of the file, as memory: what a flush writes and makes durable. */
#ifndef MIRROR_COPY_H
#define MIRROR_COPY_H

#include <librpma.h>

#include "base/ownfd.h"
#include "mirror/core/types.h"

struct copy {
	int fd;           /* -1: none */
	struct ownfd own; /* which file that is */
	int sentinel;     /* another description of the file, for copy_knows_losses(); -1: none */
	uint8_t *shared;  /* its mapping, which a forked child does not have */
	uint64_t size;
	enum rpma_durability durability;
	bool is_direct; /* the application stores to the file, too */
};

/* Takes over the descriptors; the sentinel is used for nothing else, as each description reports a
 * failure once; -1: there is none. 0 or an RPMIRROR_E_*; *copy is closed then. */
int copy_open(struct copy *copy, int fd, int sentinel, uint64_t size);
/* Only the descriptor, which may be read only. */
int copy_open_readonly(struct copy *copy, int fd, uint64_t size);
void copy_close(struct copy *copy);

/* Make a normal list of ranges durable. 0 or -errno: then the copy has failed for good, as the
 * kernel may have dropped the pages. */
int copy_persist(const struct copy *copy, const struct mirror_range *v, uint32_t n);

/* Has something that was written to the copy been lost since it was opened, or since this was asked
 * last? *error: an errno, or 0. False: it is not known. */
bool copy_knows_losses(const struct copy *copy, int *error);

/* Of copy_persist() by several threads at the same time, perhaps only one returns an error that is
 * all of theirs. */
bool copy_shares_errors(const struct copy *copy);

/*
 * Copy bytes whose places have the same offset in a word of 8 bytes, aligned words by one load and
 * one store each. Of the words at the edges all is read and only what belongs to the range is
 * written. Other threads may store to src meanwhile.
 */
void copy_words(uint8_t *dst, const uint8_t *src, uint64_t len);

#endif
