/* SPDX-License-Identifier: BSD-3-Clause */
/* rpmirror_flush(), rpmirror_flush_start() and rpmirror_flush_wait(). */
#include <stdlib.h>
#include <string.h>

#include "base/poll.h"
#include "base/word.h"
#include "mirror/core/killpoint.h"
#include "mirror/core/ranges.h"
#include "mirror/errmsg.h"
#include "mirror/flush_part.h"
#include "mirror/repair.h"
#include "mirror/restore.h"

#define FLUSH_ON_STACK      64
#define FLUSH_SLOW_EVERY_MS 1000

/* ---- arguments ---- */

static int flush_convert(const struct rpmirror *m, const struct rpmirror_range *ranges, unsigned n,
			 struct mirror_range *v)
{
	for (unsigned i = 0; i < n; i++) {
		/* an address before the mapping gives an offset far beyond its end */
		uint64_t offset = (uintptr_t)ranges[i].addr - (uintptr_t)m->app,
			 len = ranges[i].len;

		v[i] = (struct mirror_range){len ? offset : 0, len};
		if (len && (offset > m->size || len > m->size - offset))
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

/* ---- parts ---- */

/*
 * A flush is divided into parts, each with a number and an intent, which are posted one after the
 * other. Work that costs the same for many parts is done once for several parts. A group of parts
 * has one flush operation on each lane. A round, which is several groups, has one write-back of
 * this host's file. So members write back one group while the next group is in transfer. Other
 * threads' flushes may be posted between two parts.
 *
 * Only the first part of a round waits. If a later part has to wait, the round ends before that
 * part, because the wait may last until the earlier parts are durable.
 */
#define FLUSH_ROUND_PARTS 16u /* 8 MiB of parts */
/* 4 MiB of parts; the staging memory has space for three groups */
#define FLUSH_GROUP_PARTS 8u
#define FLUSH_GROUP_OPS   (SET_QUEUE / 4) /* limit for parts with many small ranges */

struct flush_cursor {
	uint32_t range;      /* number of ranges that the parts so far contain */
	uint64_t skip;       /* number of bytes of the next range that the parts so far contain */
	uint32_t parts, ops; /* parts and operations posted since the last flush operation */
};

enum flush_kind {
	FLUSH_OF_LIBRARY, /* also made, and valid, while the set is being given up */
	FLUSH_AWAITED,    /* its caller waits for it immediately */
	FLUSH_BEGUN,      /* its caller may begin other flushes before it waits */
};

struct flush_round {
	enum flush_kind kind;
	struct flush_cursor at;
	uint32_t count; /* number of parts; seqs has the number of each part */
	uint64_t seqs[FLUSH_ROUND_PARTS];
};

/* Returns the number of ranges that the next part touches, and moves *at to the end of that
 * part. */
static uint32_t flush_advance(const struct rpmirror *m, struct flush_cursor *at,
			      const struct mirror_range *v, uint32_t n)
{
	/* A range of a part touches at most two extents, and all extents of a part are hot at the
	 * same time. */
	uint32_t slots = m->hot.meta.super.hot_slots / 2, most = slots ? slots : 1, count = 0;
	uint64_t left = SET_PART_BYTES;

	if (most > SET_PART_RANGES)
		most = SET_PART_RANGES;
	for (; at->range < n && count < most && left >= WORD_LEN; count++) {
		uint64_t len = v[at->range].len - at->skip;
		uint64_t piece = word_piece(v[at->range].offset + at->skip, len, left);

		at->skip = piece < len ? at->skip + piece : 0;
		at->range += piece == len;
		left -= piece;
	}
	at->parts++;
	at->ops += count + 2;
	return count;
}

/* Take the ranges of the next part: the given ranges themselves, or copies in `cut` if a range has
 * to be cut. */
static void flush_take_part(const struct rpmirror *m, struct flush_cursor *at,
			    const struct mirror_range *v, uint32_t n, struct mirror_range *cut,
			    struct flush_part *part)
{
	const struct mirror_range *first = &v[at->range];
	uint64_t skip = at->skip;

	part->v = first;
	part->n = flush_advance(m, at, v, n);
	if (!skip && !at->skip)
		return;
	memcpy(cut, first, part->n * sizeof(*cut));
	if (at->skip)
		cut[part->n - 1].len = at->skip;
	cut[0].offset += skip;
	cut[0].len -= skip;
	part->v = cut;
}

/* Post the next part of a round. Returns 0; 1 if the part would have to wait, so that the round
 * ends before it; or an RPMIRROR_E_*. */
static int flush_next_part(struct rpmirror *m, struct flush_round *round,
			   const struct mirror_range *v, uint32_t n)
{
	struct mirror_range cut[SET_PART_RANGES];
	struct flush_cursor at = round->at;
	struct flush_part part = {.is_own = round->kind == FLUSH_OF_LIBRARY,
				  .may_wait = !round->count};
	int rc;

	flush_take_part(m, &at, v, n, cut, &part);
	part.is_last = at.range == n || round->count + 1 == FLUSH_ROUND_PARTS ||
		       at.parts == FLUSH_GROUP_PARTS || at.ops >= FLUSH_GROUP_OPS;
	if (part.is_last)
		at.parts = at.ops = 0;
	set_lock_in_turn(m);
	rc = flush_part_begin(m, &part, &round->seqs[round->count]);
	if (rc && round->at.parts)
		flush_part_cover(m);
	pthread_mutex_unlock(&m->lock);
	if (rc)
		return rc;
	round->at = at;
	round->count++;
	if (at.range < n &&
	    round->count < FLUSH_ROUND_PARTS) /* the disk works while the next part is posted */
		copy_write_out(&m->copy, part.v, part.n);
	return 0;
}

void flush_lose_joined(struct rpmirror *m, uint64_t seq)
{
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (m->flush.members[slot].from > seq)
			act_lost(m, slot, "it was made equal to a copy that has failed");
}

static void flush_add_error(struct rpmirror *m, const struct mirror_range *v, uint32_t n,
			    const char *text)
{
	for (uint32_t i = 0; i < n; i++)
		set_add_error(m, v[i], (struct set_loss){.dirty = true}, text);
}

static void flush_add_errors(struct rpmirror *m, const struct flush_written *written,
			     const char *text)
{
	flush_add_error(m, written->v, written->n, text);
	for (uint32_t i = 0; !written->v && i < written->count; i++) {
		uint32_t n;
		const struct mirror_range *v = repair_flush_ranges(m, written->seqs[i], &n);

		flush_add_error(m, v, n, text);
	}
}

void flush_write_back(struct rpmirror *m, const struct flush_written *written)
{
	int rc = copy_persist(&m->copy, written->v, written->n);
	bool shares_errors = copy_shares_errors(&m->copy);

	killpoint(KILLPOINT_flush_local);
	pthread_mutex_lock(&m->lock);
	if (files_look(m)) { /* descriptors of the set are lost, so rc is not valid */
		set_notify(m);
		pthread_mutex_unlock(&m->lock);
		return;
	}
	if (copy_has_cache(&m->copy))
		restore_await_write(m);
	if (rc) {
		/* The failure may belong to an earlier flush that is not certainly durable yet. */
		uint64_t first = m->flush.local + 1;

		if (!m->failed_seq)
			flush_lose_joined(m, first);
		set_local_failed(m, first, rc);
		flush_add_errors(m, written, strerror(-rc));
	}
	for (uint32_t i = 0; i < written->count; i++)
		flush_on_local(&m->flush, written->seqs[i], shares_errors);
	wait_settle(m);
	pthread_mutex_unlock(&m->lock);
}

/* Make the ranges of a round's parts durable in the own file, or let another thread do this. */
static void flush_local(struct rpmirror *m, const struct mirror_range *v, uint32_t n,
			const struct flush_round *round)
{
	struct flush_written written = {v, n, round->seqs, round->count};

	if (round->kind != FLUSH_BEGUN || !copy_persists_all(&m->copy) ||
	    !write_back_defer(m, round->seqs, round->count))
		flush_write_back(m, &written);
}

/* Post a round of at least one part and write it back. Returns 0, even if ranges are left; or an
 * RPMIRROR_E_*. */
static int flush_round(struct rpmirror *m, struct mirror_range *v, uint32_t n,
		       struct flush_round *round)
{
	const struct flush_cursor *at = &round->at;
	int rc;

	round->at = (struct flush_cursor){0};
	round->count = 0;
	do
		rc = flush_next_part(m, round, v, n);
	while (!rc && at->range < n && round->count < FLUSH_ROUND_PARTS);
	if (at->skip) {
		struct mirror_range *cut = &v[at->range], whole = *cut;

		cut->len = at->skip;
		flush_local(m, v, at->range + 1, round);
		*cut = (struct mirror_range){whole.offset + at->skip, whole.len - at->skip};
	} else if (round->count) {
		flush_local(m, v, at->range, round);
	}
	return rc < 0 ? rc : 0;
}

/* Begin a flush of all ranges. The list is normal, and is changed by the call. *seq is the number
 * of the last part; 0: there were no ranges. While the set is being given up, a flush of the
 * application waits until this is done, and then fails, because the file lacks stores that the
 * application made meanwhile. */
static int flush_begin_all(struct rpmirror *m, struct mirror_range *v, uint32_t n,
			   enum flush_kind kind, uint64_t *seq)
{
	struct flush_round round = {.kind = kind};
	int rc = n ? 0 : set_end_code(m);

	if (rc)
		errmsg_fail(rc, "%s", m->ended_why);
	for (*seq = 0; n && !rc;) {
		rc = flush_round(m, v, n, &round);
		if (round.count)
			*seq = round.seqs[round.count - 1];
		v += round.at.range;
		n -= round.at.range;
	}
	return rc;
}

static int flush_start(struct rpmirror *m, const struct rpmirror_range *ranges, unsigned n,
		       unsigned flags, enum flush_kind kind, uint64_t *ticket)
{
	struct mirror_range some[FLUSH_ON_STACK], *v = some;
	uint64_t seq = 0;
	int rc = flush_check_arguments(m, ranges, n, flags);

	if (rc)
		return rc;
	killpoint(KILLPOINT_flush_begin);
	if (n > FLUSH_ON_STACK)
		v = malloc(n * sizeof(*v));
	if (!v)
		return errmsg_fail(RPMIRROR_E_NOMEM, "no memory for %u ranges", n);
	rc = flush_convert(m, ranges, n, v);
	if (!rc)
		rc = flush_begin_all(m, v, ranges_normalise(v, n), kind, &seq);
	if (v != some)
		free(v);
	if (!rc)
		*ticket = seq;
	return rc;
}

int rpmirror_flush_start(struct rpmirror *m, const struct rpmirror_range *ranges, unsigned n,
			 unsigned flags, uint64_t *ticket)
{
	int rc;

	if (!ticket)
		return errmsg_fail(RPMIRROR_E_INVAL, "there is no room for the ticket");
	rc = flush_start(m, ranges, n, flags, FLUSH_BEGUN, ticket);
	if (rc)
		return rc;
	pthread_mutex_lock(&m->lock);
	m->tickets++;
	if (*ticket > m->started_seq)
		m->started_seq = *ticket;
	pthread_mutex_unlock(&m->lock);
	return 0;
}

/* ---- the result ---- */

/* Report a slow flush, at most once a second: a slow member stays slow for some time. */
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

/* Wait for an acknowledgement. Called with the set's lock. Returns 0 if the flush is acknowledged
 * or the deadline has passed, else the reason why it is not acknowledged. */
static int flush_await_number(struct rpmirror *m, uint64_t seq, uint64_t deadline)
{
	uint64_t since = clock_boot_ms();
	bool in_time = true;
	int rc = 0;

	for (;;) {
		/* A thread that waits for a completion does not notice the end of a write-back. */
		write_back_await(m, seq, deadline);
		if (seq <= m->flush.retired || rc || !in_time)
			return rc;
		in_time = wait_step(m, deadline);
		if (seq > m->flush.retired)
			rc = wait_check(m, since);
	}
}

/* Called with the set's lock. */
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

int flush_await_started(struct rpmirror *m)
{
	return flush_await_number(m, m->started_seq, CLOCK_NEVER);
}

static int flush_ranges(struct rpmirror *m, struct mirror_range *v, uint32_t n,
			enum flush_kind kind)
{
	uint64_t seq;
	int rc;

	pthread_mutex_unlock(&m->lock);
	rc = flush_begin_all(m, v, n, kind, &seq);
	pthread_mutex_lock(&m->lock);
	if (!rc)
		rc = flush_await_number(m, seq, CLOCK_NEVER);
	return rc ? rc : flush_verdict(m, seq);
}

int flush_whole(struct rpmirror *m, struct mirror_range *v, uint32_t n)
{
	return flush_ranges(m, v, n, FLUSH_OF_LIBRARY);
}

int flush_stored(struct rpmirror *m, struct mirror_range *v, uint32_t n)
{
	return flush_ranges(m, v, n, FLUSH_AWAITED);
}

static int flush_wait(struct rpmirror *m, uint64_t ticket, int timeout_ms, bool was_begun,
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
		if (was_begun && rc != RPMIRROR_E_AGAIN && m->tickets)
			m->tickets--;
	}
	pthread_mutex_unlock(&m->lock);
	if (res && has_result) /* without the lock, because *res may be in a direct mapping */
		*res = result;
	return rc;
}

int rpmirror_flush_wait(struct rpmirror *m, uint64_t ticket, int timeout_ms,
			struct rpmirror_result *res)
{
	return flush_wait(m, ticket, timeout_ms, true, res);
}

int rpmirror_flush(struct rpmirror *m, const struct rpmirror_range *ranges, unsigned n,
		   unsigned flags, struct rpmirror_result *res)
{
	struct rpmirror_result result;
	uint64_t ticket;
	int rc = flush_start(m, ranges, n, flags, FLUSH_AWAITED, &ticket);

	if (rc && rc != RPMIRROR_E_INVAL && res && set_is_usable(m)) {
		pthread_mutex_lock(&m->lock);
		flush_fill_result(m, 0, &result);
		pthread_mutex_unlock(&m->lock);
		*res = result;
	}
	return rc ? rc : flush_wait(m, ticket, -1, false, res);
}
