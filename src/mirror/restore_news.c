/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Passes reports about restored and lost pages from the restore thread to the set's errors and
 * events: a ring with one writer and, under the set's lock, one reader. Neighbouring pages are
 * reported together.
 */
#include <sched.h>
#include <stdio.h>

#include "mirror/errmsg.h"
#include "mirror/restore_impl.h"

/* ---- the restore thread ---- */

static bool restore_is_next(const struct restore_news *held, const struct restore_news *news)
{
	return held->len && held->verdict == news->verdict && held->slot == news->slot &&
	       (held->offset + held->len == news->offset ||
		news->offset + news->len == held->offset);
}

static void restore_widen(struct restore_news *held, const struct restore_news *news)
{
	uint64_t end = held->offset + held->len, other = news->offset + news->len;

	held->offset = held->offset < news->offset ? held->offset : news->offset;
	held->len = (end > other ? end : other) - held->offset;
	if (held->verdict == RESTORE_WHOLE || news->verdict == RESTORE_FAILED)
		held->verdict = news->verdict;
}

/* Put the held report into the ring. Returns false if the ring is full; its reader wakes this
 * thread after taking some reports. */
static bool restore_push(struct restore *r)
{
	unsigned in = atomic_load(&r->news_in);

	if (!r->held.len)
		return true;
	atomic_store(&r->is_loss, r->held.verdict == RESTORE_LOST);
	atomic_store(&r->is_full, in - atomic_load(&r->news_out) == RESTORE_NEWS);
	if (atomic_load(&r->is_full))
		return false;
	r->news[in % RESTORE_NEWS] = r->held;
	atomic_store(&r->news_in, in + 1);
	r->held.len = 0;
	return true;
}

void restore_send_held(struct restore *r)
{
	if (r->held.len) {
		restore_push(r);
		set_wake(r->m);
	}
}

/* Report a page. A loss must be in the ring before the thread that lost the bytes continues. */
void restore_report(struct restore *r, const struct restore_news *news)
{
	if (restore_is_next(&r->held, news) || !restore_push(r))
		restore_widen(&r->held, news);
	else
		r->held = *news;
	if (news->verdict != RESTORE_WHOLE)
		restore_send_held(r);
}

/* ---- under the set's lock ---- */

static void restore_add_error(struct rpmirror *m, const struct restore_news *news)
{
	struct mirror_range range = {news->offset, news->len};
	struct set_loss loss = {.repaired = news->verdict != RESTORE_FAILED,
				.dirty = news->verdict != RESTORE_WHOLE,
				.stops = news->verdict == RESTORE_LOST};
	char text[200], from[sizeof(struct set_name) + 16] = "its file";

	if (news->slot != MIRROR_NO_SLOT && news->slot != m->self)
		snprintf(from, sizeof(from), "%s", set_member_name(m, news->slot).text);
	if (news->verdict == RESTORE_FAILED)
		snprintf(text, sizeof(text),
			 "%llu bytes at %llu cannot be read, and no other member has them",
			 (unsigned long long)news->len, (unsigned long long)news->offset);
	else
		snprintf(text, sizeof(text), "%llu bytes at %llu could not be read: from %.80s%s",
			 (unsigned long long)news->len, (unsigned long long)news->offset, from,
			 loss.dirty ? "; stores to them that were not flushed are lost" : "");
	set_add_error(m, range, loss, text);
}

void restore_collect(struct rpmirror *m)
{
	struct restore *r = m->restore;
	int failed = atomic_exchange(&r->failed, 0);
	unsigned out = atomic_load(&r->news_out);

	for (; out != atomic_load(&r->news_in); out++) {
		restore_add_error(m, &r->news[out % RESTORE_NEWS]);
		atomic_store(&r->news_out, out + 1);
	}
	if (atomic_load(&r->is_full))
		restore_wake(r);
	/* the failure may belong to a flush that is not certainly durable yet: the kernel reports
	 * it to only one write-back */
	if (failed)
		set_local_failed(m, m->flush.local + 1, -failed);
}

void restore_await_write(struct rpmirror *m)
{
	while (atomic_load(&m->restore->is_writing)) {
		pthread_mutex_unlock(&m->lock);
		sched_yield();
		set_lock_in_turn(m);
	}
	if (atomic_load(&m->restore->failed))
		restore_collect(m);
}

int restore_check(struct rpmirror *m)
{
	restore_collect(m);
	if (!m->errors_stop &&
	    !(atomic_load(&m->restore->is_full) && atomic_load(&m->restore->is_loss)))
		return 0;
	return errmsg_fail(
		RPMIRROR_E_MEDIUM,
		"set %s: stores that were not flushed are lost in a part of the mapping: "
		"rpmirror_get_error() returns the range, and then flushes go on",
		m->set);
}
