/* SPDX-License-Identifier: BSD-3-Clause */
/* member_sync.c -- makes a copy equal by a resync: the records that become durable before the
 * first byte and after the last byte. */
#include <errno.h>
#include <inttypes.h>

#include "mirror/core/killpoint.h"
#include "mirror/core/member_impl.h"

#define MEMBER_EXTENTS_AT_ONCE 64

/* Returns false, with the verdict MEMBER_NO, if the range is not inside the copy. */
static bool member_has_range(const struct member *m, struct mirror_range range,
			     struct member_verdict *v)
{
	uint64_t size = m->meta->super.size;

	if (range.offset <= size && range.len <= size - range.offset)
		return true;
	member_no(v, MEMBER_OTHER_SIZE,
		  "a range ends at %" PRIu64 ", but the copy ends at %" PRIu64,
		  range.offset + range.len, size);
	return false;
}

/* Marks the extents of one range. */
static int member_mark_range(struct meta *meta, struct mirror_range range)
{
	uint32_t extents[MEMBER_EXTENTS_AT_ONCE], n = 0;
	uint64_t last = meta_extent_of(range.offset + range.len - 1);
	int rc = 0;

	for (uint64_t e = meta_extent_of(range.offset); !rc && e <= last; e++) {
		extents[n++] = (uint32_t)e;
		if (n < MEMBER_EXTENTS_AT_ONCE && e < last)
			continue;
		rc = meta_hot_mark(meta, extents, n);
		n = 0;
	}
	return rc;
}

void member_record_ranges(struct member *m, struct mirror_epoch epoch,
			  const struct mirror_range *ranges, uint32_t n, struct member_verdict *v)
{
	struct meta_super super = m->meta->super;
	int rc = 0;

	if (!member_is_promised(m, epoch, v) || !member_is_free(m, v))
		return;
	killpoint(KILLPOINT_w9_before);
	for (uint32_t i = 0; !rc && i < n; i++) {
		if (!ranges[i].len)
			continue;
		if (!member_has_range(m, ranges[i], v))
			return;
		rc = member_mark_range(m->meta, ranges[i]);
	}
	killpoint(KILLPOINT_w9_after);
	/* The table has too few slots for all extents: record that any byte may differ. */
	if (rc == -ENOSPC) {
		super.flags |= META_UNCERTAIN;
		rc = member_set_super(m, &super);
	}
	member_done(v, rc);
}

void member_set_uncertain(struct member *m, struct member_verdict *v)
{
	struct meta_super super = m->meta->super;

	super.flags |= META_UNCERTAIN;
	member_done(v, member_set_super(m, &super));
}

void member_resync_begin(struct member *m, struct mirror_epoch epoch, uint64_t source_id,
			 struct member_verdict *v)
{
	struct meta_super super = m->meta->super;
	int rc = 0;

	if (!member_is_promised(m, epoch, v) || !member_is_free(m, v) || !member_is_good(m, v))
		return;
	super.flags |= META_SYNCING;
	super.flags &= ~(uint32_t)(META_CLEAN | META_WAS_PRIMARY);
	super.source_id = source_id;
	super.source_epoch = epoch;
	killpoint(KILLPOINT_w4_before);
	if (member_has_bitmaps(m))
		rc = meta_bitmap_drop(m->meta, MIRROR_NO_SLOT);
	member_done(v, rc ? rc : member_set_super(m, &super)); /* rule W4 (doc/mirror-format.md) */
	killpoint(KILLPOINT_w4_after);
}

static bool member_is_target(const struct member *m, struct mirror_epoch epoch,
			     struct member_verdict *v)
{
	const struct meta_super *super = &m->meta->super;

	if (super->flags & META_SYNCING && mirror_epoch_is_equal(super->source_epoch, epoch))
		return true;
	member_no(v, MEMBER_NOT_BEGUN, "no resync was begun in epoch %s",
		  member_epoch_text(epoch).text);
	return false;
}

void member_may_clear(const struct member *m, struct mirror_epoch epoch, struct mirror_range range,
		      struct member_verdict *v)
{
	if (member_is_promised(m, epoch, v) && member_is_free(m, v) && member_is_good(m, v) &&
	    member_is_target(m, epoch, v) && member_has_range(m, range, v))
		member_yes(v);
}

static uint64_t member_last_flush(const struct member *m)
{
	const struct meta *meta = m->meta;
	struct intent_reader reader = {.ring = meta_ring(meta),
				       .size = meta->super.size,
				       .upto = meta->promise.epoch.number};

	return intent_last(&reader);
}

void member_resync_end(struct member *m, struct mirror_epoch epoch, struct member_verdict *v)
{
	struct meta_super super = m->meta->super;
	int rc;

	if (!member_is_promised(m, epoch, v) || !member_is_good(m, v) ||
	    !member_is_target(m, epoch, v))
		return;
	super.flags &= ~(uint32_t)(META_SYNCING | META_EMPTY | META_UNCERTAIN | META_UNKNOWN |
				   META_FORCED);
	super.source_id = 0;
	super.source_epoch = (struct mirror_epoch){0};
	super.epoch = epoch;
	super.acked = member_last_flush(m);
	super.retired_below = epoch.number;
	killpoint(KILLPOINT_w5_before);
	rc = member_set_super(m, &super); /* rule W5 (doc/mirror-format.md) */
	member_done(v, rc ? rc : meta_hot_retire(m->meta));
	killpoint(KILLPOINT_w5_after);
}

void member_retire(struct member *m, struct mirror_epoch epoch, enum member_retire why,
		   struct member_verdict *v)
{
	struct meta_super super = m->meta->super;
	bool is_held = super.holder.pid != 0;
	int rc = 0;

	if (!member_is_promised(m, epoch, v))
		return;
	if (super.flags & META_SYNCING) {
		member_no(v, MEMBER_IS_SYNCING, "a resync of the copy has not ended");
		return;
	}
	/* The retirement of the serving epoch came late: only these records name the flushes that
	 * the process did not finish, so keep them. */
	if (!is_held && why == MEMBER_SERVING && super.flags & META_WAS_PRIMARY &&
	    mirror_epoch_is_equal(super.epoch, epoch)) {
		member_no(v, MEMBER_NOT_BEGUN, "the process that asks has ended");
		return;
	}
	super.flags &= ~(uint32_t)(META_UNCERTAIN | META_UNKNOWN);
	super.acked = member_last_flush(m);
	super.retired_below = epoch.number;
	/* No lane is in use, and the records that former lanes placed in the ring are void. */
	if (why == MEMBER_CLEAN_END || is_held)
		super.used_boot = (struct mirror_uuid){0};
	if (why == MEMBER_CLEAN_END) {
		super.retired_below++;
		super.flags |= is_held ? 0 : META_CLEAN;
	}
	killpoint(KILLPOINT_retire_before);
	/* Free the slots first, because `clean` promises that no slot is used. */
	if (!is_held)
		rc = meta_hot_retire(m->meta);
	killpoint(KILLPOINT_retire_middle);
	member_done(v, rc ? rc : member_set_super(m, &super));
	killpoint(KILLPOINT_retire_after);
}

/* Returns true if the copy's state is in doubt for a reason other than the end of an epoch. */
static bool member_is_in_doubt(const struct member *m)
{
	const struct meta *meta = m->meta;

	return m->is_split || m->has_failed || meta->broken || meta->damage ||
	       meta->promise.is_lost ||
	       meta->super.flags & (META_SYNCING | META_FAILED | META_UNKNOWN | META_EMPTY);
}

static bool member_has_ended_well(const struct member *m, const struct mirror_record *rec)
{
	const struct mirror_view *view = &rec->view;
	const struct meta_super *super = &m->meta->super;

	return view->phase == MIRROR_PHASE_NONE && view->clean && view->epoch.number &&
	       view->insync & MIRROR_BIT(super->slot) &&
	       rec->config.members[super->slot].id == super->member_id &&
	       mirror_epoch_is_equal(m->meta->promise.epoch, view->epoch) &&
	       mirror_epoch_is_equal(super->epoch, view->epoch);
}

void member_end_clean(struct member *m, const struct mirror_record *rec, struct member_verdict *v)
{
	const struct meta_super *super = &m->meta->super;
	struct mirror_epoch epoch = rec->view.epoch;
	bool is_recorded = super->retired_below > epoch.number && super->flags & META_CLEAN &&
			   !(super->flags & META_UNCERTAIN);
	bool is_in_use = super->holder.pid || m->lanes || m->bulks;

	if (is_recorded || is_in_use || member_is_in_doubt(m) || !member_has_ended_well(m, rec))
		member_yes(v);
	else
		member_retire(m, epoch, MEMBER_CLEAN_END, v);
}
