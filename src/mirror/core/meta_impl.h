/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meta_impl.h -- declarations that the files meta*.c share: pairs of slots, and their records.
 *
 * Each write of a record goes to the slot that does not hold the present record. Slot,
 * little-endian:
 *
 *    0  magic 8     16  length of the body 4    24  done 8, not in the sum
 *    8  counter 8   20  CRC32C of the rest 4    32  body, zeros up to the end
 *
 * A write fills the other slot, with the next counter, and makes it durable; then it durably puts
 * that counter into `done` of the previous slot. Only after that an answer may rest on the record.
 * A slot with a wrong checksum is therefore the rest of an unanswered write if the other slot's
 * `done` is zero. If `done` is not zero, an answered record is lost: damage.
 */
#ifndef MIRROR_CORE_META_IMPL_H
#define MIRROR_CORE_META_IMPL_H

#include "base/cursor.h"
#include "mirror/core/meta.h"

#define META_SLOT_HEAD 32u

enum meta_found {
	META_FOUND,         /* the body is the newest record */
	META_FOUND_NOTHING, /* both slots are all zero */
	META_FOUND_OLDER,   /* damage; the body is the remaining older record, if there is one */
	META_FOUND_DAMAGED  /* damage; no record is left */
};

uint32_t meta_pair_bytes(enum meta_pair_name pair); /* bytes of one slot */
uint64_t meta_slot_at(enum meta_pair_name pair, unsigned slot);

enum meta_found meta_pair_read(const struct meta_store *store, enum meta_pair_name pair,
			       struct meta_place *place, struct rcursor *body);
/* Writes a record and updates the pair's place. */
int meta_pair_write(struct meta *m, enum meta_pair_name pair, const struct wcursor *body);
/* Make the newest slot and its `done` mark durable. */
int meta_pair_settle(struct meta *m, enum meta_pair_name pair);

/* Bodies of records. decode returns false for bytes that encode never writes. */
#define META_BODY_MAX 6112u
void meta_super_encode(const struct meta_super *super, struct wcursor *c);
bool meta_super_decode(struct rcursor *c, struct meta_super *super);
void meta_promise_encode(const struct meta_promise *promise, struct wcursor *c);
bool meta_promise_decode(struct rcursor *c, struct meta_promise *promise);
void meta_history_encode(const struct meta_history *history, struct wcursor *c);
bool meta_history_decode(struct rcursor *c, struct meta_history *history);
void meta_members_encode(const struct meta_members *members, struct wcursor *c);
bool meta_members_decode(struct rcursor *c, struct meta_members *members);

/* Calls the store's persist(), and remembers a failure. No other function calls it. */
int meta_persist(struct meta *m, uint64_t offset, uint64_t len);

/* Collects ranges of the store that have to become durable, and joins neighbours within a page. */
struct meta_span {
	uint64_t from, to;
};
int meta_span_add(struct meta *m, struct meta_span *span, uint64_t offset, uint64_t len);
int meta_span_end(struct meta *m, struct meta_span *span);

/* The word of a slot in the table of hot extents. */
uint64_t meta_hot_word(uint32_t extent, uint16_t tick);
/* Returns false if the word is damaged or the extent is not below `extents`. word must not be 0. */
bool meta_hot_unword(uint64_t word, uint32_t extents, uint32_t *extent);
/* Builds the index and the list of free slots, and sets meta.damage. Returns 0 or -ENOMEM. */
int meta_hot_load(struct meta *m);
void meta_hot_fini(struct meta *m);
/* Damaged words become free slots. */
int meta_hot_repair(struct meta *m);

void meta_bitmap_load(struct meta *m);
void meta_bitmap_fini(struct meta *m);
/* Write the bits of one extent in every bitmap; add the written ranges to span. */
int meta_bitmap_persist_extent(struct meta *m, uint32_t extent, struct meta_span *span);

#endif
