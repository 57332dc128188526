/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes one part of a flush: lays it out, records it, copies its present content, stores it to this
 * host's file and posts it. */
#include "mirror/flush_part.h"

#include <errno.h>
#include <string.h>

#include "base/word.h"
#include "mirror/core/killpoint.h"
#include "mirror/core/ranges.h"
#include "mirror/errmsg.h"
#include "mirror/repair.h"
#include "mirror/restore.h"

/* The reason why a part has to wait. */
enum flush_try {
	FLUSH_READY,
	FLUSH_PIECE, /* a piece of a resync touches the ranges */
	FLUSH_ROOM,
	FLUSH_UNREAD,   /* a page of the mapping has to be restored */
	FLUSH_UNSTORED, /* a page of the file has to be restored */
};

/* Give each piece an address in the staging memory, with the same offset in a word as in the
 * file. */
static void flush_lay_out(struct lane_flush *f, const struct mirror_range *v, uint32_t n)
{
	uint64_t at = INTENT_BYTES;

	f->count = 0;
	for (uint32_t i = 0; i < n; i++) {
		for (uint64_t done = 0; done < v[i].len;) {
			struct lane_piece *piece = &f->pieces[f->count++];
			uint64_t left = v[i].len - done;

			piece->offset = v[i].offset + done;
			piece->len = word_piece(piece->offset, left, SET_CHUNK);
			piece->at = at + piece->offset % WORD_LEN;
			at = (piece->at + piece->len + WORD_LEN - 1) / WORD_LEN * WORD_LEN;
			done += piece->len;
		}
	}
	f->bytes = at;
}

/* W2: mark the extents as hot. Returns false if all slots are in use by outstanding flushes. */
static bool flush_mark_hot(struct rpmirror *m, const struct flush_part *part)
{
	uint64_t seq = m->flush.begun + 1;
	int rc;

	/* in a direct mapping the fault of the first store has marked the extent */
	if (m->failed_seq || m->direct)
		return true;
	rc = hot_mark(&m->hot, part->v, part->n, seq, m->flush.retired);
	if (rc && rc != -EBUSY)
		set_local_failed(m, seq, rc);
	return rc != -EBUSY;
}

static bool flush_has_room(struct rpmirror *m, const struct flush_part *part,
			   const struct lane_flush *f, uint64_t *at)
{
	uint64_t oldest = m->flush.begun;

	if (m->flush.begun - m->flush.retired >= FLUSH_MAX || (m->quiescing && !part->is_own) ||
	    m->is_protected || restore_holds_flushes(m))
		return false;
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (m->flush.members[slot].from && m->flush.members[slot].done < oldest)
			oldest = m->flush.members[slot].done;
	if (m->queued + f->count + 2 - m->queued_to[oldest % FLUSH_MAX] > SET_QUEUE)
		return false;
	return flush_mark_hot(m, part) && staging_take(&m->staging, f->bytes, at);
}

struct flush_copying {
	struct rpmirror *m;
	const struct lane_flush *f;
	/* position in the staging memory; the positions of the pieces are relative to it */
	uint64_t at;
};

static void flush_take(void *arg)
{
	const struct flush_copying *c = arg;
	const uint8_t *app = c->m->direct ? c->m->copy.shared : c->m->app;

	for (uint32_t i = 0; i < c->f->count; i++) {
		const struct lane_piece *piece = &c->f->pieces[i];

		copy_words(c->m->staging.base + c->at + piece->at, app + piece->offset, piece->len);
	}
}

static void flush_store(void *arg)
{
	const struct flush_copying *c = arg;

	for (uint32_t i = 0; i < c->f->count; i++) {
		const struct lane_piece *piece = &c->f->pieces[i];

		copy_put(&c->m->copy, piece->offset, c->m->staging.base + c->at + piece->at,
			 piece->len);
	}
}

/* Copy the present content of the mapping once, for all members' copies. */
static enum flush_try flush_snapshot(struct rpmirror *m, struct lane_flush *f, uint64_t at,
				     uint64_t *offset)
{
	struct flush_copying c = {m, f, at};
	enum flush_try tried = FLUSH_READY;

	if (!restore_try(m, flush_take, &c, offset))
		tried = FLUSH_UNREAD;
	/* A failed store does not matter if the own copy has already failed. */
	else if (!m->direct && !restore_try(m, flush_store, &c, offset) && !m->failed_seq)
		tried = FLUSH_UNSTORED;
	if (tried != FLUSH_READY) {
		staging_return(&m->staging, at);
		return tried;
	}
	f->intent_at = at;
	for (uint32_t i = 0; i < f->count; i++)
		f->pieces[i].at += at;
	return FLUSH_READY;
}

/* Encode the intent. If there are more ranges than fit, they are made coarser. */
static uint32_t flush_encode_intent(const struct rpmirror *m, const struct lane_flush *f,
				    const struct mirror_range *v, uint32_t n)
{
	struct intent_head head = {.seq = f->seq, .epoch = m->epoch, .acked = m->flush.retired};
	struct mirror_range fewer[SET_PART_RANGES];

	head.count = n;
	if (n > INTENT_RANGES_MAX) {
		memcpy(fewer, v, n * sizeof(*v));
		head.count = ranges_coarsen(fewer, n, INTENT_RANGES_MAX, m->size);
		v = fewer;
	}
	return (uint32_t)intent_encode(m->staging.base + f->intent_at, &head, v);
}

void flush_note_covered(struct rpmirror *m)
{
	uint64_t now = clock_boot_ms();

	while (m->covered < m->flush.begun)
		m->begun_ms[++m->covered % FLUSH_MAX] = now;
}

void flush_part_cover(struct rpmirror *m)
{
	mirror_mask members = flush_members(&m->flush);

	flush_note_covered(m);
	for (unsigned slot = 0; members; slot++, members >>= 1)
		if (members & 1)
			lane_cover(m, slot);
}

static void flush_post(struct rpmirror *m, struct lane_flush *f, const struct flush_part *part)
{
	mirror_mask members = flush_members(&m->flush);

	f->seq = flush_begin(&m->flush);
	f->is_last = part->is_last;
	f->intent_len = flush_encode_intent(m, f, part->v, part->n);
	m->queued += f->count + 2;
	if (f->is_last)
		flush_note_covered(m);
	m->staged_to[f->seq % FLUSH_MAX] = m->staging.end;
	m->queued_to[f->seq % FLUSH_MAX] = m->queued;
	/* before the send, so that the measured time of the flush includes it */
	repair_on_begin(m);
	for (unsigned slot = 0; members; slot++, members >>= 1)
		if (members & 1)
			lane_post(m, slot, f);
	repair_on_flush(m, part->v, part->n);
}

static int flush_may_begin(struct rpmirror *m, uint64_t since_ms)
{
	int rc = restore_check(m);

	files_look(m);
	return rc ? rc : wait_check(m, since_ms);
}

/* Try to post a part. Called with the set's lock, which stays held. */
static enum flush_try flush_try(struct rpmirror *m, const struct flush_part *part,
				struct lane_flush *f, struct repair_hold *hold, uint64_t *offset)
{
	uint64_t at;

	/* when a flush operation ends at a member, another one can be posted */
	if (lane_is_flushing(m))
		wait_poll(m);
	if (!repair_flush_enter(m, hold, part->v, part->n))
		return FLUSH_PIECE;
	if (!flush_has_room(m, part, f, &at)) {
		wait_poll(m);
		if (!flush_has_room(m, part, f, &at))
			return FLUSH_ROOM;
	}
	return flush_snapshot(m, f, at, offset);
}

/* Called with the set's lock, which is released meanwhile. A flush under way gives its room back
 * only after it is durable in the own file, too. */
static void flush_wait_for_room(struct rpmirror *m)
{
	if (!write_back_await(m, m->flush.begun, CLOCK_NEVER))
		wait_step(m, CLOCK_NEVER);
}

/* Wait until the part can be tried again. Called with the set's lock, which is released meanwhile.
 * Returns 0 or an RPMIRROR_E_*. */
static int flush_wait_for(struct rpmirror *m, enum flush_try tried, uint64_t offset)
{
	if (tried == FLUSH_PIECE)
		repair_wait(m);
	else if (tried == FLUSH_ROOM)
		flush_wait_for_room(m);
	else if (!restore_wait(m, offset) && tried == FLUSH_UNREAD)
		return errmsg_fail(RPMIRROR_E_MEDIUM, "set %s: the memory to flush cannot be read",
				   m->set);
	return 0;
}

int flush_part_begin(struct rpmirror *m, const struct flush_part *part, uint64_t *seq)
{
	struct lane_flush f;
	struct repair_hold hold = {0};
	enum flush_try tried = FLUSH_ROOM;
	uint64_t since = clock_boot_ms(), offset;
	int rc = flush_may_begin(m, since);

	flush_lay_out(&f, part->v, part->n);
	while (!rc && (tried = flush_try(m, part, &f, &hold, &offset)) != FLUSH_READY) {
		if (!part->may_wait)
			break;
		rc = flush_wait_for(m, tried, offset);
		rc = rc ? rc : flush_may_begin(m, since);
	}
	if (!rc && tried == FLUSH_READY) {
		killpoint(KILLPOINT_flush_snapshot);
		flush_post(m, &f, part);
		if (m->direct && !part->is_own)
			direct_on_flush(m->direct, part->v, part->n);
		killpoint(KILLPOINT_flush_posted);
		*seq = f.seq;
	}
	repair_flush_leave(m, &hold);
	return rc ? rc : tried != FLUSH_READY;
}
