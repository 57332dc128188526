/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends flushes to one member: a batch with the intent and the writes, and one flush operation
 * after the last of several parts. */
#include <stdio.h>
#include <string.h>

#include "mirror/flush_part.h"
#include "mirror/repair.h"
#include "mirror/set.h"

/* The context of a completion consists of the flush's number, the lane's generation, and the
 * slot. */
#define LANE_SLOT_BITS 3
#define LANE_GEN_BITS  8
#define LANE_GENS      (1u << LANE_GEN_BITS)
/* If the placed bytes span more than this, flush all placed bytes by one operation without a range:
 * the target has noted the regions that were written. */
#define LANE_SPAN_MAX (64ull << 20)
/* Largest number of outstanding flush operations of a lane: data that is placed meanwhile shares
 * the next operation (group commit). A target executes one operation after the other, so a second
 * operation would only wait at the target. */
#define LANE_FLUSHES 1u
/* If more bytes than this were placed, a flush operation does not wait for others. The bytes are
 * then a part of a large flush: the member writes them back while the next part is in transfer and
 * this process writes back its own file. */
#define LANE_SHARED_MAX (1ull << 20)

static const void *lane_context(const struct set_member *member, unsigned slot, uint64_t seq)
{
	return (const void *)(uintptr_t)(seq << (LANE_SLOT_BITS + LANE_GEN_BITS) |
					 (member->generation % LANE_GENS) << LANE_SLOT_BITS | slot);
}

static void lane_failed(struct rpmirror *m, unsigned slot, const char *why)
{
	m->members[slot].lane_failed = true;
	link_fail(&m->members[slot].lane, why);
	set_wake(m);
}

static void lane_forget_flushes(struct set_member *member)
{
	member->flushing = 0;
	member->placed = 0;
	member->awaits_flush = false;
}

void lane_begin(struct rpmirror *m, unsigned slot)
{
	struct set_member *member = &m->members[slot];

	member->generation++;
	member->lane_failed = false;
	lane_forget_flushes(member);
	if (rpma_batch_new(member->lane.conn,
			   sizeof(((struct lane_flush *)0)->pieces) / sizeof(struct lane_piece) + 2,
			   &member->batch))
		lane_failed(m, slot, rpma_err_last());
}

void lane_end(struct rpmirror *m, unsigned slot)
{
	struct set_member *member = &m->members[slot];

	rpma_batch_delete(&member->batch);
	lane_forget_flushes(member);
	member->verifying = false;
	link_close(&member->lane);
}

/*
 * Add the flush operation of a lane. For a file, flush the range of the data: one write-back costs
 * the same for all pages of the file. The intent is in another file, and need not be on the medium.
 * Persistent memory is written back line by line, so flush exactly the placed bytes.
 */
static int lane_add_flush_of(struct set_member *member, struct mirror_range span,
			     const void *context)
{
	uint32_t caps = 0;

	if (member->lane.grant.durability == RPMA_DURABILITY_VOLATILE)
		return rpma_batch_flush(member->batch, member->lane.data, span.offset, span.len,
					RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ALWAYS,
					context);
	rpma_conn_get_remote_caps(member->lane.conn, &caps);
	if (caps & RPMA_CAP_FLUSH_ALL &&
	    (member->lane.grant.durability != RPMA_DURABILITY_FILE || span.len > LANE_SPAN_MAX))
		return rpma_batch_flush_all(member->batch, RPMA_FLUSH_TYPE_PERSISTENT,
					    RPMA_F_COMPLETION_ALWAYS, context);
	return rpma_batch_flush(member->batch, member->lane.data, span.offset, span.len,
				RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ALWAYS, context);
}

/* Add a flush operation for all bytes that were placed, which belong to flushes up to seq; or note
 * that a flush operation is due. */
static int lane_add_flush(struct rpmirror *m, unsigned slot, uint64_t seq)
{
	struct set_member *member = &m->members[slot];
	struct mirror_range span;

	member->awaits_flush =
		member->flushing >= LANE_FLUSHES && member->placed <= LANE_SHARED_MAX;
	if (member->awaits_flush)
		return 0;
	span = flush_cover(&m->flush, slot);
	if (!span.len)
		return 0;
	member->flushing++;
	member->placed = 0;
	return lane_add_flush_of(member, span, lane_context(member, slot, seq));
}

static int lane_fill(struct rpmirror *m, unsigned slot, const struct lane_flush *f)
{
	const struct lane_piece *last = &f->pieces[f->count - 1];
	uint64_t begin = f->pieces[0].offset;
	struct set_member *member = &m->members[slot];
	const void *context = lane_context(member, slot, f->seq);
	int rc = rpma_batch_write(member->batch, member->lane.ring, intent_slot_offset(f->seq),
				  m->staging.mr, f->intent_at, f->intent_len,
				  RPMA_F_COMPLETION_ON_ERROR, context);

	for (uint32_t i = 0; i < f->count && !rc; i++)
		rc = rpma_batch_write(member->batch, member->lane.data, f->pieces[i].offset,
				      m->staging.mr, f->pieces[i].at, f->pieces[i].len,
				      RPMA_F_COMPLETION_ON_ERROR, context);
	flush_on_placed(&m->flush, slot,
			(struct mirror_range){begin, last->offset + last->len - begin});
	member->placed += f->bytes;
	if (!rc && f->is_last)
		rc = lane_add_flush(m, slot, f->seq);
	return rc;
}

void lane_post(struct rpmirror *m, unsigned slot, const struct lane_flush *f)
{
	struct set_member *member = &m->members[slot];

	if (member->lane_failed)
		return;
	if (lane_fill(m, slot, f) || rpma_batch_post(member->batch))
		lane_failed(m, slot, rpma_err_last());
}

void lane_cover(struct rpmirror *m, unsigned slot)
{
	struct set_member *member = &m->members[slot];

	if (member->lane_failed)
		return;
	if (lane_add_flush(m, slot, m->flush.begun) || rpma_batch_post(member->batch))
		lane_failed(m, slot, rpma_err_last());
}

bool lane_is_flushing(const struct rpmirror *m)
{
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (m->members[slot].flushing)
			return true;
	return false;
}

bool lane_verify(struct rpmirror *m, unsigned slot, uint64_t offset, size_t len)
{
	struct set_member *member = &m->members[slot];

	if (!member->batch || member->lane_failed ||
	    member->lane.grant.durability == RPMA_DURABILITY_VOLATILE ||
	    rpma_verify(member->lane.conn, member->lane.data, offset, len, RPMA_DIGEST_AUTO,
			&member->digest, RPMA_F_COMPLETION_ALWAYS, lane_context(member, slot, 0)))
		return false;
	member->verifying = true;
	return true;
}

void lane_explain(const struct rpmirror *m, unsigned slot, char *why, size_t size)
{
	const struct set_member *member = &m->members[slot];
	/* flushes complete in order, so this is the first that has not completed */
	uint64_t seq = m->flush.members[slot].done + 1;
	struct mirror_range span;

	if (!member->lane.medium_error || seq > m->flush.begun) {
		snprintf(why, size, "%s", member->lane.why);
		return;
	}
	span = repair_flush_span(m, seq);
	snprintf(why, size,
		 "its medium has failed, %s (errno %u), in a flush of bytes %llu to %llu of %.150s",
		 strerror((int)member->lane.medium_error), member->lane.medium_error,
		 (unsigned long long)span.offset, (unsigned long long)(span.offset + span.len - 1),
		 m->primary.rec.config.members[slot].path);
}

static void lane_on_flushed(struct rpmirror *m, unsigned slot, uint64_t seq)
{
	struct set_member *member = &m->members[slot];

	flush_on_done(&m->flush, slot, seq);
	latency_add(&member->latency, repair_flush_age(m, seq));
	member->flushing--;
	if (!member->awaits_flush)
		return;
	flush_note_covered(m);
	lane_cover(m, slot);
}

void lane_on_completion(struct rpmirror *m, const struct ibv_wc *wc)
{
	unsigned slot = wc->wr_id & (MIRROR_MEMBERS_MAX - 1);
	unsigned generation = (wc->wr_id >> LANE_SLOT_BITS) % LANE_GENS;
	uint64_t seq = wc->wr_id >> (LANE_SLOT_BITS + LANE_GEN_BITS);
	struct set_member *member = &m->members[slot];

	if (generation != member->generation % LANE_GENS || member->lane_failed || !member->batch)
		return;
	if (!seq)
		member->verifying = false;
	if (wc->status == IBV_WC_SUCCESS) {
		if (seq)
			lane_on_flushed(m, slot, seq);
		return;
	}
	member->lane_failed = true;
	link_fail_by(&member->lane, wc);
	set_wake(m);
}
