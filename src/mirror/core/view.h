/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * view.h -- the changes of a set's record that are permitted, and how two views relate.
 *
 * Each change works on a copy of the record as it was read, which then is offered to the register
 * by compare-and-swap. It gives the record the swap's own nonce (random, by which the swap is found
 * again when its answer is lost). Returns 0 or -errno; then the record is unchanged, and *why
 * (unless why is NULL) is a static text for people.
 *
 * Within an epoch records are ordered by seq, then by the configuration's number. The first grows
 * with the changes of the epoch's primary only, which never goes on from a record that is older
 * than one it knows; the second with those of operators, who would. So in a register that was
 * restored from a backup, and was changed since, seq stays behind what members have seen, or is the
 * same with members in S that they have seen out of it: a configuration takes members out of S
 * only.
 */
#ifndef MIRROR_CORE_VIEW_H
#define MIRROR_CORE_VIEW_H

#include "mirror/core/types.h"

/* A new set's first record: nobody is primary. `insync`: members whose copies are equal. */
int view_create(struct mirror_record *rec, const struct mirror_config *config, mirror_mask insync,
		uint64_t nonce, const char **why);

/* A new epoch, whose nonce is the swap's: `slot` is its primary and recovers; insync is unchanged.
 * -EPERM: it is not in-sync. */
int view_promote(struct mirror_record *rec, uint8_t slot, uint64_t nonce, const char **why);
/* A new epoch of a member that may lack what was acknowledged: insync is that member only. */
int view_force(struct mirror_record *rec, uint8_t slot, uint64_t nonce, const char **why);

/* By the primary `slot` only; else -ESTALE. All of insync are equal: its application may read. */
int view_serve(struct mirror_record *rec, uint8_t slot, uint64_t nonce, const char **why);
/* Members leave insync. -EBUSY: nobody, or fewer than
 * permitted, would be left (view_may_shrink). */
int view_shrink(struct mirror_record *rec, uint8_t slot, mirror_mask lost, uint64_t nonce,
		const char **why);
/* Members that are equal and get all flushes enter insync; serving only. */
int view_expand(struct mirror_record *rec, uint8_t slot, mirror_mask joined, uint64_t nonce,
		const char **why);
/* Nothing changes but seq and nonce: it ends the chances of a former swap without an answer. */
int view_supersede(struct mirror_record *rec, uint8_t slot, uint64_t nonce, const char **why);
/* Nobody is primary. clean: all is flushed, all of
 * insync are equal and name nothing that differs. */
int view_demote(struct mirror_record *rec, uint8_t slot, bool clean, uint64_t nonce,
		const char **why);

/*
 * The operator's tool, at any time. `config` says what is wanted, its number is ignored. A removed
 * member, and one whose copy is replaced (another id), leaves insync; a new one is outside of it.
 * -EBUSY: it is the primary. -EAGAIN: insync would be empty, or a member of it is removed
 * and fewer than min_copies would be left. -EINVAL: the size would shrink, the uuid differ, or what
 * is wanted is no configuration (view_config_is_valid).
 *
 * The lease changes only while there is no primary (-EBUSY): a primary stops by the lease that it
 * has begun with, and whoever follows waits by the one that it reads. The next promotion's swap
 * compares the whole record, so that its primary has the new one, and so has, after a new epoch,
 * everybody who watches it. min_copies does not rise above the members in-sync (-EAGAIN), and the
 * format of the record never falls. All else may change at any time: the primary's swaps compare
 * the record, so that none of them rests on a former one.
 */
int view_set_config(struct mirror_record *rec, const struct mirror_config *config, uint64_t nonce,
		    const char **why);
bool view_config_is_valid(const struct mirror_config *config, const char **why);
/* May flushes be acknowledged with so many copies left in-sync? Not with fewer than min_copies,
 * never with none, and not with the primary's alone where lonely forbids it. */
bool view_is_enough(unsigned left, unsigned min_copies, enum mirror_lonely lonely,
		    const char **why);
/* Would the rest of `insync` without `lost` be enough? */
bool view_may_shrink(const struct mirror_record *rec, mirror_mask lost, const char **why);

enum view_order {
	VIEW_SAME,
	VIEW_OLDER, /* the other one came before the record */
	VIEW_NEWER, /* the other one came after the record: this record is not the newest */
	VIEW_BRANCH /* the other one is not of the record's past nor of its future: split */
};

/*
 * A view that a member has seen, against the record as the register has it now. NEWER is normal
 * where a record was read before, and means `split` where it was read after the view was seen: the
 * register was restored from a backup. A view of no epoch (number 0) is OLDER.
 */
enum view_order view_compare(const struct mirror_record *rec, const struct mirror_view *seen);

static inline unsigned view_count(mirror_mask mask)
{
	return (unsigned)__builtin_popcount(mask);
}

#endif
