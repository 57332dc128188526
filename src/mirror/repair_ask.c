/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks a member's daemon before and after the pieces: records (W9), begin (W4) and end (W5). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "mirror/absent.h"
#include "mirror/core/ranges.h"
#include "mirror/file/badblocks.h"
#include "mirror/repair_impl.h"

/* Send a question to member `to`, for the work with member `slot`. */
static void repair_send(struct rpmirror *m, unsigned slot, unsigned to, struct message *question)
{
	struct repair_member *rm = m->repair->members[slot];

	rm->again_ms = 0;
	rm->deadline_ms = clock_boot_ms() + REPAIR_ANSWER_MS;
	if (ask_send(m, to, question))
		rm->question = question->id;
	else
		act_lost(m, slot, "its daemon cannot be asked");
}

/* W9 at the primary. This process marks the ranges in the hot slots, because the hot slots belong
 * to the process that holds the copy. In a promotion no slot is made cold before the records are
 * removed. If the ranges do not fit, the daemon is asked to record that every byte may differ. */
static void repair_note(struct rpmirror *m, unsigned slot)
{
	const struct repair_member *rm = m->repair->members[slot];
	bool serving = primary_sends_to(&m->primary) & MIRROR_BIT(slot);
	struct message q = {.type = MESSAGE_RECORD_RANGES};
	int rc = rm->is_whole ? 0
			      : hot_mark(&m->hot, rm->ranges.v, rm->ranges.count,
					 serving ? m->flush.begun : UINT64_MAX, m->flush.retired);

	if (rc == -EBUSY) {
		repair_set_stage(m, m->repair->members[slot], REPAIR_NOTING);
		repair_send(m, slot, m->self, &q);
	} else if (rc) {
		act_lost(m, slot,
			 "the ranges that may differ there cannot be recorded on this host");
	} else {
		repair_enter(m, slot, REPAIR_RUNNING);
	}
}

/* Begin a resync. First record all blocks that this host will send, so that the record survives if
 * the member or this process fails. Blocks that are cleared at the member are among them. */
static void repair_begin(struct rpmirror *m, unsigned slot)
{
	struct repair_member *rm = m->repair->members[slot];

	resync_mark(&rm->rs, rm->bad.v, rm->bad.count, false);
	absent_keep(m, slot, rm->bits);
	repair_enter(m, slot, REPAIR_BEGINNING);
}

static void repair_ask_record(struct rpmirror *m, unsigned slot)
{
	struct repair_member *rm = m->repair->members[slot];
	struct message q = {.type = MESSAGE_RECORD_RANGES};
	uint32_t left = rm->ranges.count - rm->range_sent;

	q.ranges.index = rm->range_sent;
	q.ranges.total = rm->ranges.count;
	q.ranges.count = (uint8_t)(left < MESSAGE_RANGES_MAX ? left : MESSAGE_RANGES_MAX);
	memcpy(q.ranges.ranges, rm->ranges.v + rm->range_sent,
	       q.ranges.count * sizeof(*rm->ranges.v));
	rm->range_sent += q.ranges.count;
	repair_send(m, slot, slot, &q);
}

static void repair_ask_learn(struct rpmirror *m, unsigned slot)
{
	struct message q = {.type = MESSAGE_GET_RANGES};

	q.ranges.index = m->repair->members[slot]->range_sent;
	repair_send(m, slot, slot, &q);
}

static void repair_ask_resync(struct rpmirror *m, unsigned slot, enum message_type type)
{
	const struct repair_member *rm = m->repair->members[slot];
	struct message q = {.type = type};

	if (type == MESSAGE_RESYNC_BEGIN)
		q.resync =
			(struct message_resync){m->self, rm->by_bitmap ? 0 : MESSAGE_RESYNC_WHOLE};
	repair_send(m, slot, slot, &q);
}

/* Get the next part that has to be cleared. Returns false if no part is left. */
static bool repair_next_bad(const struct repair_member *rm, struct message_clear *clear)
{
	for (uint32_t i = 0; i < rm->bad.count; i++) {
		uint64_t end = rm->bad.v[i].offset + rm->bad.v[i].len;
		uint64_t from = rm->bad.v[i].offset;

		if (from < rm->clear_from)
			from = rm->clear_from;
		if (from >= end)
			continue;
		clear->offset = from;
		clear->len =
			end - from < MESSAGE_CLEAR_MAX ? (uint32_t)(end - from) : MESSAGE_CLEAR_MAX;
		return true;
	}
	return false;
}

static void repair_ask_clear(struct rpmirror *m, unsigned slot)
{
	struct repair_member *rm = m->repair->members[slot];
	struct message q = {.type = MESSAGE_CLEAR_ERRORS};

	if (repair_next_bad(rm, &q.clear)) {
		repair_send(m, slot, slot, &q);
		return;
	}
	ranges_union_clear(&rm->bad);
	repair_enter(m, slot, REPAIR_RUNNING);
}

void repair_ask_next(struct rpmirror *m, unsigned slot)
{
	switch (m->repair->members[slot]->stage) {
	case REPAIR_LEARNING:
		repair_ask_learn(m, slot);
		break;
	case REPAIR_RECORDING:
	case REPAIR_SETTLING:
		repair_ask_record(m, slot);
		break;
	case REPAIR_BEGINNING:
		repair_ask_resync(m, slot, MESSAGE_RESYNC_BEGIN);
		break;
	case REPAIR_CLEARING:
		repair_ask_clear(m, slot);
		break;
	case REPAIR_ENDING:
		absent_clear(m, slot);
		repair_ask_resync(m, slot, MESSAGE_RESYNC_END);
		break;
	case REPAIR_IDLE:
	case REPAIR_OPENING:
	case REPAIR_NOTING:
	case REPAIR_RUNNING:
		break;
	}
}

void repair_enter(struct rpmirror *m, unsigned slot, enum repair_stage stage)
{
	struct repair_member *rm = m->repair->members[slot];

	rm->range_sent = 0;
	rm->clear_from = 0;
	repair_set_stage(m, rm, stage);
	repair_ask_next(m, slot);
}

void repair_on_open(struct rpmirror *m, unsigned slot)
{
	struct repair_member *rm = m->repair->members[slot];
	bool is_volatile = rm->bulk.grant.durability == RPMA_DURABILITY_VOLATILE;

	/* Digests are made of bytes on a medium: if the member has no medium, send everything
	 * without a comparison. */
	if (is_volatile)
		memset(rm->unsure, 0, resync_words(m->size) * sizeof(uint64_t));
	if (rm->is_compare && is_volatile)
		compare_on_lost(m, slot, "it is in volatile memory, which has no digests");
	else if (rm->is_compare)
		repair_enter(m, slot, REPAIR_RUNNING);
	else if (rm->is_equalise)
		repair_enter(m, slot, rm->ranges.count ? REPAIR_RECORDING : REPAIR_RUNNING);
	else if (rm->by_bitmap)
		repair_enter(m, slot, REPAIR_LEARNING);
	else
		repair_begin(m, slot);
}

static void repair_on_ranges(struct rpmirror *m, unsigned slot, const struct message_ranges *r)
{
	struct repair_member *rm = m->repair->members[slot];
	struct mirror_range ranges[MESSAGE_RANGES_MAX];

	memcpy(ranges, r->ranges, r->count * sizeof(*ranges));
	resync_mark(&rm->rs, ranges, ranges_clip(ranges, r->count, m->size),
		    rm->bulk.grant.durability != RPMA_DURABILITY_VOLATILE);
	rm->range_sent += r->count;
	if (rm->range_sent < r->total && r->count)
		repair_ask_next(m, slot);
	else
		repair_begin(m, slot);
}

/* Continue after a positive answer to the stage's question. */
static void repair_on_done(struct rpmirror *m, unsigned slot)
{
	struct repair_member *rm = m->repair->members[slot];

	switch (rm->stage) {
	case REPAIR_RECORDING:
		if (rm->range_sent < rm->ranges.count)
			repair_ask_next(m, slot);
		else
			repair_note(m, slot);
		break;
	case REPAIR_NOTING:
		repair_enter(m, slot, REPAIR_RUNNING);
		break;
	case REPAIR_BEGINNING:
		repair_enter(m, slot, REPAIR_CLEARING);
		break;
	case REPAIR_ENDING:
		repair_settle(m, slot);
		break;
	case REPAIR_SETTLING:
		if (rm->range_sent < rm->ranges.count)
			repair_ask_next(m, slot);
		else
			repair_finish(m, slot);
		break;
	case REPAIR_LEARNING:
	case REPAIR_CLEARING:
		act_lost(m, slot, "its daemon breaks the protocol");
		break;
	case REPAIR_IDLE:
	case REPAIR_OPENING:
	case REPAIR_RUNNING:
		break;
	}
}

/* Report that blocks could not be cleared. The text is as long as its field in the status. */
static void repair_on_not_cleared(struct rpmirror *m, unsigned slot,
				  const struct message_cleared *cleared)
{
	unsigned long long at = cleared->offset;
	char why[PACKET_WHY];

	if (badblocks_is_of_medium(cleared->error))
		snprintf(why, sizeof(why),
			 "the block at %llu of its copy cannot be overwritten (errno %u): replace "
			 "its medium, then 'rpmirror member replace'",
			 at, cleared->error);
	else
		snprintf(why, sizeof(why),
			 "the block at %llu of its copy cannot be overwritten now (errno %u, %s)",
			 at, cleared->error, strerror(cleared->error));
	act_lost(m, slot, why);
}

static void repair_on_cleared(struct rpmirror *m, unsigned slot,
			      const struct message_cleared *cleared)
{
	struct repair_member *rm = m->repair->members[slot];
	struct message_clear done;

	if (cleared->is_under_way) {
		rm->again_ms = clock_boot_ms() + REPAIR_AGAIN_MS;
		return;
	}
	if (!cleared->error) {
		if (repair_next_bad(rm, &done))
			rm->clear_from = done.offset + done.len;
		repair_ask_next(m, slot);
		return;
	}
	repair_on_not_cleared(m, slot, cleared);
}

static void repair_on_reply(struct rpmirror *m, unsigned slot, const struct message *answer)
{
	struct repair_member *rm = m->repair->members[slot];
	bool is_record = rm->stage == REPAIR_RECORDING || rm->stage == REPAIR_SETTLING;

	rm->question = 0;
	if (answer->type == MESSAGE_RANGES && rm->stage == REPAIR_LEARNING)
		repair_on_ranges(m, slot, &answer->ranges);
	else if (answer->type == MESSAGE_ERRORS_CLEARED && rm->stage == REPAIR_CLEARING)
		repair_on_cleared(m, slot, &answer->cleared);
	else if (answer->type != MESSAGE_DONE)
		act_lost(m, slot, "its daemon breaks the protocol");
	else if (answer->done.status == GREETING_OK)
		repair_on_done(m, slot);
	else if (answer->done.status == GREETING_FULL && is_record)
		/* the member then counts as uncertain, which is safe, too */
		repair_on_done(m, slot);
	else
		act_lost(m, slot, greeting_status_2str(answer->done.status));
}

/* Handle an answer. If a question to this host's daemon was asked for the work with another
 * member, find that member. */
void repair_on_answer(struct rpmirror *m, unsigned from, const struct message *answer)
{
	(void)from;
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		const struct repair_member *rm = m->repair->members[slot];

		if (rm && rm->question && rm->question == answer->id) {
			repair_on_reply(m, slot, answer);
			return;
		}
	}
}
