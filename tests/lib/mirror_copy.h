/* SPDX-License-Identifier: BSD-3-Clause */
/* mirror_copy.h -- for tests: the record of a small set, and the metadata of one of its copies. */
#ifndef TESTLIB_MIRROR_COPY_H
#define TESTLIB_MIRROR_COPY_H

#include "lib/two_layers.h"
#include "mirror/core/types.h"

#define COPY_SIZE (64u << 20) /* 32 extents */
#define COPY_SLOT 1           /* the slot of this copy; the three members have the slots 0 to 2 */

struct mirror_uuid copy_uuid(uint8_t first);
struct mirror_epoch copy_epoch(uint64_t number);
/* Make a record: three in-sync members, no primary, epoch 0. */
void copy_record(struct mirror_record *rec);
/* Make the superblock of the copy in COPY_SLOT, for the record of copy_record(). */
void copy_super(struct meta_super *super);
void copy_members(struct meta_members *members);
/* Make new metadata, and make them durable. */
void copy_create(struct two_layers *t, uint64_t seed);
/* Load the metadata, and assert success. */
void copy_load(struct meta *m, struct two_layers *t);

#endif
