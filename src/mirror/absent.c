/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/absent.h"

#include "mirror/repair_impl.h"

static void absent_check(struct rpmirror *m, int rc)
{
	if (rc)
		set_local_failed(m, m->flush.begun + 1, rc);
}

void absent_note_counted(struct rpmirror *m)
{
	m->counted = 0;
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (m->hot.meta.members.members[slot].has_bitmap && slot != m->self)
			m->counted |= MIRROR_BIT(slot);
}

/* ---- all members that have a bitmap ---- */

void absent_drop(struct rpmirror *m, unsigned slot)
{
	if (m->counted & MIRROR_BIT(slot))
		absent_check(m, meta_bitmap_drop(&m->hot.meta, (uint8_t)slot));
	absent_note_counted(m);
}

/*
 * Begin the bitmap of a member that leaves the in-sync set. While the set serves, repair->bits has
 * all blocks that the member may lack. In a promotion there are no such bits: the flush records
 * name the ranges that the member lacks, and absent_retire() adds them to the bitmap before the
 * records are removed.
 */
static void absent_begin(struct rpmirror *m, unsigned slot, const struct mirror_record *next)
{
	const struct repair_member *rm = m->repair->members[slot];
	bool serving = next->view.phase == MIRROR_PHASE_SERVING, covers = rm && rm->covers;
	struct mirror_epoch now = next->view.epoch, base = now;

	if (!serving)
		base = next->history_count ? next->history[0].epoch : (struct mirror_epoch){0};
	/* A forced promotion makes this copy the primary's even if this copy lacks flushes. The
	 * member's copy may have the same epoch but different bytes, so no bitmap can be complete
	 * for it. */
	if (serving ? !covers : next->view.forced) {
		absent_drop(m, slot);
		return;
	}
	absent_check(m, meta_bitmap_start(&m->hot.meta, (uint8_t)slot, base, now,
					  covers ? rm->bits : NULL));
	absent_note_counted(m);
}

void absent_exclude(struct rpmirror *m, const struct primary_action *swap)
{
	mirror_mask leaves = swap->expected->view.insync & (mirror_mask)~swap->record->view.insync;

	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		if (!(leaves & MIRROR_BIT(slot)) || slot == m->self)
			continue;
		if (swap->whole)
			absent_drop(m, slot);
		else
			absent_begin(m, slot, swap->record);
	}
}

static int absent_mark_records(struct rpmirror *m)
{
	int rc = 0;

	/* If records of this copy are lost, no bitmap covers all blocks that other copies lack, so
	 * drop all bitmaps. */
	if (m->counted && m->primary.members[m->self].uncertain)
		return meta_bitmap_drop(&m->hot.meta, MIRROR_NO_SLOT);
	for (uint32_t i = 0; i < m->records.count; i++)
		meta_bitmap_set_all(&m->hot.meta, m->records.v[i]);
	for (unsigned slot = 0; !rc && slot < MIRROR_MEMBERS_MAX; slot++)
		if (m->counted & MIRROR_BIT(slot))
			rc = meta_bitmap_persist(&m->hot.meta, (uint8_t)slot);
	return rc;
}

void absent_retire(struct rpmirror *m, unsigned slot)
{
	int rc;

	if (slot != m->self) {
		absent_drop(m, slot);
		return;
	}
	rc = absent_mark_records(m);
	absent_check(m, rc ? rc : hot_retire(&m->hot));
	absent_note_counted(m);
}

void absent_configure(struct rpmirror *m)
{
	const struct mirror_config *config = &m->primary.rec.config;
	const struct meta_members *members = &m->hot.meta.members;

	if (members->config_number == config->number)
		return;
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (members->members[slot].id != config->members[slot].id)
			repair_forget(m, slot);
	absent_check(m, meta_keep_members(&m->hot.meta, config));
	absent_note_counted(m);
}

/* ---- the bitmap of one member ---- */

bool absent_is_known(const struct rpmirror *m, unsigned slot)
{
	return meta_bitmap_is_usable(&m->hot.meta, (uint8_t)slot, m->members[slot].copy_epoch);
}

uint64_t absent_count(const struct rpmirror *m, unsigned slot)
{
	return meta_bitmap_count(&m->hot.meta, (uint8_t)slot);
}

static void absent_mark(struct resync *rs, uint64_t from, uint64_t to, bool is_unsure)
{
	struct mirror_range range = {from, to - from};

	if (from < to)
		resync_mark(rs, &range, 1, is_unsure);
}

/* If all bits of an extent are set, the extent was hot at an unclean end, or has to be compared as
 * a whole. Perhaps only some of its blocks have changed, so compare them before they are copied. */
void absent_load(const struct rpmirror *m, unsigned slot, struct resync *rs)
{
	struct mirror_range run;

	for (uint64_t from = 0;
	     meta_bitmap_next(&m->hot.meta, (uint8_t)slot, from, UINT64_MAX, &run);
	     from = run.offset + run.len) {
		uint64_t end = run.offset + run.len;
		uint64_t first = (run.offset + MIRROR_EXTENT - 1) / MIRROR_EXTENT * MIRROR_EXTENT;
		uint64_t last = end == m->size ? end : end / MIRROR_EXTENT * MIRROR_EXTENT;

		if (first >= last)
			first = last = end;
		absent_mark(rs, run.offset, first, false);
		absent_mark(rs, first, last, true);
		absent_mark(rs, last, end, false);
	}
}

void absent_keep(struct rpmirror *m, unsigned slot, const uint64_t *bits)
{
	absent_check(m, meta_bitmap_start(&m->hot.meta, (uint8_t)slot, m->members[slot].copy_epoch,
					  m->epoch, bits));
	absent_note_counted(m);
}

void absent_unset(struct rpmirror *m, unsigned slot, const uint64_t *bits,
		  const struct resync_piece *piece)
{
	uint64_t first = piece->offset / MIRROR_BLOCK;
	uint64_t end = (piece->offset + piece->len + MIRROR_BLOCK - 1) / MIRROR_BLOCK;

	if (!(m->counted & MIRROR_BIT(slot)))
		return;
	while (first < end) {
		uint64_t last = first;

		while (last < end && !(bits[last / 64] >> last % 64 & 1))
			last++;
		if (last > first)
			meta_bitmap_unset(&m->hot.meta, (uint8_t)slot,
					  (struct mirror_range){first * MIRROR_BLOCK,
								(last - first) * MIRROR_BLOCK});
		first = last + 1;
	}
}

void absent_clear(struct rpmirror *m, unsigned slot)
{
	if (m->counted & MIRROR_BIT(slot))
		absent_check(m, meta_bitmap_clear(&m->hot.meta, (uint8_t)slot, m->epoch));
}

void absent_on_flush(struct rpmirror *m, mirror_mask lacking, const struct mirror_range *v,
		     uint32_t n)
{
	lacking &= m->counted;
	for (unsigned slot = 0; lacking >> slot; slot++)
		for (uint32_t i = 0; lacking >> slot & 1 && i < n; i++)
			meta_bitmap_set(&m->hot.meta, (uint8_t)slot, v[i]);
}
