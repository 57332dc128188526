/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meta.h -- the metadata of a copy: its set and member, its promise, the blocks that may differ;
 * pure.
 *
 * The metadata are a file beside the data file. The daemon maps this file, and so does the library
 * while it holds the copy. doc/mirror-format.md has the layout. Here the file is a store: memory,
 * and a function that makes a part of the memory durable. A setter returns 0 after its change is
 * durable, else a negative errno. After a failure the store counts as broken, and every later
 * setter fails with the same errno.
 *
 * Owners: superblock, promise and history belong to the daemon. Members (with the base of the
 * bitmaps), hot slots and bitmaps belong to the library while it holds the copy, else to the
 * daemon; a new owner calls meta_reload(). Primaries write the ring over the network. Only one
 * thread at a time may use a struct meta. Only meta_load() and meta_reload() allocate.
 *
 * W8: damaged metadata never count as clean. A block with a wrong checksum sets a bit in
 * meta.damage, unless the block is provably the rest of a write that was never answered
 * (meta_impl.h). With any bit set, the copy is `unknown` until it was compared as a whole.
 */
#ifndef MIRROR_CORE_META_H
#define MIRROR_CORE_META_H

#include <stddef.h>

#include "base/error.h"
#include "mirror/core/finding.h"
#include "mirror/core/intent.h"
#include "mirror/core/types.h"

/* Offsets in the file. */
#define META_SUPER_AT   0x0000u /* two slots of 4 KiB */
#define META_PROMISE_AT 0x2000u /* two slots of 4 KiB */
#define META_HISTORY_AT 0x4000u /* two slots of 2 KiB */
#define META_MEMBERS_AT 0x5000u /* two slots of 6 KiB */
#define META_HOT_AT     0x8000u
#define META_RING_AT    0x18000u
#define META_BITMAPS_AT (META_RING_AT + INTENT_RING_BYTES)

#define META_HOT_SLOTS   8192u
#define META_HOT_DEFAULT 256u

struct meta_store {
	void *base; /* aligned to 8 bytes */
	uint64_t len;
	int (*persist)(void *arg, uint64_t offset, uint64_t len); /* returns 0 or -errno */
	void *arg;
};

enum meta_flag {
	/* the copies do not differ outside of the stored bitmaps and hot slots */
	META_CLEAN = 1 << 0,
	META_SYNCING = 1 << 1, /* a resync to this copy has not ended: the copy is not usable */
	META_FAILED = 1 << 2,  /* the medium or a write-back has failed */
	META_WAS_PRIMARY = 1 << 3,
	/* promoted without proof that the copy has all acknowledged bytes */
	META_FORCED = 1 << 4,
	META_UNCERTAIN = 1 << 5, /* any byte may differ: records of the differences are lost */
	META_EMPTY = 1 << 6,     /* the copy was created and has no data yet */
	META_UNKNOWN =
		1 << 7, /* the metadata were damaged or foreign (W8): promotion only by force */
};

/* The process that maps the copy. */
struct meta_holder {
	uint64_t pid;        /* number of the process; 0: no process */
	uint64_t start_time; /* start time of the process, as in /proc/PID/stat */
	struct mirror_uuid boot;
	/* version of the program that the process runs (wire/packet.h); 0: unknown */
	uint64_t image;
};

/* Identity of the two files when the daemon exited in good order. A restored or swapped file has
 * another inode or another time of its last change. Zero: unknown. */
struct meta_files {
	uint64_t data_inode, meta_inode;
	uint64_t data_time_ns;
};

/* The last comparison of the set's copies that a primary of this host made. */
struct meta_scrub {
	/* end of the comparison by CLOCK_REALTIME; before the first comparison: the time from
	 * which the interval counts */
	uint64_t time_s;
	/* bytes, summed over all copies; compared 0: no comparison was made yet */
	uint64_t compared, different;
};

struct meta_super {
	/* the set's format (core/version.h); in meta_create() 0 stands for the lowest */
	uint32_t format;
	/* feature bits; meta_load() refuses a file with an unknown bit in incompat */
	uint32_t compat, incompat;
	struct mirror_uuid uuid; /* UUID of the set */
	char set[MIRROR_SET_MAX + 1];
	uint64_t member_id; /* id of this copy */
	uint8_t slot;       /* slot of the copy's member */
	uint64_t size;      /* size of the data file */
	/* both files are long enough for this size; the bytes beyond `size` are zeros */
	uint64_t room;
	uint64_t address;          /* address at which to map the file; 0: anywhere */
	uint32_t hot_slots;        /* number of slots in the table of hot extents */
	uint32_t flags;            /* enum meta_flag */
	struct mirror_epoch epoch; /* the last epoch whose flushes the copy holds, or may hold */
	/* with META_SYNCING: id of the copy from which the resync copies */
	uint64_t source_id;
	struct mirror_epoch source_epoch;
	/* number of the last flush in the ring when the ring's records became void */
	uint64_t acked;
	uint64_t retired_below; /* records of epochs with smaller numbers are void */
	struct meta_holder holder;
	struct meta_files files;
	/* the host's boot in which lanes were granted; zero: no lane since the last clean end */
	struct mirror_uuid used_boot;
	struct meta_scrub scrub;
	struct findings findings; /* result of comparisons made by a primary of this host */
};

/* Key figures of the newest record that was read from the register. */
struct meta_seen {
	uint64_t revision;
	struct mirror_view view;
	uint64_t config_number;
};

struct meta_promise {
	struct mirror_epoch epoch; /* lower epochs are refused */
	/* the promise was damaged, so the register must be read before the next promise */
	bool is_lost;
	struct meta_seen seen; /* the newest record that was seen */
};

struct meta_history {
	uint32_t count;
	struct mirror_ended ended[MIRROR_HISTORY]; /* epochs that have ended, the newest first */
};

struct meta_member {
	uint64_t id; /* 0: the slot is free */
	char name[MIRROR_NAME_MAX + 1];
	char host[MIRROR_HOST_MAX + 1];
	uint16_t port;
	/*
	 * This member has a bitmap of the changes since the member left. The member has flushes up
	 * to epoch `base`, and none of the epoch in which the bitmap was started.
	 */
	bool has_bitmap;
	struct mirror_epoch base, started;
};

struct meta_members {
	uint64_t config_number;
	struct meta_member members[MIRROR_MEMBERS_MAX];
};

enum meta_pair_name {
	META_PAIR_SUPER,
	META_PAIR_PROMISE,
	META_PAIR_HISTORY,
	META_PAIR_MEMBERS,
	META_PAIRS
};

enum meta_damage {
	META_DAMAGED_SUPER = 1 << META_PAIR_SUPER,
	META_DAMAGED_PROMISE = 1 << META_PAIR_PROMISE,
	META_DAMAGED_HISTORY = 1 << META_PAIR_HISTORY,
	META_DAMAGED_MEMBERS = 1 << META_PAIR_MEMBERS,
	META_DAMAGED_HOT = 1 << META_PAIRS,
};

/* The slot that holds a pair's newest record. */
struct meta_place {
	uint64_t counter; /* number of the pair's last write; 0: no slot is valid */
	uint8_t slot;     /* index of the slot, 0 or 1 */
};

/* Any code may read the members; only the functions below change them. */
struct meta {
	struct meta_store store;
	int broken;      /* 0, or the -errno that a persist call failed with */
	unsigned damage; /* enum meta_damage */
	struct meta_super super;
	struct meta_promise promise;
	struct meta_history history;
	struct meta_members members;
	struct meta_place places[META_PAIRS];
	/* the table of hot slots */
	uint16_t *hot_index; /* for each extent: 1 + its slot, or 0 */
	/* for each slot: true if it was marked since meta_hot_victims() passed it */
	uint8_t *hot_recent;
	uint16_t *hot_free; /* stack of free slots */
	uint32_t extents, hot_count, hot_free_count, hot_hand;
	uint32_t hot_top; /* all slots from this number on are unused */
	uint16_t hot_tick;
	/* the bitmaps */
	uint64_t blocks, plane_bytes;
	uint64_t bitmap_counts[MIRROR_MEMBERS_MAX]; /* number of bits that are set */
};

/* ---- the metadata as a whole ---- */

/* Returns the length of the metadata file for a data file of that size. */
uint64_t meta_size_for(uint64_t size);
/* Write new metadata into a store of zeros, with at least meta_size_for(super->size) bytes.
 * Everything is durable on return; the superblock is written last. super->flags are kept, and
 * hot_slots 0 stands for the default. */
int meta_create(const struct meta_store *store, const struct meta_super *super,
		const struct meta_members *members);
/* Load the metadata, without writing. Returns 0 even if there is damage. On failure err->cause is
 * ENODATA (no metadata: a creation did not end), EBADMSG (both superblocks are damaged),
 * EPROTONOSUPPORT (another format or an unknown feature), EMSGSIZE (the store is shorter than its
 * set needs) or ENOMEM. */
int meta_load(struct meta *m, const struct meta_store *store, struct error *err);
/* Read hot slots, members and bitmaps again, after they belonged to another process. Returns 0 or
 * -ENOMEM. */
int meta_reload(struct meta *m);
/* Make all records durable, because a process may have died between a write and its write-back.
 * Call this before any answer depends on a record. */
int meta_settle(struct meta *m);
void meta_fini(struct meta *m);
/* Write the names of the damaged parts to text, for instance "superblock, promise". */
void meta_damage_text(unsigned damage, char *text, size_t room);

/* ---- durable setters of the daemon ---- */

int meta_set_super(struct meta *m, const struct meta_super *super);
int meta_set_promise(struct meta *m, const struct meta_promise *promise);
int meta_set_history(struct meta *m, const struct meta_history *history);
int meta_set_members(struct meta *m, const struct meta_members *members);
/* Store the configuration's members. A copy that stays in the configuration keeps its bitmap. */
int meta_keep_members(struct meta *m, const struct mirror_config *config);
/* Store the size of a set that has grown; the store must be long enough. After a crash the size is
 * the old or the new one. If the growth moves the bitmaps in the file, all bitmaps are dropped
 * first. Returns 0, -EMSGSIZE, -EINVAL (the new size is smaller) or -ENOMEM. */
int meta_set_size(struct meta *m, uint64_t size);
/* Set META_UNKNOWN durably, then rewrite every damaged block with the fields that could be read.
 * A lost promise is marked as lost. */
int meta_repair(struct meta *m);

/* ---- hot extents (W2, W3) ---- */

static inline uint32_t meta_extent_of(uint64_t offset)
{
	return (uint32_t)(offset / MIRROR_EXTENT);
}

/* Returns true if the extent is hot. Costs only one load, because each flush makes this call. */
static inline bool meta_hot_is(const struct meta *m, uint32_t extent)
{
	return m->hot_index[extent];
}

/* W2: on return the slots of all these extents are durable; neighbouring slots need only one
 * persist call. For an extent that is already hot, the call costs a load and a store. -ENOSPC: too
 * few slots are free, and nothing has changed (see meta_hot_victims). Duplicates are permitted. */
int meta_hot_mark(struct meta *m, const uint32_t *extents, uint32_t n);
/* Choose up to n extents to make cold, beginning with those that were marked the longest time ago
 * (second chance). Returns their number. is_busy (may be NULL) returns true for an extent that must
 * stay hot. */
uint32_t meta_hot_victims(struct meta *m, uint32_t *extents, uint32_t n,
			  bool (*is_busy)(void *arg, uint32_t extent), void *arg);
/* W3: make the bits of these extents durable in every bitmap, then free the extents' slots. The
 * extents must be equal on all members that get flushes. */
int meta_hot_cool(struct meta *m, const uint32_t *extents, uint32_t n);
/*
 * For extents that become hot while another thread uses the table (core/extents.h).
 * meta_hot_reserve() takes up to n free slots out of the table and returns their number.
 * meta_hot_fill() makes a slot name an extent, durably (W2), and returns 0 or -errno.
 * meta_hot_fill() is allowed during every other call, even in a signal handler, and its failure
 * does not make the store count as broken. meta_hot_adopt() enters filled slots into the index; if
 * an extent already has a slot, the new slot becomes free.
 */
uint32_t meta_hot_reserve(struct meta *m, uint16_t *slots, uint32_t n);
int meta_hot_fill(const struct meta *m, uint16_t slot, uint32_t extent);
void meta_hot_adopt(struct meta *m, uint16_t slot, uint32_t extent);
/* Note that the extent is in use: if it is hot, meta_hot_victims() skips it once. */
void meta_hot_note(struct meta *m, uint32_t extent);
/* Lists at most n hot extents, ascending. Returns the number of all hot extents. */
uint32_t meta_hot_list(const struct meta *m, uint32_t *extents, uint32_t n);
/* Set the bits of every hot extent in every bitmap, durably. Call this after an unclean end, and
 * before hot slots are given up. */
int meta_hot_fold(struct meta *m);
/* Call meta_hot_fold(), then free all slots, durably. */
int meta_hot_retire(struct meta *m);

/* ---- bitmaps: blocks that changed while a member was away ---- */

/*
 * Begin the bitmap of a member, durably. base: the epoch of the member's copy. now: the current
 * epoch. bits (words of 64 blocks): every block that the member lacks; NULL: none, because the
 * member was in-sync until now. The bits become durable before the bitmap counts. If a swap
 * excludes the member, call this before the swap, so that no restart can lose the changes after the
 * swap.
 */
int meta_bitmap_start(struct meta *m, uint8_t slot, struct mirror_epoch base,
		      struct mirror_epoch now, const uint64_t *bits);
/* epoch: the epoch in the superblock of the member's copy. Returns true if the bitmap contains all
 * changes since that state of the copy. Otherwise the whole file has to be compared, for instance
 * because another primary dropped the bitmap (meta_bitmap_drop). */
bool meta_bitmap_is_usable(const struct meta *m, uint8_t slot, struct mirror_epoch epoch);
/*
 * End the bitmap of a member that is back in the in-sync set, or all bitmaps (MIRROR_NO_SLOT),
 * durably.
 */
int meta_bitmap_drop(struct meta *m, uint8_t slot);
/* W5: durably clear all bits and make the current epoch the base, because the member holds all
 * bytes. */
int meta_bitmap_clear(struct meta *m, uint8_t slot, struct mirror_epoch now);

/* Set every block that the range touches, in memory (W3 makes it durable). */
void meta_bitmap_set(struct meta *m, uint8_t slot, struct mirror_range range);
/* Set every block that the range touches in the bitmap of every member that has a bitmap. */
void meta_bitmap_set_all(struct meta *m, struct mirror_range range);
/* Clear the bits of the blocks that lie completely in the range. */
void meta_bitmap_unset(struct meta *m, uint8_t slot, struct mirror_range range);
/* Returns the number of bits that are set. */
uint64_t meta_bitmap_count(const struct meta *m, uint8_t slot);
/* Finds the first run of set blocks at or after `from` (bytes), at most max_len long. Returns
 * false if there is no set block. */
bool meta_bitmap_next(const struct meta *m, uint8_t slot, uint64_t from, uint64_t max_len,
		      struct mirror_range *run);
/* Make the whole bitmap durable (at a clean end). */
int meta_bitmap_persist(struct meta *m, uint8_t slot);

/* ---- the ring ---- */

static inline uint8_t *meta_ring(const struct meta *m)
{
	return (uint8_t *)m->store.base + META_RING_AT;
}

#endif
