/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/stream/fence.h"

#include <stdlib.h>
#include <string.h>

struct fence_question {
	struct list link;
	uint64_t at;
	unsigned left; /* number of named connections that are still open */
	/* the connection that waits for an answer; NULL: it was answered, or is closed */
	struct fence_member *asker;
	struct ext_origin origin;
};

void fences_init(struct fences *all, void (*cut)(struct fence_member *),
		 void (*wake)(struct fence_member *))
{
	*all = (struct fences){.cut = cut, .wake = wake};
	list_init(&all->unknown);
	list_init(&all->members);
	list_init(&all->questions);
}

static void fence_question_free(struct fences *all, struct fence_question *q)
{
	list_del(&q->link);
	all->n_questions--;
	free(q);
}

void fences_reset(struct fences *all)
{
	struct list *it, *tmp;

	list_for_each_safe (it, tmp, &all->questions)
		fence_question_free(all, container_of(it, struct fence_question, link));
	list_init(&all->unknown);
	list_init(&all->members);
}

void fence_member_init(struct fence_member *m)
{
	*m = (struct fence_member){.known_at = 0};
	list_init(&m->link);
}

void fence_arrive(struct fences *all, struct fence_member *m)
{
	m->arrived = ++all->clock;
	list_add_tail(&all->unknown, &m->link);
}

static void fence_no_longer_unknown(struct fences *all, struct fence_member *m)
{
	list_del(&m->link);
	list_add_tail(&all->members, &m->link);
}

/* --- questions ------------------------------------------------------------------------------ */

/*
 * Does the ORIGIN name this connection? An ORIGIN names connections of its own process by serial
 * number, and connections of other processes by their owner.
 */
static bool fence_names(const struct ext_origin *o, const struct fence_member *m)
{
	if (!memcmp(o->id, m->id, EXT_ID_LEN))
		return ext_origin_names(o, m->serial);
	return o->has_owner && m->has_owner && !memcmp(o->owner, m->owner, EXT_ID_LEN);
}

/* Drop each question whose asker is closed or answered, if all connections that arrived before the
 * question have named themselves. */
static void fence_prune(struct fences *all)
{
	const struct list *first = list_first(&all->unknown); /* the earliest arrival */
	uint64_t since =
		first ? container_of(first, const struct fence_member, link)->arrived : UINT64_MAX;
	struct list *it, *tmp;

	list_for_each_safe (it, tmp, &all->questions) {
		struct fence_question *q = container_of(it, struct fence_question, link);

		if (!q->asker && since >= q->at)
			fence_question_free(all, q);
	}
}

static bool fence_was_named(const struct fences *all, const struct fence_member *m)
{
	const struct list *it;

	list_for_each (it, &all->questions) {
		const struct fence_question *q =
			container_of(it, const struct fence_question, link);

		if (q->at > m->arrived && fence_names(&q->origin, m))
			return true;
	}
	return false;
}

static void fence_cut_named(struct fences *all, struct fence_question *q)
{
	struct list *it, *tmp;

	list_for_each_safe (it, tmp, &all->members) {
		struct fence_member *m = container_of(it, struct fence_member, link);

		if (m == q->asker || !m->known_at || !fence_names(&q->origin, m))
			continue;
		q->left++;
		all->cut(m);
	}
}

/* When the table of questions is full, cut the oldest connections that have not named themselves.
 * They had the most time to do so. A question whose asker is closed or answered stays in the table
 * only while an older connection has not named itself, so each cut can free such questions. */
static void fence_make_room(struct fences *all)
{
	struct list *it;

	while (all->n_questions >= FENCE_QUESTIONS_MAX && (it = list_first(&all->unknown))) {
		struct fence_member *m = container_of(it, struct fence_member, link);

		m->is_cut = true;
		fence_no_longer_unknown(all, m);
		all->cut(m);
		fence_prune(all);
	}
}

static struct fence_question *fence_question_new(struct fences *all, struct fence_member *m)
{
	if (m->n_asked >= FENCE_ASKS_MAX)
		return NULL;
	m->n_asked++;
	fence_make_room(all);
	return all->n_questions < FENCE_QUESTIONS_MAX ? malloc(sizeof(struct fence_question))
						      : NULL;
}

static enum stream_fence fence_ask(struct fences *all, struct fence_member *m,
				   const struct ext_origin *origin)
{
	struct fence_question *q = fence_question_new(all, m);
	bool waits;

	if (!q)
		return STREAM_FENCE_BUSY;
	*q = (struct fence_question){.at = ++all->clock, .asker = m, .origin = *origin};
	list_add_tail(&all->questions, &q->link);
	all->n_questions++;
	fence_cut_named(all, q);
	waits = q->left > 0;
	if (!waits)
		q->asker = NULL;
	fence_prune(all);
	return waits ? STREAM_FENCE_WAIT : STREAM_FENCE_DONE;
}

/* --- connections ---------------------------------------------------------------------------- */

enum stream_fence fence_identify(struct fences *all, struct fence_member *m,
				 const struct ext_origin *origin)
{
	if (list_empty(&m->link) || m->is_cut) /* the connection is closed, or ends soon */
		return STREAM_FENCE_CUT;
	if (!m->known_at) {
		memcpy(m->id, origin->id, EXT_ID_LEN);
		m->serial = origin->serial;
		m->has_owner = origin->has_owner;
		memcpy(m->owner, origin->owner, EXT_ID_LEN);
		if (fence_was_named(all, m))
			return STREAM_FENCE_CUT;
		fence_no_longer_unknown(all, m);
		m->known_at = ++all->clock;
		fence_prune(all);
	}
	return origin->asks ? fence_ask(all, m, origin) : STREAM_FENCE_DONE;
}

static void fence_one_less(struct fences *all, const struct fence_member *m)
{
	struct list *it;

	list_for_each (it, &all->questions) {
		struct fence_question *q = container_of(it, struct fence_question, link);

		if (!q->asker || q->asker == m || m->known_at > q->at ||
		    !fence_names(&q->origin, m) || --q->left > 0)
			continue;
		all->wake(q->asker);
		q->asker = NULL;
	}
}

void fence_leave(struct fences *all, struct fence_member *m)
{
	struct list *it;

	if (list_empty(&m->link))
		return;
	list_del(&m->link);
	if (m->known_at)
		fence_one_less(all, m);
	list_for_each (it, &all->questions) {
		struct fence_question *q = container_of(it, struct fence_question, link);

		if (q->asker == m)
			q->asker = NULL;
	}
	fence_prune(all);
}

void fence_pass(struct fences *all, struct fence_member *m)
{
	if (!m->known_at)
		fence_leave(all, m);
}
