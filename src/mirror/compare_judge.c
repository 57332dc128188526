/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides about a comparison after all members are compared: in each block that differs the copies
 * vote (core/finding.h), and the kind of order decides which copies may be overwritten.
 */
#include <stdio.h>
#include <string.h>

#include "mirror/compare_impl.h"
#include "mirror/core/view.h"
#include "mirror/repair_impl.h"

/* ---- digests of blocks that differ ---- */

static const uint64_t *judge_bits(const struct rpmirror *m, unsigned slot)
{
	return m->repair->members[slot]->compare_bits;
}

static bool judge_differs(const struct rpmirror *m, unsigned slot, uint64_t block)
{
	return judge_bits(m, slot)[block / 64] >> block % 64 & 1;
}

static struct compare_note *judge_find_note(struct compare *c, unsigned slot, uint64_t block)
{
	for (unsigned i = 0; i < c->note_count; i++)
		if (c->notes[i].slot == slot && c->notes[i].block == block)
			return &c->notes[i];
	return NULL;
}

/* Drop the notes of blocks that turned out to be equal. */
static void judge_pack_notes(struct rpmirror *m)
{
	struct compare *c = &m->compare;
	unsigned kept = 0;

	for (unsigned i = 0; i < c->note_count; i++)
		if (judge_differs(m, c->notes[i].slot, c->notes[i].block))
			c->notes[kept++] = c->notes[i];
	c->note_count = kept;
}

static void judge_note(struct rpmirror *m, unsigned slot, uint64_t block,
		       const struct rpma_digest *theirs)
{
	struct compare *c = &m->compare;
	struct compare_note *note = judge_find_note(c, slot, block);

	if (!note && c->note_count == COMPARE_NOTES)
		judge_pack_notes(m);
	if (!note && c->note_count < COMPARE_NOTES)
		note = &c->notes[c->note_count++];
	if (!note)
		return; /* the block stays undecided, because its digest is not kept */
	note->block = block;
	note->slot = (uint8_t)slot;
	memcpy(note->digest, theirs->bytes, sizeof(note->digest));
}

void compare_note(struct rpmirror *m, unsigned slot, const struct resync_piece *piece,
		  uint64_t differing, const struct rpma_digest *theirs)
{
	for (; differing; differing &= differing - 1) {
		unsigned i = (unsigned)__builtin_ctzll(differing);

		judge_note(m, slot, piece->offset / MIRROR_BLOCK + i, &theirs[i]);
	}
}

/* ---- votes ---- */

static unsigned judge_count(mirror_mask mask)
{
	return (unsigned)__builtin_popcount(mask);
}

/* Returns the size of the largest group of copies with the same bytes, among the copies that
 * differ. */
static unsigned judge_agree(struct rpmirror *m, mirror_mask differ, uint64_t block)
{
	const struct compare_note *notes[MIRROR_MEMBERS_MAX];
	unsigned count = 0, most = 0;

	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		const struct compare_note *note =
			differ & MIRROR_BIT(slot) ? judge_find_note(&m->compare, slot, block)
						  : NULL;

		if (note)
			notes[count++] = note;
	}
	for (unsigned i = 0; i < count; i++) {
		unsigned same = 0;

		for (unsigned j = 0; j < count; j++)
			same += !memcmp(notes[i]->digest, notes[j]->digest,
					sizeof(notes[i]->digest));
		most = same > most ? same : most;
	}
	return most;
}

static mirror_mask judge_find_differing(const struct rpmirror *m, uint64_t block)
{
	mirror_mask differ = 0;

	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (m->compare.whole & MIRROR_BIT(slot) && judge_differs(m, slot, block))
			differ |= MIRROR_BIT(slot);
	return differ;
}

/* ---- consequences ---- */

/* Returns true if the member may leave the in-sync set, together with the members that leave
 * already. */
static bool judge_may_leave(struct rpmirror *m, unsigned slot)
{
	struct compare *c = &m->compare;

	if (m->primary.members[slot].state != PRIMARY_MEMBER_EQUAL ||
	    !(m->primary.rec.view.insync & MIRROR_BIT(slot)))
		return false;
	if (!(c->leaves & MIRROR_BIT(slot)) && !c->repair &&
	    !view_may_shrink(&m->primary.rec, c->leaves | MIRROR_BIT(slot), &c->cannot_leave))
		return false;
	c->leaves |= MIRROR_BIT(slot);
	return true;
}

void compare_note_difference(struct packet_verified *v, const struct packet_difference *d)
{
	v->different += d->range.len;
	if (d->mended != PACKET_IS_REPAIRED) {
		v->left += d->range.len;
		v->left_members |= MIRROR_BIT(d->member);
	}
	if (v->count < PACKET_DIFFERENCES)
		v->differences[v->count++] = *d;
}

static void judge_run(struct rpmirror *m, unsigned slot, const struct mirror_range *range,
		      enum finding_wrong wrong)
{
	struct compare *c = &m->compare;
	struct packet_difference d = {.member = (uint8_t)slot,
				      .wrong = (uint8_t)wrong,
				      .mended = PACKET_DIFFERS_STILL,
				      .range = *range};

	/* If the primary's copy may be the wrong one, only an operator's order to repair makes the
	 * other copies equal to it. */
	if ((c->repair || wrong == FINDING_MEMBER) && judge_may_leave(m, slot)) {
		d.mended = c->repair || c->is_automatic ? PACKET_IS_REPAIRED : PACKET_IS_DUE;
		resync_mark(&m->repair->members[slot]->rs, range, 1, false);
	}
	c->differ |= MIRROR_BIT(slot);
	c->undecided |= wrong == FINDING_UNDECIDED;
	c->primary_differs |= wrong == FINDING_PRIMARY;
	compare_note_difference(&c->result, &d);
}

/* A run of adjacent blocks of one member with the same verdict. */
struct judge_runs {
	struct mirror_range range[MIRROR_MEMBERS_MAX];
	enum finding_wrong wrong[MIRROR_MEMBERS_MAX];
};

static void judge_end_run(struct rpmirror *m, struct judge_runs *runs, unsigned slot)
{
	if (runs->range[slot].len)
		judge_run(m, slot, &runs->range[slot], runs->wrong[slot]);
	runs->range[slot].len = 0;
}

static void judge_block(struct rpmirror *m, struct judge_runs *runs, uint64_t block)
{
	mirror_mask differ = judge_find_differing(m, block);
	enum finding_wrong wrong =
		finding_judge(judge_count(m->compare.whole) + 1, judge_count(differ),
			      judge_agree(m, differ, block));

	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		struct mirror_range *run = &runs->range[slot];
		uint64_t offset = block * MIRROR_BLOCK;

		if (!(differ & MIRROR_BIT(slot)))
			continue;
		if (run->len && (run->offset + run->len != offset || runs->wrong[slot] != wrong))
			judge_end_run(m, runs, slot);
		if (!run->len)
			run->offset = offset;
		run->len += MIRROR_BLOCK;
		runs->wrong[slot] = wrong;
	}
}

/* ---- all members ---- */

static uint64_t judge_word(const struct rpmirror *m, uint64_t i)
{
	uint64_t word = 0;

	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (m->compare.whole & MIRROR_BIT(slot))
			word |= judge_bits(m, slot)[i];
	return word;
}

static void judge_let_leave(struct rpmirror *m, unsigned slot)
{
	struct compare *c = &m->compare;
	const char *why;

	c->lost |= MIRROR_BIT(slot);
	if (c->repair || c->is_automatic) {
		act_lost(m, slot, "its copy differs from the primary's, and is repaired");
		return;
	}
	/* Keep an in-sync member that lacks bytes out of the set, because this member must not be
	 * promoted. An order that only asks for differences leaves the member's copy unchanged. */
	if (primary_exclude(&m->primary, (uint8_t)slot, &why))
		return; /* judge_may_leave() has checked this before */
	snprintf(m->members[slot].why, sizeof(m->members[slot].why),
		 "its copy differs from the other copies: 'rpmirror resume' lets it return, and a "
		 "resync makes it equal");
}

void compare_judge(struct rpmirror *m)
{
	struct judge_runs runs = {0};
	uint64_t words = m->compare.whole ? resync_words(m->size) : 0;

	for (uint64_t i = 0; i < words; i++)
		for (uint64_t word = judge_word(m, i); word; word &= word - 1)
			judge_block(m, &runs, i * 64 + (unsigned)__builtin_ctzll(word));
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		judge_end_run(m, &runs, slot);
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (m->compare.leaves & MIRROR_BIT(slot))
			judge_let_leave(m, slot);
	m->compare.is_judged = true;
	act_all(m);
	set_wake(m);
}
