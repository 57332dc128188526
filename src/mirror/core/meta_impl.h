/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meta_impl.h -- declarations that the files meta*.c share: pairs of slots, and their records.
 *
 * Each write of a record uses the slot that does not hold the present record. Slot, little-endian:
 *
 *    0  magic 8     16  length of the body 4    24  done 8, not in the sum
 *    8  counter 8   20  CRC32C of the rest 4    32  body, zeros up to the end
 *
 * A write fills the other slot, with the next counter, and makes it durable; then it durably puts
 * that counter into `done` of the previous slot. An answer is allowed to depend on the record only
 * after both steps. So a slot with a wrong checksum is the rest of an unanswered write if `done` of
 * the other slot is zero. If `done` is not zero, an answered record is lost, which counts as
 * damage.
 */
#ifndef MIRROR_CORE_META_IMPL_H
#define MIRROR_CORE_META_IMPL_H

#include "base/cursor.h"
#include "mirror/core/meta.h"

#define META_SLOT_HEAD 32u

enum meta_found {
	META_FOUND,         /* the body is the newest record */
	META_FOUND_NOTHING, /* both slots are all zero */
	META_FOUND_OLDER,   /* damage; the body is the older record, if that record remains */
	META_FOUND_DAMAGED  /* damage; no record is left */
};

enum meta_found meta_pair_read(const struct meta_store *store, enum meta_pair_name pair,
			       struct meta_place *place, struct rcursor *body);
/* Write a record, and update the pair's struct meta_place. */
int meta_pair_write(struct meta *m, enum meta_pair_name pair, const struct wcursor *body);
/* Make the newest slot and its `done` mark durable. */
int meta_pair_settle(struct meta *m, enum meta_pair_name pair);

/* Encode and decode the bodies of records. The decoders return false for bytes that the encoders
 * never write. */
#define META_BODY_MAX 6112u
void meta_super_encode(const struct meta_super *super, struct wcursor *c);
bool meta_super_decode(struct rcursor *c, struct meta_super *super);
void meta_promise_encode(const struct meta_promise *promise, struct wcursor *c);
bool meta_promise_decode(struct rcursor *c, struct meta_promise *promise);
void meta_history_encode(const struct meta_history *history, struct wcursor *c);
bool meta_history_decode(struct rcursor *c, struct meta_history *history);
void meta_members_encode(const struct meta_members *members, struct wcursor *c);
bool meta_members_decode(struct rcursor *c, struct meta_members *members);

/* Call the store's persist(), and remember a failure. Only this function calls persist(). */
int meta_persist(struct meta *m, uint64_t offset, uint64_t len);

/* Ranges of the store that have to become durable. Neighbours within a page are joined. */
struct meta_span {
	uint64_t from, to;
};
int meta_span_add(struct meta *m, struct meta_span *span, uint64_t offset, uint64_t len);
int meta_span_end(struct meta *m, struct meta_span *span);

/* Build the index and the list of free slots, and set meta.damage. Returns 0 or -ENOMEM. */
int meta_hot_load(struct meta *m);
void meta_hot_fini(struct meta *m);
/* Free the slots whose words are damaged. */
int meta_hot_repair(struct meta *m);

void meta_bitmap_load(struct meta *m);
/* Write the bits of one extent in every bitmap, and add the written ranges to span. */
int meta_bitmap_persist_extent(struct meta *m, uint32_t extent, struct meta_span *span);

#endif
