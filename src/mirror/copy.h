/* SPDX-License-Identifier: BSD-3-Clause */
/* copy.h -- this host's copy of the file, as memory: a flush writes to it and makes the bytes
 * durable. */
#ifndef MIRROR_COPY_H
#define MIRROR_COPY_H

#include <librpma.h>

#include "base/folio.h"
#include "base/ownfd.h"
#include "mirror/commit.h"
#include "mirror/core/types.h"

struct copy {
	int fd;           /* descriptor of the file; -1: none */
	struct ownfd own; /* identity of the file that fd had when it was opened */
	/* descriptor of another open file description, for copy_knows_losses(); -1: none */
	int sentinel;
	uint8_t *shared; /* mapping of the file, which a forked child does not have */
	uint64_t size;
	enum rpma_durability durability;
	bool is_direct; /* the application stores to the file as well */
	struct folio_marks stored;
	struct commit commit;
};

/* Open the copy. The call takes over the descriptors. The sentinel (-1: none) is used only by
 * copy_knows_losses(), because the kernel reports a failure once to each open file description.
 * Returns 0, or an RPMIRROR_E_* with *copy closed. */
int copy_open(struct copy *copy, int fd, int sentinel, uint64_t size);
/* Open the copy for reading. The call takes over the descriptor, which may be read-only. */
int copy_open_readonly(struct copy *copy, int fd, uint64_t size);
void copy_close(struct copy *copy);

/*
 * Put bytes into the file by stores to the mapping, in the manner of copy_words(). Do not replace
 * the stores by pwrite(2): the kernel's copy can be interrupted within a word, and a write-back
 * that is under way would then write half of the word. The stores may fault.
 */
void copy_put(struct copy *copy, uint64_t offset, const uint8_t *src, uint64_t len);

/*
 * Let the kernel begin to write the span of these ranges, so that copy_persist() waits for less.
 * The call neither promises durability nor reports an error: the kernel's own threads may begin to
 * write at any time, too.
 */
void copy_write_out(const struct copy *copy, const struct mirror_range *v, uint32_t n);

/* Make a normal list of ranges (core/ranges.h) durable. Returns 0 or -errno. After a failure the
 * copy has failed for good, because the kernel may have dropped the pages. */
int copy_persist(struct copy *copy, const struct mirror_range *v, uint32_t n);

/* Find out whether a write to the copy was lost since the copy was opened, or since the last call.
 * *error: an errno, or 0. Returns false if this is unknown. */
bool copy_knows_losses(const struct copy *copy, int *error);

/* Returns true if the copy is a file with a page cache and a medium. */
bool copy_has_cache(const struct copy *copy);
/* Returns true if each copy_persist() makes all bytes durable that were put before the call, even
 * outside the ranges that are passed. */
bool copy_persists_all(const struct copy *copy);
/* Returns true if an error that concerns several simultaneous calls of copy_persist() may be
 * returned by only one of them. */
bool copy_shares_errors(const struct copy *copy);

/*
 * Copy bytes between two places with the same offset in a word of 8 bytes: each aligned word by
 * one load and one store. Words at the edges are read as a whole, but only the bytes of the range
 * are written. Other threads may store to src meanwhile.
 */
void copy_words(uint8_t *dst, const uint8_t *src, uint64_t len);

#endif
