/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/repair.h"

void repair_equalise(struct rpmirror *m, unsigned slot, bool whole)
{
	if (!whole && !m->records.count)
		primary_on_equal(&m->primary, (uint8_t)slot);
	else
		act_lost(m, slot, "it may differ, and this version does not make copies equal");
}

void repair_resync(struct rpmirror *m, unsigned slot, bool whole)
{
	(void)whole;
	act_lost(m, slot, "it lacks data, and this version does not resync");
}

void repair_drop(struct rpmirror *m, unsigned slot)
{
	(void)m, (void)slot;
}

void repair_on_answer(struct rpmirror *m, unsigned slot, const struct message *answer)
{
	(void)m, (void)slot, (void)answer;
}

uint64_t repair_step(struct rpmirror *m, uint64_t now_ms)
{
	(void)m, (void)now_ms;
	return UINT64_MAX;
}

bool repair_flush_enter(struct rpmirror *m, const struct mirror_range *v, uint32_t n)
{
	(void)m, (void)v, (void)n;
	return true;
}

void repair_on_flush(struct rpmirror *m, const struct mirror_range *v, uint32_t n)
{
	(void)m, (void)v, (void)n;
}
