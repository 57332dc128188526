/* SPDX-License-Identifier: BSD-3-Clause */
/* modes.h -- what is broken on purpose, one rule each; every one must be noticed. */
#ifndef MIRROR_SIM_MODES_H
#define MIRROR_SIM_MODES_H

/* clang-format off */
#define SIM_MODES_LIST(X) \
	X(HONEST, "honest") \
	/* the spec's table of changed rules */ \
	X(SERVE_WITHOUT_SWAP, "serve-without-swap") \
	X(ACK_BEFORE_SHRINK, "ack-before-shrink") /* W6 */ \
	X(PROMISE_NOT_DURABLE, "promise-not-durable") /* W1 */ \
	X(EXPAND_UNEQUAL, "expand-unequal") \
	X(ANY_CANDIDATE, "any-candidate") \
	X(NO_EPOCH_CHECK, "no-epoch-check") /* data of former epochs is placed */ \
	X(NO_EQUALISE, "no-equalise") \
	X(SERVE_UNEQUAL, "serve-unequal") /* before all of S are equal */ \
	X(NO_OWN_PROMISE, "no-own-promise") \
	X(SHRINK_WITHOUT_SWAP, "shrink-without-swap") \
	/* swaps without an answer */ \
	X(LATE_SWAPS_NAIVE, "late-swaps-naive") /* read back, unchanged: it did not happen */ \
	X(UNKNOWN_IGNORED, "unknown-ignored") /* who may have been added is not waited for */ \
	/* records */ \
	X(RANGES_NOT_RECORDED, "ranges-not-recorded") /* W9 */ \
	X(RETIRE_EARLY, "retire-early") /* records go before `serving` is committed */ \
	X(LOST_RECORDS_TRUSTED, "lost-records-trusted") \
	X(HOT_LATE, "hot-late") /* W2: durable before the acknowledgement only */ \
	X(NO_INTENT, "no-intent") \
	X(DAMAGE_TRUSTED, "damage-trusted") /* W8: bad blocks are taken for clean */ \
	X(COOL_UNFLUSHED, "cool-unflushed") /* with -d: an extent turns cold with unflushed stores */ \
	X(DIRECT_JOIN_UNNAMED, "direct-join-unnamed") /* with -d: a resync carries such */ \
	/* what is not durable, or not in order */ \
	X(HOT_NOT_DURABLE, "hot-not-durable") /* W2 */ \
	X(HOT_FORGOTTEN, "hot-forgotten") /* W3: stored bits only count for an absent member */ \
	X(BITS_NOT_DURABLE, "bits-not-durable") /* W3 */ \
	X(SYNCING_NOT_DURABLE, "syncing-not-durable") /* W4 */ \
	X(RESYNC_NOT_DURABLE, "resync-not-durable") /* W5 */ \
	X(BITS_CLEARED_EARLY, "bits-cleared-early") /* W5: when a block is sent */ \
	X(CLEAN_TOO_EARLY, "clean-too-early") /* W7: before all is flushed */ \
	X(OWN_COPY_NOT_DURABLE, "own-copy-not-durable") \
	X(FLUSH_NOT_DURABLE, "flush-not-durable") /* a member confirms what it has only placed */ \
	/* an operator's promotion */ \
	X(ORDER_OUTLIVES_REQUEST, "order-outlives-request") /* that failed, or was interrupted */ \
	X(ORDER_OF_ANY_VIEW, "order-of-any-view") /* not of the one that was looked at */ \
	X(ORDER_ASKED_ONCE, "order-asked-once") /* not again when the swap is sent */ \
	/* the rest */ \
	X(RESTORED_TRUSTED, "restored-trusted") /* with -r */ \
	X(CONFIG_COUNTS, "config-counts") /* with -r: a configuration raises seq, which hides it */ \
	X(SEEN_INSYNC_IGNORED, "seen-insync-ignored") /* with -r: S may grow by a configuration */ \
	X(LEASE_FROM_ANSWER, "lease-from-answer") \
	X(NO_LEASE, "no-lease") \
	X(FENCE_EARLY, "fence-early") /* answered while former epochs' data may still be placed */ \
	X(NO_LIVENESS, "no-liveness") /* whose peer has gone silent does not notice */ \
	X(JOIN_UNSETTLED, "join-unsettled") \
	X(OLD_BITS, "old-bits") /* none for flushes under way when a member is lost */ \
	/* a flush in parts */ \
	X(PART_NOT_COVERED, "part-not-covered") /* a flush operation is of the part before it alone */ \
	X(PART_NOT_WRITTEN_BACK, "part-not-written-back") /* likewise, of the own file */ \
	X(PARTS_WAIT, "parts-wait") /* a part waits while those before it are not written back */ \
	/* a set that grows */ \
	X(GROW_UNRESERVED, "grow-unreserved") /* the register is changed before copies have room */ \
	X(GROW_NOT_DURABLE, "grow-not-durable") /* copies say that they have, the files do not yet */ \
	X(GROW_NOT_ZERO, "grow-not-zero") /* what somebody has behind the end becomes the set's */ \
	X(GROW_EARLY, "grow-early") /* a copy takes the size before the register has it */ \
	X(GROW_IGNORED, "grow-ignored") /* a copy is mapped with less than the register's size */ \
	X(GROW_SMALLER, "grow-smaller") /* a primary uses copies that are smaller */ \
	X(GROW_TAIL_TRUSTED, "grow-tail-trusted") /* and larger ones whose content is in doubt */ \
	/* the primary's medium fails */ \
	X(LOCAL_FAILURE_IGNORED, "local-failure-ignored") /* a write-back that failed is taken for one */ \
	X(FAILED_COUNTS, "failed-counts") /* flushes are acknowledged with the failed copy in S */ \
	X(FAILED_SOURCE, "failed-source") /* it makes others equal */ \
	X(FAILED_DIRECT, "failed-direct") /* with -d: others have what was stored to it: success */
/* clang-format on */

enum sim_mode {
#define SIM_MODE(name, text) SIM_##name,
	SIM_MODES_LIST(SIM_MODE)
#undef SIM_MODE
		SIM_MODES
};

#endif
