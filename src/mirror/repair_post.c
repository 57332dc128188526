/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posts on bulk connections.
 *
 * The bytes to send are chosen under the set's lock. The copy into registered memory and the posts
 * are made without the lock, because flushes would have to wait for them. At that time the piece is
 * already in flight (core/resync.h), so a flush that changes the piece meanwhile counts as later,
 * or waits. Only the thread of resyncs fills buffers and posts. If a member is dropped meanwhile,
 * that thread closes the member's connection.
 */
#include <stdio.h>

#include "mirror/repair_impl.h"
#include "mirror/restore.h"

#define POST_MAX (2 * MIRROR_MEMBERS_MAX)

struct post {
	unsigned slot, generation;
	struct rpma_conn *conn;
	struct rpma_mr_remote *data;
	const void *context;
	bool is_flush;
	enum rpma_flush_type type;  /* kind of a flush operation */
	uint64_t first, len;        /* range that the flush operation covers */
	struct resync_piece piece;  /* the piece to write or compare */
	unsigned buffer;            /* the buffer of the piece */
	struct rpma_digest *theirs; /* destination of the member's digests */
	bool is_unreadable;         /* result: this host's copy cannot be read at `offset` */
	uint64_t offset;
	int rc;
	char why[200];
};

struct posts {
	struct post list[POST_MAX];
	unsigned count;
};

/* ---- under the lock: the bytes to send ---- */

/* Remove the next run of blocks of a piece from *blocks, and return it. */
static struct mirror_range post_next_run(const struct repair *r, const struct resync_piece *piece,
					 uint64_t *blocks)
{
	unsigned first = (unsigned)__builtin_ctzll(*blocks);
	uint64_t behind = ~(*blocks >> first), left;
	unsigned count = behind ? (unsigned)__builtin_ctzll(behind) : 64;
	struct mirror_range run = {piece->offset + (uint64_t)first * MIRROR_BLOCK,
				   (uint64_t)count * MIRROR_BLOCK};

	left = r->m->size - run.offset;
	run.len = run.len < left ? run.len : left;
	*blocks = first + count < 64 ? *blocks >> (first + count) << (first + count) : 0;
	return run;
}

static void post_count_writes(const struct repair *r, struct repair_member *rm,
			      const struct resync_piece *piece)
{
	for (uint64_t blocks = piece->blocks; blocks;) {
		struct mirror_range run = post_next_run(r, piece, &blocks);

		if (!rm->unflushed || run.offset < rm->first)
			rm->first = run.offset;
		if (!rm->unflushed || run.offset + run.len > rm->end)
			rm->end = run.offset + run.len;
		rm->unflushed += run.len;
	}
}

static struct post *post_add(struct repair *r, unsigned slot, struct posts *posts)
{
	const struct repair_member *rm = r->members[slot];
	struct post *p = &posts->list[posts->count++];

	*p = (struct post){.slot = slot,
			   .generation = rm->generation,
			   .conn = rm->bulk.conn,
			   .data = rm->bulk.data};
	return p;
}

static void post_add_work(struct repair *r, unsigned slot, struct repair_work *w,
			  struct posts *posts)
{
	struct repair_member *rm = r->members[slot];
	struct post *p = post_add(r, slot, posts);

	p->context = REPAIR_OF_WORK(w - rm->works);
	p->piece = w->piece;
	p->buffer = w->buffer;
	p->theirs = w->theirs;
	w->waits = w->has_ours = false;
	w->flush = 0;
	w->pending = 0;
	if (w->piece.op == RESYNC_OP_COPY)
		post_count_writes(r, rm, &w->piece);
	else
		w->pending = (unsigned)__builtin_popcountll(repair_digests(&w->piece));
	compare_on_read(r->m, slot);
}

static void post_add_flush(struct repair *r, unsigned slot, struct posts *posts)
{
	struct repair_member *rm = r->members[slot];
	struct post *p = post_add(r, slot, posts);

	p->is_flush = true;
	p->type = rm->bulk.grant.durability == RPMA_DURABILITY_VOLATILE
			  ? RPMA_FLUSH_TYPE_VISIBILITY
			  : RPMA_FLUSH_TYPE_PERSISTENT;
	p->first = rm->first;
	p->len = rm->end - rm->first;
	p->context = REPAIR_OF_FLUSH(++rm->flush);
	for (unsigned i = 0; i < REPAIR_WORKS; i++) {
		struct repair_work *w = &rm->works[i];

		if (w->is_used && !w->waits && w->piece.op == RESYNC_OP_COPY && !w->flush)
			w->flush = rm->flush;
	}
	rm->unflushed = 0;
}

/* Collect the posts. Returns false if not all posts fit. */
static bool post_collect(struct repair *r, unsigned slot, bool flush_all, struct posts *posts)
{
	struct repair_member *rm = r->members[slot];

	if (!rm || rm->stage != REPAIR_RUNNING)
		return true;
	for (unsigned i = 0; i < REPAIR_WORKS; i++) {
		struct repair_work *w = &rm->works[i];

		if (!w->is_used || !w->waits)
			continue;
		if (posts->count + 2 > POST_MAX)
			return false;
		post_add_work(r, slot, w, posts);
	}
	if (!rm->unflushed ||
	    !(flush_all || rm->rs.mode == RESYNC_JOINING || rm->unflushed >= REPAIR_FLUSH))
		return true;
	if (posts->count == POST_MAX)
		return false;
	post_add_flush(r, slot, posts);
	return true;
}

static bool post_collect_all(struct repair *r, bool flush_all, struct posts *posts)
{
	bool all = true;

	posts->count = 0;
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX && all; slot++)
		all = post_collect(r, slot, flush_all, posts);
	return all;
}

/* ---- without the lock ---- */

struct post_filling {
	uint8_t *to;
	const uint8_t *from;
	uint64_t len;
};

static void post_copy(void *arg)
{
	const struct post_filling *f = arg;

	copy_words(f->to, f->from, f->len);
}

/* Fill the buffer of a post. Returns false if this part of this host's copy cannot be read now. */
static bool post_fill(struct repair *r, struct post *p)
{
	struct post_filling f = {r->buffers + (size_t)p->buffer * REPAIR_PIECE +
					 p->piece.offset % REPAIR_PIECE,
				 r->m->copy.shared + p->piece.offset, p->piece.len};

	if (!r->filled[p->buffer])
		r->filled[p->buffer] = restore_try(r->m, post_copy, &f, &p->offset);
	return r->filled[p->buffer];
}

static int post_write(const struct repair *r, const struct post *p)
{
	int rc = 0;

	for (uint64_t blocks = p->piece.blocks; blocks && !rc;) {
		struct mirror_range run = post_next_run(r, &p->piece, &blocks);

		rc = rpma_write(p->conn, p->data, run.offset, r->mr,
				(size_t)p->buffer * REPAIR_PIECE + run.offset % REPAIR_PIECE,
				run.len, RPMA_F_COMPLETION_ON_ERROR, p->context);
	}
	return rc;
}

static int post_verify(const struct repair *r, const struct post *p)
{
	int rc = 0;

	for (uint64_t left = repair_digests(&p->piece); left && !rc; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);
		uint64_t offset;
		uint32_t len = repair_digest_part(r, &p->piece, i, &offset);

		rc = rpma_verify(p->conn, p->data, offset, len, REPAIR_DIGEST, &p->theirs[i],
				 RPMA_F_COMPLETION_ALWAYS, p->context);
	}
	return rc;
}

static void post_carry_out(struct repair *r, struct post *p)
{
	if (p->is_flush)
		p->rc = rpma_flush(p->conn, p->data, p->first, p->len, p->type,
				   RPMA_F_COMPLETION_ALWAYS, p->context);
	else if (!post_fill(r, p))
		p->is_unreadable = true;
	else
		p->rc = p->piece.op == RESYNC_OP_COPY ? post_write(r, p) : post_verify(r, p);
	if (p->rc)
		snprintf(p->why, sizeof(p->why), "%s", rpma_err_last());
}

/* ---- under the lock: the results ---- */

/* Handle an unreadable page of this host's copy. During a promotion no other member has the
 * content of this copy yet, so the page cannot be restored, and another host has to be the
 * primary. */
static void post_on_unreadable(struct repair *r, const struct post *p)
{
	if (r->m->serving)
		restore_later(r->m, p->offset);
	else
		primary_on_local_failed(&r->m->primary);
}

static void post_conclude(struct repair *r, const struct posts *posts)
{
	mirror_mask lost = 0;

	for (unsigned i = 0; i < posts->count; i++) {
		const struct post *p = &posts->list[i];
		const struct repair_member *rm = r->members[p->slot];

		if (p->is_unreadable)
			post_on_unreadable(r, p);
		if ((!p->rc && !p->is_unreadable) || lost & MIRROR_BIT(p->slot) ||
		    rm->generation != p->generation || rm->stage != REPAIR_RUNNING)
			continue;
		lost |= MIRROR_BIT(p->slot);
		if (p->is_unreadable) /* the piece is tried again when the member returns */
			act_lost(r->m, p->slot, "a part of this host's copy cannot be read");
		else
			repair_on_end(r, p->slot, p->why);
	}
	if (lost)
		set_wake(r->m);
}

void repair_leave_link(struct repair *r, struct repair_member *rm)
{
	/* If a former connection was left to the thread, the thread is not posting to the present
	 * connection. */
	if (!r->is_posting || rm->left.state != LINK_DOWN) {
		link_close(&rm->bulk);
		return;
	}
	rm->left = rm->bulk;
	rm->bulk = (struct link){.state = LINK_DOWN};
}

void repair_post(struct repair *r, bool flush_all)
{
	struct posts posts;
	bool all = false;

	while (!all) {
		all = post_collect_all(r, flush_all, &posts);
		if (!posts.count)
			return;
		r->is_posting = true;
		pthread_mutex_unlock(&r->m->lock);
		for (unsigned i = 0; i < posts.count; i++)
			post_carry_out(r, &posts.list[i]);
		set_lock_in_turn(r->m);
		r->is_posting = false;
		for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
			if (r->members[slot] && r->members[slot]->left.state != LINK_DOWN)
				link_close(&r->members[slot]->left);
		post_conclude(r, &posts);
	}
}
