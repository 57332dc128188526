/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * modes.h -- the rules that a run can break on purpose, one rule in each mode. The runs of a mode
 * must detect the breach. W1 to W9 are the rules in doc/mirror-format.md; S is the in-sync set; -r
 * and -d are options of the program.
 */
#ifndef MIRROR_SIM_MODES_H
#define MIRROR_SIM_MODES_H

/* clang-format off */
#define SIM_MODES_LIST(X) \
	X(HONEST, "honest") \
	/* --- rules of the specification --- */ \
	X(SERVE_WITHOUT_SWAP, "serve-without-swap") \
	X(ACK_BEFORE_SHRINK, "ack-before-shrink") /* W6 */ \
	X(PROMISE_NOT_DURABLE, "promise-not-durable") /* W1 */ \
	X(EXPAND_UNEQUAL, "expand-unequal") \
	X(ANY_CANDIDATE, "any-candidate") \
	X(NO_EPOCH_CHECK, "no-epoch-check") /* members accept data of earlier epochs */ \
	X(NO_EQUALISE, "no-equalise") \
	X(SERVE_UNEQUAL, "serve-unequal") /* a primary serves before all members of S are equal */ \
	X(NO_OWN_PROMISE, "no-own-promise") \
	X(SHRINK_WITHOUT_SWAP, "shrink-without-swap") \
	/* --- swaps of the register without an answer --- */ \
	/* an unchanged register counts as proof that the swap did not happen */ \
	X(LATE_SWAPS_NAIVE, "late-swaps-naive") \
	/* the primary does not wait for a member that its swap possibly added */ \
	X(UNKNOWN_IGNORED, "unknown-ignored") \
	/* --- records of differences --- */ \
	X(RANGES_NOT_RECORDED, "ranges-not-recorded") /* W9 */ \
	X(RETIRE_EARLY, "retire-early") /* records are dropped before `serving` is committed */ \
	X(LOST_RECORDS_TRUSTED, "lost-records-trusted") \
	/* W2: the slot becomes durable only just before the acknowledgement */ \
	X(HOT_LATE, "hot-late") \
	X(NO_INTENT, "no-intent") \
	/* W8: damaged blocks of the metadata count as clean */ \
	X(DAMAGE_TRUSTED, "damage-trusted") \
	/* with -d: an extent becomes cold although it has unflushed stores */ \
	X(COOL_UNFLUSHED, "cool-unflushed") \
	/* with -d: a resync copies unflushed stores without a record of them */ \
	X(DIRECT_JOIN_UNNAMED, "direct-join-unnamed") \
	/* W2: the writes of hot slots are not durable, or not in order */ \
	X(HOT_NOT_DURABLE, "hot-not-durable") /* W2 */ \
	/* W3: for an absent member only the stored bits count */ \
	X(HOT_FORGOTTEN, "hot-forgotten") \
	X(BITS_NOT_DURABLE, "bits-not-durable") /* W3 */ \
	X(SYNCING_NOT_DURABLE, "syncing-not-durable") /* W4 */ \
	X(RESYNC_NOT_DURABLE, "resync-not-durable") /* W5 */ \
	/* W5: a bit is cleared when its block is sent, not when the block is durable */ \
	X(BITS_CLEARED_EARLY, "bits-cleared-early") \
	/* W7: the copy is marked clean before all bytes are flushed */ \
	X(CLEAN_TOO_EARLY, "clean-too-early") \
	X(OWN_COPY_NOT_DURABLE, "own-copy-not-durable") \
	/* a member acknowledges data that it has placed but not written back */ \
	X(FLUSH_NOT_DURABLE, "flush-not-durable") \
	/* --- promotions that an operator orders --- */ \
	/* an order still has effect after it failed or was interrupted */ \
	X(ORDER_OUTLIVES_REQUEST, "order-outlives-request") \
	/* an order for one view permits a promotion in any view */ \
	X(ORDER_OF_ANY_VIEW, "order-of-any-view") \
	/* the daemon does not check the order again when the swap is sent */ \
	X(ORDER_ASKED_ONCE, "order-asked-once") \
	/* --- other rules --- */ \
	X(RESTORED_TRUSTED, "restored-trusted") /* with -r */ \
	/* with -r: a change of the configuration raises seq, which hides the restore */ \
	X(CONFIG_COUNTS, "config-counts") \
	/* with -r: a change of the configuration is allowed to enlarge S */ \
	X(SEEN_INSYNC_IGNORED, "seen-insync-ignored") \
	X(LEASE_FROM_ANSWER, "lease-from-answer") \
	X(NO_LEASE, "no-lease") \
	/* a member answers a promise while data of earlier epochs can still be placed */ \
	X(FENCE_EARLY, "fence-early") \
	X(NO_LIVENESS, "no-liveness") /* an end does not notice that its peer is silent */ \
	X(JOIN_UNSETTLED, "join-unsettled") \
	X(OLD_BITS, "old-bits") /* when a member is lost, unacknowledged flushes get no bits */ \
	/* --- a copy that is filled before its primary serves --- */ \
	/* the lost member stays in S together with the filled member */ \
	X(FILL_KEEPS_LOST, "fill-keeps-lost") \
	/* the ranges of the primary's own records are not compared */ \
	X(FILL_BY_BITMAP, "fill-by-bitmap") \
	/* --- flushes in parts --- */ \
	/* a flush operation covers only the part just before it */ \
	X(PART_NOT_COVERED, "part-not-covered") \
	/* the write-back of this host's file covers only the part just before it */ \
	X(PART_NOT_WRITTEN_BACK, "part-not-written-back") \
	X(PARTS_WAIT, "parts-wait") /* a part waits until earlier parts are written back */ \
	/* --- a set that grows --- */ \
	/* the register gets the new size before all copies have room */ \
	X(GROW_UNRESERVED, "grow-unreserved") \
	X(GROW_NOT_DURABLE, "grow-not-durable") /* a copy reports room before its files have it */ \
	X(GROW_NOT_ZERO, "grow-not-zero") /* foreign data past the end become data of the set */ \
	X(GROW_EARLY, "grow-early") /* a copy adopts the new size before the register has it */ \
	/* a copy is mapped although it is smaller than the register's size */ \
	X(GROW_IGNORED, "grow-ignored") \
	X(GROW_SMALLER, "grow-smaller") /* a primary uses copies that are smaller than the set */ \
	/* a primary trusts the tail of a larger copy, whose content is in doubt */ \
	X(GROW_TAIL_TRUSTED, "grow-tail-trusted") \
	/* --- the primary's medium fails --- */ \
	/* a failed write-back counts as a success */ \
	X(LOCAL_FAILURE_IGNORED, "local-failure-ignored") \
	X(FAILED_COUNTS, "failed-counts") /* flushes are acknowledged with the failed copy in S */ \
	X(FAILED_SOURCE, "failed-source") /* the failed copy makes other copies equal */ \
	/* with -d: the flush succeeds because other members have the stores */ \
	X(FAILED_DIRECT, "failed-direct")
/* clang-format on */

enum sim_mode {
#define SIM_MODE(name, text) SIM_##name,
	SIM_MODES_LIST(SIM_MODE)
#undef SIM_MODE
		SIM_MODES
};

#endif
