/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/core/flush.h"

#include <assert.h>
#include <string.h>

void flush_init(struct flush_core *f)
{
	memset(f, 0, sizeof(*f));
}

void flush_member_begin(struct flush_core *f, unsigned slot, bool owes)
{
	f->members[slot].from = f->begun + 1;
	f->members[slot].done = f->begun;
	f->members[slot].owes = owes;
	f->members[slot].placed_to = 0;
}

void flush_member_paid(struct flush_core *f, unsigned slot)
{
	f->members[slot].owes = false;
}

void flush_member_end(struct flush_core *f, unsigned slot)
{
	f->members[slot].from = 0;
}

mirror_mask flush_members(const struct flush_core *f)
{
	mirror_mask mask = 0;

	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (f->members[slot].from)
			mask |= MIRROR_BIT(slot);
	return mask;
}

uint64_t flush_begin(struct flush_core *f)
{
	if (f->begun - f->retired >= FLUSH_MAX)
		return 0;
	f->begun++;
	f->certain_at[f->begun % FLUSH_MAX] = 0;
	return f->begun;
}

void flush_on_local(struct flush_core *f, uint64_t seq, bool shares_errors)
{
	assert(seq > f->local && seq <= f->begun);
	f->certain_at[seq % FLUSH_MAX] = shares_errors ? f->begun : seq;
	while (f->ended < f->begun && f->certain_at[(f->ended + 1) % FLUSH_MAX])
		f->ended++;
	while (f->local < f->ended && f->certain_at[(f->local + 1) % FLUSH_MAX] <= f->ended)
		f->local++;
}

void flush_on_placed(struct flush_core *f, unsigned slot, struct mirror_range span)
{
	struct flush_member *m = &f->members[slot];
	uint64_t end = span.offset + span.len;

	if (!m->placed_to || span.offset < m->placed_from)
		m->placed_from = span.offset;
	if (end > m->placed_to)
		m->placed_to = end;
}

struct mirror_range flush_cover(struct flush_core *f, unsigned slot)
{
	struct flush_member *m = &f->members[slot];
	struct mirror_range span = {0, 0};

	if (m->placed_to)
		span = (struct mirror_range){m->placed_from, m->placed_to - m->placed_from};
	m->placed_to = 0;
	return span;
}

void flush_on_done(struct flush_core *f, unsigned slot, uint64_t seq)
{
	if (seq > f->members[slot].done)
		f->members[slot].done = seq;
}

static bool flush_lacks(const struct flush_member *m, uint64_t seq)
{
	if (!m->from)
		return true;
	return seq < m->from ? m->owes : m->done < seq;
}

mirror_mask flush_lacking(const struct flush_core *f, uint64_t seq, mirror_mask must_have)
{
	mirror_mask lacking = 0;

	for (unsigned slot = 0; must_have; slot++, must_have >>= 1)
		if (must_have & 1 && flush_lacks(&f->members[slot], seq))
			lacking |= MIRROR_BIT(slot);
	return lacking;
}

bool flush_local_done(const struct flush_core *f, uint64_t seq)
{
	return seq <= f->local;
}

uint64_t flush_acked(const struct flush_core *f, mirror_mask must_have)
{
	uint64_t acked = f->local;

	for (unsigned slot = 0; must_have; slot++, must_have >>= 1) {
		const struct flush_member *m = &f->members[slot];

		if (must_have & 1 && (!m->from || m->owes))
			return f->retired;
		if (must_have & 1 && m->done < acked)
			acked = m->done;
	}
	return acked > f->retired ? acked : f->retired;
}

void flush_retire(struct flush_core *f, uint64_t seq)
{
	assert(seq <= f->local);
	if (seq > f->retired)
		f->retired = seq;
}
