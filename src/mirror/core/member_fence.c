/* SPDX-License-Identifier: BSD-3-Clause */
/* member_fence.c -- makes promises, reports on the copy after a promise, and decides which
 * connections are granted. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "mirror/core/killpoint.h"
#include "mirror/core/member_impl.h"
#include "mirror/core/ranges.h"

/* ---- promise ---- */

/* Returns the higher one of two epochs: the promised epoch, and the epoch for which fencing has
 * begun. */
static struct mirror_epoch member_highest(const struct member *m)
{
	struct mirror_epoch promised = m->meta->promise.epoch;

	return m->fencing.number > promised.number ? m->fencing : promised;
}

/* Refuse an epoch that is not higher than the promised one. */
static void member_refuse_epoch(const struct member *m, struct mirror_epoch epoch,
				struct member_verdict *v)
{
	struct mirror_epoch known = member_highest(m);
	struct member_epoch_text asked = member_epoch_text(epoch), has = member_epoch_text(known);

	if (known.number > epoch.number)
		member_no(v, MEMBER_EPOCH_OLD, "epoch %s is over: epoch %s was promised",
			  asked.text, has.text);
	else
		member_no(
			v, MEMBER_EPOCH_TWIN,
			"epoch %s has the same number as the promised epoch %s: the set is split; "
			"resolve it by 'rpmirror resolve'",
			asked.text, has.text);
	v->known = known;
}

static bool member_may_promise(const struct member *m, struct mirror_epoch epoch,
			       struct member_verdict *v)
{
	struct mirror_epoch known = member_highest(m);

	if (m->meta->promise.is_lost)
		member_no(v, MEMBER_IS_UNKNOWN,
			  "the record of the promised epoch was damaged; it is restored when the "
			  "register can be read");
	else if (m->is_split)
		member_no(v, MEMBER_IS_SPLIT,
			  "this copy is newer than the register: the register was restored, or a "
			  "promotion was forced; resolve it by 'rpmirror resolve'");
	else if (epoch.number <= known.number && !mirror_epoch_is_equal(epoch, known))
		member_refuse_epoch(m, epoch, v);
	else
		return true;
	return false;
}

void member_promise(struct member *m, struct mirror_epoch epoch, struct member_verdict *v)
{
	struct meta_promise promise = m->meta->promise;
	int rc;

	if (!member_may_promise(m, epoch, v))
		return;
	/* From here on no connection of a lower epoch is granted. A primary that asks again has
	 * lost its connections; bytes that are still in transfer on them must not be placed after
	 * the bytes that the primary sends now. */
	m->fencing = epoch;
	if (m->lanes || m->bulks) {
		*v = (struct member_verdict){.answer = MEMBER_CUT_FIRST, .known = epoch};
		return;
	}
	if (mirror_epoch_is_equal(epoch, promise.epoch)) {
		rc = m->meta->broken;
	} else {
		promise.epoch = epoch;
		killpoint(KILLPOINT_w1_before);
		rc = meta_set_promise(m->meta, &promise); /* rule W1 (doc/mirror-format.md) */
		killpoint(KILLPOINT_w1_after);
	}
	if (!rc)
		m->fencing = (struct mirror_epoch){0};
	member_done(v, rc);
}

bool member_is_promised(const struct member *m, struct mirror_epoch epoch, struct member_verdict *v)
{
	struct mirror_epoch known = member_highest(m);

	if (mirror_epoch_is_equal(epoch, m->meta->promise.epoch) && !m->fencing.number)
		return true;
	if (epoch.number > known.number || mirror_epoch_is_equal(epoch, m->fencing))
		member_no(v, MEMBER_NOT_PROMISED, "epoch %s was not promised yet",
			  member_epoch_text(epoch).text);
	else
		member_refuse_epoch(m, epoch, v);
	return false;
}

/* ---- report ---- */

static int member_add_range(struct member *m, struct mirror_range range)
{
	if (m->range_count == m->range_room) {
		uint32_t room = m->range_room ? 2 * m->range_room : 256;
		struct mirror_range *more = realloc(m->ranges, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		m->ranges = more;
		m->range_room = room;
	}
	m->ranges[m->range_count++] = range;
	return 0;
}

struct member_collect {
	struct member *member;
	int rc;
};

static void member_collect_intent(void *arg, const struct mirror_range *range)
{
	struct member_collect *c = arg;

	if (!c->rc)
		c->rc = member_add_range(c->member, *range);
}

static int member_collect_hot(struct member *m)
{
	const struct meta *meta = m->meta;
	int rc = 0;

	for (uint32_t e = 0; !rc && e < meta->extents; e++) {
		uint64_t offset = (uint64_t)e * MIRROR_EXTENT, left = meta->super.size - offset;

		if (meta_hot_is(meta, e))
			rc = member_add_range(
				m, (struct mirror_range){
					   offset, left < MIRROR_EXTENT ? left : MIRROR_EXTENT});
	}
	return rc;
}

static int member_collect(struct member *m, uint32_t *intents)
{
	const struct meta *meta = m->meta;
	struct intent_reader reader = {.ring = meta_ring(meta),
				       .size = meta->super.size,
				       .from = meta->super.retired_below,
				       .upto = meta->promise.epoch.number};
	struct member_collect collect = {.member = m};

	m->range_count = 0;
	*intents = intent_read(&reader, member_collect_intent, &collect);
	if (!collect.rc)
		collect.rc = member_collect_hot(m);
	if (collect.rc)
		m->range_count = 0;
	else
		m->range_count = ranges_normalise(m->ranges, m->range_count);
	return collect.rc;
}

int member_report(struct member *m, struct member_report *report)
{
	const struct meta *meta = m->meta;
	const struct meta_super *super = &meta->super;
	int rc;

	*report = (struct member_report){
		.copy = member_copy(m, true),
		.flags = super->flags,
		.damage = meta->damage,
		.is_held = super->holder.pid != 0,
		.is_uncertain = meta->damage || super->flags & (META_UNCERTAIN | META_UNKNOWN),
		.is_unknown = meta->damage || super->flags & META_UNKNOWN,
		.promised = meta->promise.epoch,
		.epoch = super->epoch,
		.source_id = super->flags & META_SYNCING ? super->source_id : 0,
		.seen = meta->promise.seen,
		.hot = meta->hot_count,
	};
	rc = member_collect(m, &report->intents);
	report->range_count = m->range_count;
	return rc;
}

uint32_t member_ranges(const struct member *m, uint32_t first, struct mirror_range *out, uint32_t n)
{
	uint32_t left = first < m->range_count ? m->range_count - first : 0;

	n = n < left ? n : left;
	if (n)
		memcpy(out, m->ranges + first, n * sizeof(*out));
	return n;
}

/* ---- connections ---- */

static bool member_is_meant(const struct member *m, const struct member_hello *hello,
			    struct member_verdict *v)
{
	const struct meta_super *super = &m->meta->super;

	if (memcmp(&hello->uuid, &super->uuid, sizeof(super->uuid)))
		member_no(v, MEMBER_OTHER_SET, "this copy belongs to another set, '%s'",
			  super->set);
	else if (hello->member_id && hello->member_id != super->member_id)
		member_no(v, MEMBER_OTHER_COPY,
			  "the request names copy %016" PRIx64 ", but this is copy %016" PRIx64
			  ": one of them was replaced",
			  hello->member_id, super->member_id);
	else if (hello->size && hello->size != super->size)
		member_no(v, MEMBER_OTHER_SIZE,
			  "the set has %" PRIu64 " bytes, and this copy %" PRIu64, hello->size,
			  super->size);
	else
		return true;
	return false;
}

/* From now on flushes of this epoch may be in the copy. */
static int member_open_lane(struct member *m, struct mirror_epoch epoch)
{
	struct meta_super super = m->meta->super;
	int rc = 0;

	/* Bitmaps contain only changes by this copy's own primary, so they end here. */
	if (member_has_bitmaps(m))
		rc = meta_bitmap_drop(m->meta, MIRROR_NO_SLOT);
	super.used_boot = m->boot;
	super.flags &= ~(uint32_t)(META_CLEAN | META_WAS_PRIMARY);
	/* An empty copy, or a copy whose resync was interrupted, still lacks bytes: it keeps its
	 * old epoch. */
	if (!(super.flags & (META_SYNCING | META_EMPTY)))
		super.epoch = epoch;
	return rc ? rc : member_set_super(m, &super);
}

static void member_grant_data(struct member *m, const struct member_hello *hello,
			      struct member_verdict *v)
{
	bool is_lane = hello->kind == MEMBER_LANE;
	int rc;

	if (!member_is_promised(m, hello->epoch, v) || !member_is_free(m, v) ||
	    !member_is_good(m, v))
		return;
	rc = is_lane ? member_open_lane(m, hello->epoch) : 0;
	member_done(v, rc);
	if (!rc && is_lane)
		m->lanes++;
	else if (!rc && hello->kind == MEMBER_BULK)
		m->bulks++;
}

void member_grant(struct member *m, const struct member_hello *hello, struct member_verdict *v)
{
	if (!member_is_meant(m, hello, v))
		return;
	if (hello->kind == MEMBER_CONTROL)
		member_yes(v);
	else
		member_grant_data(m, hello, v);
}

void member_on_closed(struct member *m, enum member_kind kind)
{
	if (kind == MEMBER_LANE && m->lanes)
		m->lanes--;
	else if (kind == MEMBER_BULK && m->bulks)
		m->bulks--;
}
