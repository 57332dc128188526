/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Moves pieces: writes and flushes them, or compares them by digests; repair_post.c posts the
 * operations.
 *
 * A buffer holds the 64 KiB of the file in which its piece lies; members that get the same piece
 * at the same time share it. A flush operation at the member covers all writes before it: it is
 * posted after 4 MiB, or when no write is left. If flushes of the set may wait for pieces, each
 * piece has its own flush operation.
 */
#include <stdio.h>
#include <string.h>

#include "mirror/absent.h"
#include "mirror/repair_impl.h"
#include "mirror/restore.h"

/* ---- buffers ---- */

static unsigned repair_pump_free_buffers(const struct repair *r)
{
	unsigned n = 0;

	for (unsigned i = 0; i < REPAIR_WORKS; i++)
		n += !r->used[i];
	return n;
}

static void repair_pump_free(struct repair *r, struct repair_work *w)
{
	r->used[w->buffer]--;
	w->is_used = false;
}

/* ---- begin of pieces ---- */

static bool repair_pump_has_work(const struct repair_member *rm)
{
	for (unsigned i = 0; i < REPAIR_WORKS; i++)
		if (!rm->works[i].is_used)
			return true;
	return false;
}

static void repair_pump_start(struct repair *r, unsigned slot, const struct resync_piece *piece,
			      unsigned buffer)
{
	struct repair_work *w = r->members[slot]->works;

	while (w->is_used)
		w++;
	w->is_used = true;
	w->waits = true;
	w->piece = *piece;
	w->buffer = buffer;
}

/* Handle the end of the work: no block is left, and no piece is in flight. */
static void repair_pump_finish(struct repair *r, unsigned slot)
{
	struct repair_member *rm = r->members[slot];

	if (rm->is_compare) {
		compare_on_done(r->m, slot);
		return;
	}
	if (!rm->is_equalise) {
		repair_enter(r->m, slot, REPAIR_ENDING);
		return;
	}
	repair_finish(r->m, slot);
	act_all(r->m);
}

static void repair_pump_join(struct repair *r, unsigned slot)
{
	resync_join(&r->members[slot]->rs, repair_now_us());
	primary_on_joining(&r->m->primary, (uint8_t)slot);
	act_all(r->m);
}

struct turn {
	unsigned count;
	unsigned slots[MIRROR_MEMBERS_MAX];
	struct resync *list[MIRROR_MEMBERS_MAX];
	struct resync_piece pieces[MIRROR_MEMBERS_MAX];
	enum resync_step steps[MIRROR_MEMBERS_MAX];
};

static void repair_pump_list(struct repair *r, struct turn *t)
{
	t->count = 0;
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		struct repair_member *rm = r->members[slot];

		if (!rm || rm->stage != REPAIR_RUNNING || !repair_pump_has_work(rm))
			continue;
		t->slots[t->count] = slot;
		t->list[t->count++] = &rm->rs;
	}
}

/* Returns the buffer of a piece. Members that copy the same piece share a buffer; a piece that is
 * compared may be read again. */
static unsigned repair_pump_buffer(struct repair *r, const struct turn *t, const unsigned *buffers,
				   unsigned i)
{
	unsigned buffer = 0;

	for (unsigned j = 0; j < i && t->pieces[i].op == RESYNC_OP_COPY; j++) {
		if (t->steps[j] == RESYNC_HAS_PIECE && t->pieces[j].op == RESYNC_OP_COPY &&
		    t->pieces[i].offset == t->pieces[j].offset &&
		    t->pieces[i].len == t->pieces[j].len) {
			r->used[buffers[j]]++;
			return buffers[j];
		}
	}
	while (r->used[buffer])
		buffer++;
	r->used[buffer] = 1;
	r->filled[buffer] = false;
	return buffer;
}

static void repair_pump_carry_out(struct repair *r, const struct turn *t)
{
	unsigned buffers[MIRROR_MEMBERS_MAX];

	for (unsigned i = 0; i < t->count; i++)
		if (t->steps[i] == RESYNC_HAS_PIECE)
			buffers[i] = repair_pump_buffer(r, t, buffers, i);
	for (unsigned i = 0; i < t->count; i++) {
		if (t->steps[i] == RESYNC_HAS_PIECE)
			repair_pump_start(r, t->slots[i], &t->pieces[i], buffers[i]);
		else if (t->steps[i] == RESYNC_MAY_JOIN)
			repair_pump_join(r, t->slots[i]);
		else if (t->steps[i] == RESYNC_ENDED)
			repair_pump_finish(r, t->slots[i]);
	}
}

uint64_t repair_pump_begin(struct repair *r)
{
	uint64_t wake = UINT64_MAX;
	struct turn t;
	bool any = true;

	repair_post(r, false); /* for the pieces whose digests differ */
	while (any && !r->m->ended && repair_pump_free_buffers(r) >= MIRROR_MEMBERS_MAX) {
		repair_pump_list(r, &t);
		any = resync_next_of(t.list, t.count, repair_now_us(), t.pieces, t.steps, &wake);
		repair_pump_carry_out(r, &t);
		for (unsigned i = 0; i < t.count; i++)
			any = any || t.steps[i] == RESYNC_MAY_JOIN;
		repair_post(r, false);
	}
	repair_post(r, true);
	return wake;
}

/* ---- digests of this host's copy ---- */

uint32_t repair_digest_part(const struct repair *r, const struct resync_piece *piece, unsigned i,
			    uint64_t *offset)
{
	*offset = piece->offset + (uint64_t)i * MIRROR_BLOCK;
	if (piece->op == RESYNC_OP_COMPARE)
		return piece->len;
	return r->m->size - *offset < MIRROR_BLOCK ? (uint32_t)(r->m->size - *offset)
						   : MIRROR_BLOCK;
}

uint64_t repair_digests(const struct resync_piece *piece)
{
	return piece->op == RESYNC_OP_COMPARE ? 1 : piece->blocks;
}

static void repair_pump_compute(const struct repair *r, const struct repair_work *w,
				struct rpma_digest *ours)
{
	const uint8_t *base = r->buffers + (size_t)w->buffer * REPAIR_PIECE;

	for (uint64_t left = repair_digests(&w->piece); left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);
		uint64_t offset;
		uint32_t len = repair_digest_part(r, &w->piece, i, &offset);

		rpma_digest_compute(REPAIR_DIGEST, base + offset % REPAIR_PIECE, len, &ours[i]);
	}
}

static void repair_pump_digest_one(struct repair *r, struct repair_work *w)
{
	struct repair_work seen = {.piece = w->piece, .buffer = w->buffer};

	/* The buffer does not change without the lock, because only this thread fills buffers. */
	pthread_mutex_unlock(&r->m->lock);
	repair_pump_compute(r, &seen, seen.ours);
	set_lock_in_turn(r->m);
	if (!w->is_used || w->piece.number != seen.piece.number || w->piece.op != seen.piece.op)
		return;
	memcpy(w->ours, seen.ours, sizeof(w->ours));
	w->has_ours = true;
}

void repair_pump_digest(struct repair *r)
{
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		struct repair_member *rm = r->members[slot];

		for (unsigned i = 0; rm && i < REPAIR_WORKS; i++) {
			struct repair_work *w = &rm->works[i];

			if (w->is_used && !w->waits && w->piece.op != RESYNC_OP_COPY &&
			    !w->has_ours)
				repair_pump_digest_one(r, w);
		}
	}
}

/* ---- end of pieces ---- */

/* Remove blocks that are equal by now from the bitmap. */
static void repair_pump_unset(struct repair *r, unsigned slot, const struct repair_work *w)
{
	const struct repair_member *rm = r->members[slot];

	if (!rm->is_equalise && !rm->is_compare)
		absent_unset(r->m, slot, rm->bits, &w->piece);
}

static void repair_pump_compare(struct repair *r, unsigned slot, struct repair_work *w)
{
	struct repair_member *rm = r->members[slot];
	uint64_t differing = 0;
	bool goes_on;

	for (uint64_t left = repair_digests(&w->piece); left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);

		if (!rpma_digest_equal(&w->ours[i], &w->theirs[i]))
			differing |= 1ull << i;
	}
	if (rm->is_compare && r->m->direct &&
	    direct_may_differ(r->m->direct, meta_extent_of(w->piece.offset)))
		differing = 0;
	if (rm->is_compare && w->piece.op == RESYNC_OP_COMPARE_BLOCKS)
		compare_note(r->m, slot, &w->piece, differing, w->theirs);
	goes_on = resync_compared(&rm->rs, &w->piece, differing, repair_now_us());
	repair_pump_unset(r, slot, w);
	if (!goes_on) {
		repair_pump_free(r, w);
		return;
	}
	/* Read the piece's bytes again. A flush that begins from now on counts as later than the
	 * piece. */
	r->filled[w->buffer] = false;
	w->waits = true;
}

static void repair_pump_on_flush(struct repair *r, unsigned slot, uint64_t number)
{
	struct repair_member *rm = r->members[slot];

	rm->flush_done = number;
	for (unsigned i = 0; i < REPAIR_WORKS; i++) {
		struct repair_work *w = &rm->works[i];

		if (!w->is_used || w->waits || !w->flush || w->flush > number ||
		    w->piece.op != RESYNC_OP_COPY)
			continue;
		resync_done(&rm->rs, &w->piece, true, repair_now_us());
		repair_pump_unset(r, slot, w);
		repair_pump_free(r, w);
	}
	set_notify(r->m);
}

/* Returns the piece whose digest failed because of the member's medium; NULL: another operation
 * failed. Operations after the failed one never ran. */
static const struct resync_piece *repair_pump_unreadable(const struct repair_member *rm,
							 const struct ibv_wc *wc)
{
	enum rpma_reason reason = rpma_wc_get_reason(rm->bulk.conn, wc, NULL);
	const struct repair_work *w;

	if (wc->status == IBV_WC_WR_FLUSH_ERR || !wc->wr_id || REPAIR_IS_FLUSH(wc->wr_id) ||
	    (reason != RPMA_REASON_WRITE_BACK && reason != RPMA_REASON_GONE))
		return NULL;
	w = &rm->works[REPAIR_NUMBER(wc->wr_id) - 1];
	return w->is_used && w->piece.op != RESYNC_OP_COPY ? &w->piece : NULL;
}

/* A write to an unreadable page faults at the member. It is unknown which write faulted, so note
 * all of them. */
static void repair_pump_note_writes(struct repair *r, unsigned slot, const struct ibv_wc *wc)
{
	struct repair_member *rm = r->members[slot];
	enum rpma_reason reason = rpma_wc_get_reason(rm->bulk.conn, wc, NULL);

	if (reason != RPMA_REASON_TERMINATE_IN && reason != RPMA_REASON_GONE &&
	    reason != RPMA_REASON_DEVICE)
		return;
	for (unsigned i = 0; i < REPAIR_WORKS; i++) {
		const struct repair_work *w = &rm->works[i];

		if (w->is_used && !w->waits && w->piece.op == RESYNC_OP_COPY)
			repair_note_bad(r->m, slot, &w->piece);
	}
}

static void repair_pump_on_failure(struct repair *r, unsigned slot, const struct ibv_wc *wc)
{
	const struct repair_member *rm = r->members[slot];
	const struct resync_piece *unreadable = repair_pump_unreadable(rm, wc);
	struct resync_piece piece;
	char why[200], text[sizeof(why) + 100];

	rpma_wc_explain(rm->bulk.conn, wc, why, sizeof(why));
	if (unreadable) {
		piece = *unreadable;
		snprintf(text, sizeof(text),
			 "bytes %llu to %llu of its copy cannot be compared there: %s",
			 (unsigned long long)piece.offset,
			 (unsigned long long)(piece.offset + piece.len - 1), why);
		repair_unreadable(r->m, slot, &piece, text);
	} else {
		repair_pump_note_writes(r, slot, wc);
		repair_failed(r->m, slot, why);
	}
	set_wake(r->m);
}

static bool repair_pump_on_completion(struct repair *r, unsigned slot, const struct ibv_wc *wc)
{
	struct repair_member *rm = r->members[slot];

	if (wc->status != IBV_WC_SUCCESS) {
		repair_pump_on_failure(r, slot, wc);
		return false;
	}
	if (REPAIR_IS_FLUSH(wc->wr_id))
		repair_pump_on_flush(r, slot, REPAIR_NUMBER(wc->wr_id));
	else if (wc->wr_id)
		rm->works[REPAIR_NUMBER(wc->wr_id) - 1].pending--;
	return true;
}

static void repair_pump_judge(struct repair *r, unsigned slot)
{
	struct repair_member *rm = r->members[slot];

	for (unsigned i = 0; i < REPAIR_WORKS; i++) {
		struct repair_work *w = &rm->works[i];

		if (w->is_used && !w->waits && w->piece.op != RESYNC_OP_COPY && w->has_ours &&
		    !w->pending)
			repair_pump_compare(r, slot, w);
	}
}

bool repair_pump_collect(struct repair *r, unsigned slot)
{
	struct repair_member *rm = r->members[slot];
	struct rpma_cq *cq;
	struct ibv_wc wc;
	bool any = false;

	rpma_conn_get_cq(rm->bulk.conn, &cq);
	rpma_cq_wait_timeout(cq, 0);
	while (!rpma_cq_get_wc(cq, 1, &wc, NULL)) {
		any = true;
		if (!repair_pump_on_completion(r, slot, &wc))
			return false;
	}
	if (any && rm->is_equalise)
		primary_on_progress(&r->m->primary, (uint8_t)slot);
	repair_pump_judge(r, slot);
	return true;
}

void repair_on_end(struct repair *r, unsigned slot, const char *why)
{
	if (r->members[slot]->stage != REPAIR_RUNNING || repair_pump_collect(r, slot))
		repair_failed(r->m, slot, why);
}

void repair_pump_end(struct repair *r, struct repair_member *rm)
{
	for (unsigned i = 0; i < REPAIR_WORKS; i++)
		if (rm->works[i].is_used)
			repair_pump_free(r, &rm->works[i]);
	rm->unflushed = 0;
}
