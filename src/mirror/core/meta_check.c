/* SPDX-License-Identifier: BSD-3-Clause */
/* meta_check.c -- finds defects in a copy's metadata: damage, contradictions, and states that need
 * an action. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "mirror/core/meta_dump.h"

struct check {
	const struct meta *m;
	void (*say)(void *arg, enum meta_finding finding, const char *text);
	void *arg;
	unsigned defects;
};

static void check_say(struct check *c, enum meta_finding finding, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void check_say(struct check *c, enum meta_finding finding, const char *fmt, ...)
{
	char text[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	c->defects += finding == META_DEFECT;
	c->say(c->arg, finding, text);
}

static void check_damage(struct check *c)
{
	char names[96];

	if (!c->m->damage)
		return;
	meta_damage_text(c->m->damage, names, sizeof(names));
	check_say(c, META_DEFECT,
		  "damaged: %s; the copy is unknown until a resync has compared all of it", names);
}

/* Report the flags that show that the copy needs a resync, an operator or some time. */
static void check_flags(struct check *c)
{
	const struct meta_super *super = &c->m->super;

	if (super->flags & META_FAILED)
		check_say(c, META_NOTE, "the medium of the copy, or a write-back, failed");
	if (super->flags & META_UNKNOWN)
		check_say(c, META_NOTE,
			  "the metadata were damaged or restored: a resync compares everything");
	else if (super->flags & META_UNCERTAIN)
		check_say(c, META_NOTE,
			  "records of the ranges that differ are lost: the next promotion compares "
			  "everything");
	if (super->flags & META_SYNCING)
		check_say(c, META_NOTE,
			  "a resync from copy %016" PRIx64
			  " has not ended: the content mixes states of different times",
			  super->source_id);
	if (super->flags & META_EMPTY)
		check_say(c, META_NOTE, "the copy is empty: it needs a resync");
	if (super->flags & META_FORCED)
		check_say(c, META_NOTE,
			  "it was promoted by force: data that only other copies had may be lost");
	if (super->holder.pid)
		check_say(c, META_NOTE, "process %" PRIu64 " holds the copy, or was killed",
			  super->holder.pid);
	if (c->m->promise.is_lost)
		check_say(c, META_NOTE,
			  "the record of the promise is lost: the register is read before the next "
			  "promise");
}

static void check_super(struct check *c, uint64_t data_size)
{
	const struct meta *m = c->m;
	const struct meta_super *super = &m->super;

	if (data_size && data_size < super->size)
		check_say(c, META_DEFECT,
			  "the data file has %" PRIu64 " bytes and the set %" PRIu64
			  ": it was truncated",
			  data_size, super->size);
	if (super->flags & META_CLEAN && m->hot_count)
		check_say(c, META_DEFECT, "the copy is marked clean, but %u extents are hot",
			  m->hot_count);
	if (super->flags & META_CLEAN && super->flags & META_SYNCING)
		check_say(c, META_DEFECT, "the copy is marked clean, but a resync has not ended");
	if (!m->promise.is_lost && super->epoch.number > m->promise.epoch.number)
		check_say(c, META_DEFECT,
			  "the copy has flushes of epoch %" PRIu64 ", and none above %" PRIu64
			  " was promised",
			  super->epoch.number, m->promise.epoch.number);
	if (!m->promise.is_lost && super->retired_below > m->promise.epoch.number + 1)
		check_say(c, META_DEFECT,
			  "records below epoch %" PRIu64 " are retired, and none above %" PRIu64
			  " was promised",
			  super->retired_below, m->promise.epoch.number);
	if (m->members.members[super->slot].id != super->member_id)
		check_say(c, META_DEFECT, "the table of members has another copy in slot %u",
			  super->slot);
}

/* Checks that every set block lies in the file and that the bitmap belongs to another member. */
static void check_bitmap(struct check *c, uint8_t slot)
{
	const struct meta *m = c->m;
	const struct meta_member *member = &m->members.members[slot];
	uint64_t count = 0, from = 0;
	struct mirror_range run;

	if (!member->has_bitmap)
		return;
	if (slot == m->super.slot || !member->id) {
		check_say(c, META_DEFECT, "slot %u has a bitmap, but belongs to no other member",
			  slot);
		return;
	}
	for (; meta_bitmap_next(m, slot, from, 0, &run); from = run.offset + run.len)
		count += run.len / MIRROR_BLOCK;
	if (count != meta_bitmap_count(m, slot))
		check_say(c, META_DEFECT, "the bitmap for '%s' has bits beyond the end of the file",
			  member->name);
	else
		check_say(c, META_NOTE,
			  "member '%s' lacks up to %" PRIu64 " bytes since epoch %" PRIu64,
			  member->name, count * MIRROR_BLOCK, member->base.number);
}

unsigned meta_check(const struct meta *m, uint64_t data_size,
		    void (*say)(void *arg, enum meta_finding finding, const char *text), void *arg)
{
	struct check c = {.m = m, .say = say, .arg = arg};

	check_damage(&c);
	check_super(&c, data_size);
	for (uint8_t slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		check_bitmap(&c, slot);
	check_flags(&c);
	return c.defects;
}
