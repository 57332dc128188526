/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * view.h -- the permitted changes of a set's record, and the order of two views.
 *
 * Each function changes a copy of the record as it was read; the caller then offers the copy to
 * the register by compare-and-swap. The function gives the record the swap's own nonce, a random
 * number that identifies the swap if its answer is lost. It returns 0 or -errno; on failure the
 * record is unchanged, and *why (unless why is NULL) is a static text for people.
 *
 * Within an epoch records are ordered by seq, then by the configuration's number. Only the epoch's
 * primary raises seq, and it never continues from a record older than one it has read. Operators
 * raise the configuration's number, and may continue from an older record. So a register that was
 * restored from a backup, and changed afterwards, shows one of two signs. Either seq is lower than
 * in views that members have seen. Or seq is equal and the in-sync set contains members that those
 * views lack, although a configuration only takes members out of that set.
 */
#ifndef MIRROR_CORE_VIEW_H
#define MIRROR_CORE_VIEW_H

#include "mirror/core/types.h"

/* Make a new set's first record, without a primary. `insync`: members whose copies are equal. */
int view_create(struct mirror_record *rec, const struct mirror_config *config, mirror_mask insync,
		uint64_t nonce, const char **why);

/* Begin an epoch with the swap's nonce. `slot` becomes its primary and recovers; insync stays
 * unchanged. -EPERM: the member is not in-sync. */
int view_promote(struct mirror_record *rec, uint8_t slot, uint64_t nonce, const char **why);
/* Begin an epoch with a primary that may lack acknowledged data; afterwards insync has only that
 * member. */
int view_force(struct mirror_record *rec, uint8_t slot, uint64_t nonce, const char **why);

/* Begin to serve: all members in insync are equal, so the primary's application may read. -ESTALE:
 * `slot` is not the primary. */
int view_serve(struct mirror_record *rec, uint8_t slot, uint64_t nonce, const char **why);
/* Take members out of insync. -EBUSY: too few would be left (view_may_shrink). */
int view_shrink(struct mirror_record *rec, uint8_t slot, mirror_mask lost, uint64_t nonce,
		const char **why);
/* Add to insync members that are equal and get all flushes. Permitted only while serving. */
int view_expand(struct mirror_record *rec, uint8_t slot, mirror_mask joined, uint64_t nonce,
		const char **why);
/*
 * Before the epoch serves: take members out of insync, and put other members in, by one change.
 * The added members' copies are equal to the primary's. -EBUSY: too few copies would be left
 * (view_is_enough).
 */
int view_exchange(struct mirror_record *rec, uint8_t slot, mirror_mask lost, mirror_mask joined,
		  uint64_t nonce, const char **why);
/* Change only seq and nonce, so that a former swap without an answer can no longer happen. */
int view_supersede(struct mirror_record *rec, uint8_t slot, uint64_t nonce, const char **why);
/* End the epoch: the set has no primary from now on. clean: everything is flushed, all members in
 * insync are equal, and no record names a range that differs. */
int view_demote(struct mirror_record *rec, uint8_t slot, bool clean, uint64_t nonce,
		const char **why);

/*
 * Set a new configuration for the operator's tool, at any time. The number in `config` is ignored.
 * A member that is removed, or whose copy is replaced (another id), leaves insync; a new member
 * starts outside of insync. -EBUSY: such a member is the primary. -EAGAIN: insync would become
 * empty, or would lose a member and have fewer than min_copies left. -EINVAL: the size would
 * shrink, the uuid differs, or the configuration is invalid (view_config_is_valid).
 *
 * The lease changes only while there is no primary (-EBUSY): a primary stops according to the lease
 * with which it began, and its successor waits for the lease that it reads. The next promotion's
 * swap compares the whole record, so the next primary uses the new lease; each daemon that watches
 * the register uses the new lease from the new epoch on. min_copies must not exceed the number of
 * in-sync members (-EAGAIN), and the format of the record never falls. All other keys may change at
 * any time: the primary's swaps compare the record, so no swap depends on a former value.
 */
int view_set_config(struct mirror_record *rec, const struct mirror_config *config, uint64_t nonce,
		    const char **why);
bool view_config_is_valid(const struct mirror_config *config, const char **why);
/* Returns true if flushes may be acknowledged with `left` copies in-sync: at least min_copies, at
 * least one copy, and more than the primary's copy if `lonely` requires that. */
bool view_is_enough(unsigned left, unsigned min_copies, enum mirror_lonely lonely,
		    const char **why);
/* Returns true if enough members are left when `lost` leave insync. */
bool view_may_shrink(const struct mirror_record *rec, mirror_mask lost, const char **why);

enum view_order {
	VIEW_SAME,
	VIEW_OLDER, /* the other view came before the record */
	VIEW_NEWER, /* the other view came after the record, so the record is not the newest */
	/* the other view is neither in the record's past nor in its future: the set is split */
	VIEW_BRANCH
};

/*
 * Compare a view that a member has seen with the record that the register has now. VIEW_NEWER is
 * normal if the record was read before the member saw the view. If the record was read afterwards,
 * VIEW_NEWER means that the set is split: the register was restored from a backup. A view without
 * an epoch (number 0) is VIEW_OLDER.
 */
enum view_order view_compare(const struct mirror_record *rec, const struct mirror_view *seen);

static inline unsigned view_count(mirror_mask mask)
{
	return (unsigned)__builtin_popcount(mask);
}

#endif
