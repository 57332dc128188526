/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends the work that makes a member equal: the member has all bytes, or is lost. */
#include <stdlib.h>

#include "mirror/absent.h"
#include "mirror/repair_impl.h"

/* List the stores of a direct mapping that may not be flushed. Called with the set's lock. */
static bool repair_list_stored(const struct rpmirror *m, struct repair_member *rm)
{
	struct mirror_range *v;
	uint32_t n;
	bool done;

	if (!m->direct)
		return true;
	v = direct_list(m->direct, &n);
	done = v && ranges_union_add(&rm->ranges, v, n);
	free(v);
	return done;
}

/* List the ranges that only the resync has sent to the member: flushes that are not acknowledged,
 * and stores of a direct mapping. */
static bool repair_list_carried(const struct rpmirror *m, struct repair_member *rm)
{
	ranges_union_clear(&rm->ranges);
	for (uint64_t seq = m->flush.retired + 1; seq <= m->flush.begun; seq++) {
		const struct repair_sent *sent = &m->repair->sent[seq % FLUSH_MAX];

		if (!ranges_union_add(&rm->ranges, sent->ranges, sent->count))
			return false;
	}
	return repair_list_stored(m, rm);
}

void repair_settle(struct rpmirror *m, unsigned slot)
{
	struct repair_member *rm = m->repair->members[slot];

	if (!repair_list_carried(m, rm))
		act_lost(m, slot, "there is no memory to make it equal");
	else if (rm->ranges.count)
		repair_enter(m, slot, REPAIR_SETTLING);
	else
		repair_finish(m, slot);
}

void repair_finish(struct rpmirror *m, unsigned slot)
{
	struct repair_member *rm = m->repair->members[slot];

	m->members[slot].settled = direct_on_carried(m, slot) ? UINT64_MAX : m->flush.begun;
	repair_set_stage(m, rm, REPAIR_IDLE);
	m->members[slot].why[0] = '\0';
	if (rm->is_equalise) {
		flush_member_paid(&m->flush, slot);
		primary_on_equal(&m->primary, (uint8_t)slot);
	} else {
		primary_on_joined(&m->primary, (uint8_t)slot);
	}
	set_wake(m);
}

/* Note flushes that were sent to the member and that it may lack. */
static void repair_note_unconfirmed(struct rpmirror *m, unsigned slot, struct repair_member *rm)
{
	const struct flush_member *fm = &m->flush.members[slot];
	uint64_t seq = fm->done + 1 > fm->from ? fm->done + 1 : fm->from;

	if (!fm->from || !rm->covers)
		return;
	for (; seq <= m->flush.begun; seq++) {
		const struct repair_sent *sent = &m->repair->sent[seq % FLUSH_MAX];

		resync_mark(&rm->rs, sent->ranges, sent->count, false);
		absent_on_flush(m, MIRROR_BIT(slot), sent->ranges, sent->count);
	}
}

/* Give up the work with the member. If the work is a comparison, the member is not excluded. */
void repair_failed(struct rpmirror *m, unsigned slot, const char *why)
{
	if (m->repair->members[slot]->is_compare)
		compare_on_lost(m, slot, why);
	else
		act_lost(m, slot, why);
}

/* If memory is missing, the piece is noted after its next failure. */
void repair_note_bad(struct rpmirror *m, unsigned slot, const struct resync_piece *piece)
{
	struct mirror_range range = {piece->offset, piece->len};

	if (range.len > m->size - range.offset)
		range.len = m->size - range.offset;
	(void)ranges_union_add(&m->repair->members[slot]->bad, &range, 1);
}

/* Mark the piece's bits, which survive the member's loss. After this, the piece is copied without
 * reading it at the member. */
void repair_unreadable(struct rpmirror *m, unsigned slot, const struct resync_piece *piece,
		       const char *why)
{
	struct repair_member *rm = m->repair->members[slot];
	struct mirror_range range = {piece->offset, piece->len};

	if (range.len > m->size - range.offset)
		range.len = m->size - range.offset;
	repair_note_bad(m, slot, piece);
	if (rm->is_compare) {
		compare_on_unreadable(m, slot, &range, why);
		return;
	}
	resync_mark(&rm->rs, &range, 1, false);
	act_lost(m, slot, why);
}

void repair_drop(struct rpmirror *m, unsigned slot)
{
	struct repair_member *rm;

	if (!m->repair || slot == m->self)
		return;
	repair_note_equal(m, slot);
	rm = m->repair->members[slot];
	if (!rm)
		return;
	if (rm->is_compare)
		compare_on_lost(m, slot, "it was lost meanwhile");
	if (rm->rs.words)
		resync_break(&rm->rs, repair_now_us());
	if (rm->rs.mode == RESYNC_EQUALISE && rm->covers)
		repair_init_resync(m, rm, RESYNC_CATCH_UP);
	repair_note_unconfirmed(m, slot, rm);
	repair_pump_end(m->repair, rm);
	repair_set_stage(m, rm, REPAIR_IDLE);
	set_notify(m);
}

void repair_note_equal(struct rpmirror *m, unsigned slot)
{
	struct repair_member *rm;

	if (m->primary.members[slot].state != PRIMARY_MEMBER_EQUAL || slot == m->self)
		return;
	rm = repair_member_get(m, slot);
	if (!rm || rm->covers)
		/* without memory for the note, the member is compared as a whole when it returns */
		return;
	repair_clear_bits(m, rm);
	rm->covers = true;
	repair_init_resync(m, rm, RESYNC_CATCH_UP);
}

void repair_forget(struct rpmirror *m, unsigned slot)
{
	if (m->repair->members[slot]) {
		m->repair->members[slot]->covers = false;
		ranges_union_clear(&m->repair->members[slot]->bad);
	}
	absent_drop(m, slot);
}

uint64_t repair_get_remaining(const struct rpmirror *m, unsigned slot)
{
	const struct repair_member *rm = m->repair ? m->repair->members[slot] : NULL;

	if (rm && rm->covers && !rm->is_compare)
		return rm->rs.remaining * MIRROR_BLOCK;
	return m->repair && m->counted & MIRROR_BIT(slot) ? absent_count(m, slot) * MIRROR_BLOCK
							  : 0;
}

bool repair_get_progress(const struct rpmirror *m, unsigned slot, struct resync_progress *p)
{
	const struct repair_member *rm = m->repair ? m->repair->members[slot] : NULL;

	if (!rm || rm->stage == REPAIR_IDLE)
		return false;
	resync_get_progress(&rm->rs, p);
	return true;
}
