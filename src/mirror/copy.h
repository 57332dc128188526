/* SPDX-License-Identifier: BSD-3-Clause */
/* copy.h -- this host's copy of the file, as memory: what a flush writes and makes durable. */
#ifndef MIRROR_COPY_H
#define MIRROR_COPY_H

#include <librpma.h>

#include "base/folio.h"
#include "base/ownfd.h"
#include "mirror/commit.h"
#include "mirror/core/types.h"

struct copy {
	int fd;           /* -1: none */
	struct ownfd own; /* identity of fd's file */
	int sentinel;     /* another description of the file, for copy_knows_losses(); -1: none */
	uint8_t *shared;  /* its mapping, which a forked child does not have */
	uint64_t size;
	enum rpma_durability durability;
	bool is_direct; /* the application stores to the file, too */
	struct folio_marks stored;
	struct commit commit;
};

/* Takes over the descriptors. The sentinel (-1: none) serves copy_knows_losses() alone, because the
 * kernel reports a failure once to each description. Returns 0, or an RPMIRROR_E_* with *copy
 * closed. */
int copy_open(struct copy *copy, int fd, int sentinel, uint64_t size);
/* Takes over only the descriptor, which may be read-only. */
int copy_open_readonly(struct copy *copy, int fd, uint64_t size);
void copy_close(struct copy *copy);

/*
 * May copy_put_by_write() write the next bytes? Not to DAX or memory, where a store does all the
 * work, and not where a limit on the size of files would end the process. The answer holds for this
 * moment, as for ownfd_is_lost().
 */
bool copy_takes_writes(const struct copy *copy);
/*
 * Put bytes, which do not change meanwhile, into the file by pwrite(2). That makes only the written
 * blocks dirty, however large the folios of the page cache are. False: use copy_put(), because
 * these are few bytes, or not only aligned words, or because the write failed and a store will find
 * the cause.
 */
bool copy_put_by_write(const struct copy *copy, uint64_t offset, const uint8_t *src, uint64_t len);
/* The same by stores to the mapping, as copy_words(). They may fault. */
void copy_put(struct copy *copy, uint64_t offset, const uint8_t *src, uint64_t len);

/*
 * Have the kernel begin to write what these ranges span, so that copy_persist() has less to wait for.
 * No promise comes from it, and no error: the kernel's own threads may begin at any time as well.
 */
void copy_write_out(const struct copy *copy, const struct mirror_range *v, uint32_t n);

/* Make a normal list of ranges durable. 0 or -errno: then the copy has failed for good, as the
 * kernel may have dropped the pages. */
int copy_persist(struct copy *copy, const struct mirror_range *v, uint32_t n);

/* Has a write to the copy been lost since it was opened, or since the last call? *error: an
 * errno, or 0. False: unknown. */
bool copy_knows_losses(const struct copy *copy, int *error);

/* Is the copy in a page cache, of a medium? */
bool copy_has_cache(const struct copy *copy);
/* If copy_persist() runs in several threads at the same time, perhaps only one of them returns
 * an error that concerns all. */
bool copy_shares_errors(const struct copy *copy);

/*
 * Copy bytes whose places have the same offset in a word of 8 bytes, aligned words by one load and
 * one store each. Words at the edges are read whole, and only the bytes of the range are written.
 * Other threads may store to src meanwhile.
 */
void copy_words(uint8_t *dst, const uint8_t *src, uint64_t len);

#endif
