/* SPDX-License-Identifier: BSD-3-Clause */
/* rpmirror_flush() and its two halves. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/poll.h"
#include "mirror/core/ranges.h"
#include "mirror/core/killpoint.h"
#include "mirror/errmsg.h"
#include "mirror/repair.h"
#include "mirror/restore.h"
#include "mirror/set.h"

#define FLUSH_ON_STACK      64
#define FLUSH_SLOW_EVERY_MS 1000

/* ---- arguments ---- */

static int flush_convert(const struct rpmirror *m, const struct rpmirror_range *ranges, unsigned n,
			 struct mirror_range *v)
{
	for (unsigned i = 0; i < n; i++) {
		uintptr_t at = (uintptr_t)ranges[i].addr, base = (uintptr_t)m->app;

		if (!ranges[i].len) {
			v[i] = (struct mirror_range){0, 0};
			continue;
		}
		v[i] = (struct mirror_range){at - base, ranges[i].len};
		if (at < base || !ranges_are_inside(&v[i], 1, m->size))
			return errmsg_fail(RPMIRROR_E_INVAL,
					   "range %u, %zu bytes at %p, is not inside the mapping "
					   "of set %s, %llu bytes at %p",
					   i, ranges[i].len, ranges[i].addr, m->set,
					   (unsigned long long)m->size, (void *)m->app);
	}
	return 0;
}

static int flush_check_arguments(const struct rpmirror *m, const struct rpmirror_range *ranges,
				 unsigned n, unsigned flags)
{
	if (!set_is_usable(m))
		return errmsg_fail(RPMIRROR_E_INVAL, "there is no set, or a parent process mapped "
						     "it");
	if (!m->app || !m->has_thread)
		return errmsg_fail(RPMIRROR_E_INVAL, "set %s is mapped read-only", m->set);
	if (flags || (n && !ranges) || n > RPMIRROR_RANGES_MAX)
		return errmsg_fail(RPMIRROR_E_INVAL, "flags %#x or %u ranges at %p are not valid",
				   flags, n, (const void *)ranges);
	return 0;
}

/* ---- one part: what has a number of its own ---- */

/* How many of the ranges make the next part; the last one of them may be cut to *cut bytes. */
static uint32_t flush_part(const struct rpmirror *m, const struct mirror_range *v, uint32_t n,
			   uint64_t *cut)
{
	/* A range of a part touches at most two extents, and all of them are hot together. */
	uint32_t slots = m->hot.meta.super.hot_slots / 2, most = slots ? slots : 1, i;
	uint64_t sum = 0;

	if (most > SET_PART_RANGES)
		most = SET_PART_RANGES;
	for (i = 0; i < n && i < most; i++) {
		if (sum == SET_PART_BYTES)
			break;
		if (sum + v[i].len > SET_PART_BYTES) {
			*cut = SET_PART_BYTES - sum;
			return i + 1;
		}
		sum += v[i].len;
	}
	*cut = v[i - 1].len;
	return i;
}

/* Where each piece goes in the staging memory; the offset in a word is that in the file. */
static uint64_t flush_lay_out(struct lane_flush *f, const struct mirror_range *v, uint32_t n)
{
	uint64_t at = INTENT_BYTES;

	f->count = 0;
	for (uint32_t i = 0; i < n; i++) {
		for (uint64_t done = 0; done < v[i].len;) {
			struct lane_piece *piece = &f->pieces[f->count++];
			uint64_t left = v[i].len - done;

			piece->offset = v[i].offset + done;
			piece->len = left < SET_CHUNK ? left : SET_CHUNK;
			piece->at = at + piece->offset % 8;
			at = (piece->at + piece->len + 7) & ~7ull;
			done += piece->len;
		}
	}
	return at;
}

/* False: all slots are in use by flushes under way. */
static bool flush_mark_hot(struct rpmirror *m, const struct lane_flush *f)
{
	struct mirror_range v[sizeof(f->pieces) / sizeof(f->pieces[0])];
	uint64_t seq = m->flush.begun + 1;
	int rc;

	if (m->failed_seq || m->direct) /* direct: the store's fault has done it */
		return true;
	for (uint32_t i = 0; i < f->count; i++)
		v[i] = (struct mirror_range){f->pieces[i].offset, f->pieces[i].len};
	rc = hot_mark(&m->hot, v, f->count, seq, m->flush.retired);
	if (rc && rc != -EBUSY)
		set_local_failed(m, seq, rc);
	return rc != -EBUSY;
}

static bool flush_has_room(struct rpmirror *m, const struct lane_flush *f, uint64_t bytes,
			   bool is_own, uint64_t *at)
{
	uint64_t oldest = m->flush.begun;

	if (m->flush.begun - m->flush.retired >= FLUSH_MAX || (m->quiescing && !is_own) ||
	    m->is_protected || restore_holds_flushes(m))
		return false;
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (m->flush.members[slot].from && m->flush.members[slot].done < oldest)
			oldest = m->flush.members[slot].done;
	if (m->queued + f->count + 2 - m->queued_to[oldest % FLUSH_MAX] > SET_QUEUE)
		return false;
	return flush_mark_hot(m, f) && staging_take(&m->staging, bytes, at);
}

struct flush_copying {
	struct rpmirror *m;
	const struct lane_flush *f;
	uint64_t at; /* in the staging memory, of what the pieces' places are relative to */
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

		copy_words(c->m->copy.shared + piece->offset,
			   c->m->staging.base + c->at + piece->at, piece->len);
	}
}

/*
 * Take the content as it is now, once, for all copies. 0; 1: a page was restored meanwhile, and the
 * lock was released for that; RPMIRROR_E_MEDIUM: it cannot be.
 */
static int flush_snapshot(struct rpmirror *m, struct lane_flush *f, uint64_t at)
{
	struct flush_copying c = {m, f, at};
	uint64_t offset;

	if (!restore_try(m, flush_take, &c, &offset)) {
		staging_return(&m->staging, at);
		return restore_wait(m, offset)
			       ? 1
			       : errmsg_fail(RPMIRROR_E_MEDIUM,
					     "set %s: what is to be flushed cannot be read",
					     m->set);
	}
	/* A copy that has failed gets what it takes. */
	if (!m->direct && !restore_try(m, flush_store, &c, &offset) && !m->failed_seq) {
		staging_return(&m->staging, at);
		restore_wait(m, offset);
		return 1;
	}
	f->intent_at = at;
	for (uint32_t i = 0; i < f->count; i++)
		f->pieces[i].at += at;
	return 0;
}

/* More ranges than fit are made coarser. */
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

static void flush_post(struct rpmirror *m, struct lane_flush *f, const struct mirror_range *v,
		       uint32_t n)
{
	mirror_mask members = flush_members(&m->flush);

	f->seq = flush_begin(&m->flush);
	f->intent_len = flush_encode_intent(m, f, v, n);
	m->queued += f->count + 2;
	m->begun_ms[f->seq % FLUSH_MAX] = clock_boot_ms();
	m->staged_to[f->seq % FLUSH_MAX] = m->staging.end;
	m->queued_to[f->seq % FLUSH_MAX] = m->queued;
	repair_on_begin(m); /* to send it is a part of what it takes */
	for (unsigned slot = 0; members; slot++, members >>= 1)
		if (members & 1)
			lane_post(m, slot, f);
	repair_on_flush(m, v, n);
}

static int flush_may_begin(struct rpmirror *m, uint64_t since_ms)
{
	int rc = restore_check(m);

	return rc ? rc : wait_check(m, since_ms);
}

/* Locked. Wait until there is room, then snapshot and post. */
static int flush_begin_part(struct rpmirror *m, const struct mirror_range *v, uint32_t n,
			    bool is_own, uint64_t *seq)
{
	struct lane_flush f;
	uint64_t bytes = flush_lay_out(&f, v, n), since = clock_boot_ms(), at;
	struct repair_hold hold = {0};
	int rc = flush_may_begin(m, since), again = 1;

	while (!rc && again) {
		if (!repair_flush_enter(m, &hold, v, n))
			repair_wait(m);
		else if (!flush_has_room(m, &f, bytes, is_own, &at))
			wait_step(m, CLOCK_NEVER);
		else
			again = flush_snapshot(m, &f, at);
		rc = again < 0 ? again : again ? flush_may_begin(m, since) : 0;
	}
	if (!rc) {
		killpoint(KILLPOINT_flush_snapshot);
		flush_post(m, &f, v, n);
		if (m->direct && !is_own)
			direct_on_flush(m->direct, v, n);
		killpoint(KILLPOINT_flush_posted);
		*seq = f.seq;
	}
	repair_flush_leave(m, &hold);
	return rc;
}

/* Who joined since has it from this copy, which may not have it. */
static void flush_lose_joined(struct rpmirror *m, uint64_t seq)
{
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (m->flush.members[slot].from > seq)
			act_lost(m, slot, "it was made equal by a copy that has failed");
}

static void flush_local(struct rpmirror *m, const struct mirror_range *v, uint32_t n, uint64_t seq)
{
	int rc = copy_persist(&m->copy, v, n);
	bool shares_errors = copy_shares_errors(&m->copy);

	killpoint(KILLPOINT_flush_local);
	pthread_mutex_lock(&m->lock);
	if (shares_errors)
		restore_await_write(m);
	if (rc) {
		/* The failure may be one of those that are not certain yet. */
		uint64_t first = m->flush.local + 1;

		if (!m->failed_seq)
			flush_lose_joined(m, first);
		set_local_failed(m, first, rc);
		for (uint32_t i = 0; i < n; i++)
			set_add_error(m, v[i], (struct set_loss){.dirty = true}, strerror(-rc));
	}
	flush_on_local(&m->flush, seq, shares_errors);
	wait_settle(m);
	pthread_mutex_unlock(&m->lock);
}

/* Normal ranges; seq 0: there were none. is_own: the library's, also while the set is given up, and
 * what was touched stays so. */
static int flush_begin_all(struct rpmirror *m, struct mirror_range *v, uint32_t n, bool is_own,
			   uint64_t *seq)
{
	int rc = n ? 0 : set_end_code(m);

	if (rc)
		errmsg_fail(rc, "%s", m->ended_why);
	for (*seq = 0; n && !rc;) {
		uint64_t cut;
		uint32_t count = flush_part(m, v, n, &cut), last = count - 1;
		struct mirror_range rest = {v[last].offset + cut, v[last].len - cut};

		v[last].len = cut;
		set_lock_in_turn(m);
		rc = flush_begin_part(m, v, count, is_own, seq);
		pthread_mutex_unlock(&m->lock);
		if (rc)
			break;
		flush_local(m, v, count, *seq);
		v[last] = rest;
		if (rest.len)
			count--;
		v += count;
		n -= count;
	}
	return rc;
}

int rpmirror_flush_start(struct rpmirror *m, const struct rpmirror_range *ranges, unsigned n,
			 unsigned flags, uint64_t *ticket)
{
	struct mirror_range some[FLUSH_ON_STACK], *v = some;
	uint64_t seq = 0;
	int rc = flush_check_arguments(m, ranges, n, flags);

	if (rc)
		return rc;
	if (!ticket)
		return errmsg_fail(RPMIRROR_E_INVAL, "there is no room for the ticket");
	killpoint(KILLPOINT_flush_begin);
	if (n > FLUSH_ON_STACK)
		v = malloc(n * sizeof(*v));
	if (!v)
		return errmsg_fail(RPMIRROR_E_NOMEM, "no memory for %u ranges", n);
	rc = flush_convert(m, ranges, n, v);
	if (!rc)
		rc = flush_begin_all(m, v, ranges_normalise(v, n), false, &seq);
	if (v != some)
		free(v);
	if (!rc)
		*ticket = seq;
	return rc;
}

/* ---- the outcome ---- */

/* At most one event a second: whoever is slow is so for a while. */
static void flush_note_slow(struct rpmirror *m, uint64_t seq)
{
	uint64_t now = clock_boot_ms(), took;

	if (!seq || m->flush.begun - seq >= FLUSH_MAX)
		return;
	took = now - m->begun_ms[seq % FLUSH_MAX];
	if (took < m->primary.rec.config.slow_ms || now - m->slow_noted_ms < FLUSH_SLOW_EVERY_MS)
		return;
	m->slow_noted_ms = now;
	events_add(&m->events, RPMIRROR_EVENT_SLOW, UINT32_MAX, took * 1000, "a flush took %llu ms",
		   (unsigned long long)took);
}

/* Locked. 0, also when the deadline has passed, or why it is not acknowledged. */
static int flush_await_number(struct rpmirror *m, uint64_t seq, uint64_t deadline)
{
	uint64_t since = clock_boot_ms();
	bool in_time = true;
	int rc = 0;

	while (seq > m->flush.retired && !rc && in_time) {
		in_time = wait_step(m, deadline);
		if (seq > m->flush.retired)
			rc = wait_check(m, since);
	}
	return rc;
}

/* Locked. */
static int flush_await(struct rpmirror *m, uint64_t seq, uint64_t deadline)
{
	int rc = flush_await_number(m, seq, deadline);

	if (seq <= m->flush.retired) {
		killpoint(KILLPOINT_flush_settled);
		flush_note_slow(m, seq);
		return flush_verdict(m, seq);
	}
	return rc ? rc : RPMIRROR_E_AGAIN;
}

int flush_whole(struct rpmirror *m, struct mirror_range *v, uint32_t n)
{
	uint64_t seq;
	int rc;

	pthread_mutex_unlock(&m->lock);
	rc = flush_begin_all(m, v, n, true, &seq);
	pthread_mutex_lock(&m->lock);
	if (!rc)
		rc = flush_await_number(m, seq, CLOCK_NEVER);
	return rc ? rc : flush_verdict(m, seq);
}

int rpmirror_flush_wait(struct rpmirror *m, uint64_t ticket, int timeout_ms,
			struct rpmirror_result *res)
{
	struct rpmirror_result result;
	bool has_result = false;
	int rc = flush_check_arguments(m, NULL, 0, 0);

	if (rc)
		return rc;
	pthread_mutex_lock(&m->lock);
	if (ticket > m->flush.begun) {
		rc = errmsg_fail(RPMIRROR_E_INVAL, "there is no flush with ticket %llu",
				 (unsigned long long)ticket);
	} else {
		rc = flush_await(m, ticket, poll_deadline(timeout_ms));
		flush_fill_result(m, ticket, &result);
		has_result = true;
	}
	pthread_mutex_unlock(&m->lock);
	if (res && has_result) /* perhaps in a direct mapping: not under the lock */
		*res = result;
	return rc;
}

int rpmirror_flush(struct rpmirror *m, const struct rpmirror_range *ranges, unsigned n,
		   unsigned flags, struct rpmirror_result *res)
{
	struct rpmirror_result result;
	uint64_t ticket;
	int rc = rpmirror_flush_start(m, ranges, n, flags, &ticket);

	if (rc && rc != RPMIRROR_E_INVAL && res && set_is_usable(m)) {
		pthread_mutex_lock(&m->lock);
		flush_fill_result(m, 0, &result);
		pthread_mutex_unlock(&m->lock);
		*res = result;
	}
	return rc ? rc : rpmirror_flush_wait(m, ticket, -1, res);
}
