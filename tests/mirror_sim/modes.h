/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * modes.h -- the rules that a run can break on purpose, one in each mode. A run must detect each
 * breach.
 */
#ifndef MIRROR_SIM_MODES_H
#define MIRROR_SIM_MODES_H

/* clang-format off */
#define SIM_MODES_LIST(X) \
	X(HONEST, "honest") \
	/* the specification's table of changed rules */ \
	X(SERVE_WITHOUT_SWAP, "serve-without-swap") \
	X(ACK_BEFORE_SHRINK, "ack-before-shrink") /* W6 */ \
	X(PROMISE_NOT_DURABLE, "promise-not-durable") /* W1 */ \
	X(EXPAND_UNEQUAL, "expand-unequal") \
	X(ANY_CANDIDATE, "any-candidate") \
	X(NO_EPOCH_CHECK, "no-epoch-check") /* data of former epochs are placed */ \
	X(NO_EQUALISE, "no-equalise") \
	X(SERVE_UNEQUAL, "serve-unequal") /* a primary serves before all of S are equal */ \
	X(NO_OWN_PROMISE, "no-own-promise") \
	X(SHRINK_WITHOUT_SWAP, "shrink-without-swap") \
	/* swaps without an answer */ \
	/* read back unchanged counts as "did not happen" */ \
	X(LATE_SWAPS_NAIVE, "late-swaps-naive") \
	/* a member that may have been added is not awaited */ \
	X(UNKNOWN_IGNORED, "unknown-ignored") \
	/* records */ \
	X(RANGES_NOT_RECORDED, "ranges-not-recorded") /* W9 */ \
	X(RETIRE_EARLY, "retire-early") /* records are dropped before `serving` is committed */ \
	X(LOST_RECORDS_TRUSTED, "lost-records-trusted") \
	X(HOT_LATE, "hot-late") /* W2: a slot is durable only before the acknowledgement */ \
	X(NO_INTENT, "no-intent") \
	X(DAMAGE_TRUSTED, "damage-trusted") /* W8: bad blocks count as clean */ \
	/* with -d: an extent becomes cold with unflushed stores */ \
	X(COOL_UNFLUSHED, "cool-unflushed") \
	/* with -d: a resync carries unflushed stores */ \
	X(DIRECT_JOIN_UNNAMED, "direct-join-unnamed") \
	/* W2 writes are not durable, or not in order */ \
	X(HOT_NOT_DURABLE, "hot-not-durable") /* W2 */ \
	X(HOT_FORGOTTEN, "hot-forgotten") /* W3: only stored bits count for an absent member */ \
	X(BITS_NOT_DURABLE, "bits-not-durable") /* W3 */ \
	X(SYNCING_NOT_DURABLE, "syncing-not-durable") /* W4 */ \
	X(RESYNC_NOT_DURABLE, "resync-not-durable") /* W5 */ \
	X(BITS_CLEARED_EARLY, "bits-cleared-early") /* W5: a bit is cleared when its block is sent */ \
	X(CLEAN_TOO_EARLY, "clean-too-early") /* W7: clean before everything is flushed */ \
	X(OWN_COPY_NOT_DURABLE, "own-copy-not-durable") \
	/* a member confirms data that it has only placed */ \
	X(FLUSH_NOT_DURABLE, "flush-not-durable") \
	/* an operator's promotion */ \
	/* an order that failed, or was interrupted */ \
	X(ORDER_OUTLIVES_REQUEST, "order-outlives-request") \
	X(ORDER_OF_ANY_VIEW, "order-of-any-view") /* an order counts for any view */ \
	X(ORDER_ASKED_ONCE, "order-asked-once") /* no second check when the swap is sent */ \
	/* the rest */ \
	X(RESTORED_TRUSTED, "restored-trusted") /* with -r */ \
	/* with -r: a configuration raises seq, which hides the restore */ \
	X(CONFIG_COUNTS, "config-counts") \
	X(SEEN_INSYNC_IGNORED, "seen-insync-ignored") /* with -r: a configuration may enlarge S */ \
	X(LEASE_FROM_ANSWER, "lease-from-answer") \
	X(NO_LEASE, "no-lease") \
	/* a promise is answered while data of former epochs may still be placed */ \
	X(FENCE_EARLY, "fence-early") \
	X(NO_LIVENESS, "no-liveness") /* an end does not notice a silent peer */ \
	X(JOIN_UNSETTLED, "join-unsettled") \
	X(OLD_BITS, "old-bits") /* no bits for flushes under way when a member is lost */ \
	/* a flush in parts */ \
	/* a flush operation covers only the part before it */ \
	X(PART_NOT_COVERED, "part-not-covered") \
	X(PART_NOT_WRITTEN_BACK, "part-not-written-back") /* the same for this host's file */ \
	X(PARTS_WAIT, "parts-wait") /* a part waits until earlier ones are written back */ \
	/* a set that grows */ \
	/* the register is changed before copies have room */ \
	X(GROW_UNRESERVED, "grow-unreserved") \
	X(GROW_NOT_DURABLE, "grow-not-durable") /* copies report room before the files have it */ \
	X(GROW_NOT_ZERO, "grow-not-zero") /* foreign data past the end become the set's */ \
	X(GROW_EARLY, "grow-early") /* a copy takes the size before the register has it */ \
	X(GROW_IGNORED, "grow-ignored") /* a copy is mapped with less than the register's size */ \
	X(GROW_SMALLER, "grow-smaller") /* a primary uses copies that are smaller */ \
	X(GROW_TAIL_TRUSTED, "grow-tail-trusted") /* a primary trusts the tail of a larger copy, whose content is in doubt */ \
	/* the primary's medium fails */ \
	/* a failed write-back counts as a success */ \
	X(LOCAL_FAILURE_IGNORED, "local-failure-ignored") \
	X(FAILED_COUNTS, "failed-counts") /* flushes are acknowledged with the failed copy in S */ \
	X(FAILED_SOURCE, "failed-source") /* the failed copy makes others equal */ \
	/* with -d: other members have the stores, so the flush succeeds */ \
	X(FAILED_DIRECT, "failed-direct")
/* clang-format on */

enum sim_mode {
#define SIM_MODE(name, text) SIM_##name,
	SIM_MODES_LIST(SIM_MODE)
#undef SIM_MODE
		SIM_MODES
};

#endif
