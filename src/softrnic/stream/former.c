/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/stream/former.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct former_target {
	struct list link;
	uint8_t instance[EXT_ID_LEN]; /* names the process of the target */
	uint8_t id[EXT_ID_LEN];       /* names this process; each target gets a different id */
	uint64_t last;                /* serial number of the newest connection */
	/* connections that have not ended, in ascending order of serial numbers */
	struct list living;
	struct former_gap tail; /* the gap after the last living connection */
};

_Static_assert(sizeof(struct former_target) <= FORMER_TARGET_BYTES,
	       "the heap that former.h states");

/* --- targets -------------------------------------------------------------------------------- */

void formers_init(struct formers *all)
{
	list_init(&all->targets);
	all->n = 0;
}

static void former_target_free(struct formers *all, struct former_target *t)
{
	list_del(&t->link);
	all->n--;
	free(t);
}

void formers_reset(struct formers *all)
{
	struct list *it, *tmp;

	list_for_each_safe (it, tmp, &all->targets)
		former_target_free(all, container_of(it, struct former_target, link));
}

static struct former_target *former_find(struct formers *all, const uint8_t *instance)
{
	struct list *it;

	list_for_each (it, &all->targets) {
		struct former_target *t = container_of(it, struct former_target, link);

		if (!memcmp(t->instance, instance, EXT_ID_LEN))
			return t;
	}
	return NULL;
}

/* Called when the table is full: drop the least recently used target that has no connection. */
static bool former_make_room(struct formers *all)
{
	struct list *it;

	if (all->n < FORMER_TARGETS_MAX)
		return false;
	list_for_each (it, &all->targets) {
		struct former_target *t = container_of(it, struct former_target, link);

		if (!list_empty(&t->living))
			continue;
		former_target_free(all, t);
		return true;
	}
	/* all targets stay, because each has a connection; so the number of connections limits the
	 * table */
	return false;
}

static struct former_target *former_target_new(struct formers *all, const uint8_t *instance,
					       const uint8_t *fresh)
{
	struct former_target *t = calloc(1, FORMER_TARGET_BYTES);

	if (!t)
		return NULL;
	memcpy(t->instance, instance, EXT_ID_LEN);
	memcpy(t->id, fresh, EXT_ID_LEN);
	list_init(&t->living);
	list_add_tail(&all->targets, &t->link);
	all->n++;
	return t;
}

int former_join(struct formers *all, struct former *f, const uint8_t instance[EXT_ID_LEN],
		const uint8_t fresh[EXT_ID_LEN], bool *dropped)
{
	struct former_target *t = former_find(all, instance);

	*dropped = !t && former_make_room(all);
	if (!t)
		t = former_target_new(all, instance, fresh);
	if (!t)
		return -ENOMEM;
	list_del(&t->link);
	list_add_tail(&all->targets, &t->link);
	*f = (struct former){.target = t, .serial = ++t->last};
	list_add_tail(&t->living, &f->link);
	return 0;
}

/* --- connections that were given up --------------------------------------------------------- */

static void former_widen(struct former_gap *gap, struct former_gap by)
{
	if (!by.first)
		return;
	if (!gap->first || by.first < gap->first)
		gap->first = by.first;
	if (by.last > gap->last)
		gap->last = by.last;
}

void former_give_up(struct former *f)
{
	f->given_up = true;
}

/* The gap before this connection and the gap after it become one gap. The new gap contains this
 * connection as well, unless the target certainly places no more of its bytes. */
void former_leave(struct formers *all, struct former *f, bool over)
{
	struct former_target *t = f->target;
	struct former_gap *after;

	if (!t)
		return;
	after = f->link.next == &t->living ? &t->tail
					   : &container_of(f->link.next, struct former, link)->gap;
	former_widen(after, f->gap);
	if (!over && !f->fenced)
		former_widen(after, (struct former_gap){f->serial, f->serial});
	list_del(&f->link);
	f->target = NULL;
	if (list_empty(&t->living) && !t->tail.first)
		former_target_free(all, t);
}

/* --- the ORIGIN ----------------------------------------------------------------------------- */

static void former_put(struct ext_origin *origin, struct former_gap *gap)
{
	if (gap->first && origin->n < EXT_ORIGIN_RANGES)
		origin->ranges[origin->n++] =
			(struct ext_range_of_serials){.first = gap->first, .last = gap->last};
	*gap = (struct former_gap){0, 0};
}

void former_name(const struct former *f, struct ext_origin *origin)
{
	const struct former_target *t = f->target;
	struct former_gap gap = {0, 0};
	const struct list *it;

	memcpy(origin->id, t->id, EXT_ID_LEN);
	origin->serial = f->serial;
	origin->n = 0;
	list_for_each (it, &t->living) {
		const struct former *x = container_of(it, const struct former, link);

		former_widen(&gap, x->gap);
		if (!x->given_up)
			former_put(origin, &gap);
		else if (!x->fenced)
			former_widen(&gap, (struct former_gap){x->serial, x->serial});
	}
	former_widen(&gap, t->tail);
	former_put(origin, &gap);
}

/*
 * Forget a gap that the target has answered. If the gap has grown since it was sent, keep it, so
 * that the next ORIGIN names it as a whole.
 */
static void former_forget(struct former_gap *gap, const struct ext_origin *origin)
{
	for (unsigned i = 0; gap->first && i < origin->n; i++)
		if (gap->first >= origin->ranges[i].first && gap->last <= origin->ranges[i].last)
			*gap = (struct former_gap){0, 0};
}

void former_fenced(struct former *f, const struct ext_origin *origin)
{
	struct former_target *t = f->target;
	struct list *it;

	list_for_each (it, &t->living) {
		struct former *x = container_of(it, struct former, link);

		former_forget(&x->gap, origin);
		if (ext_origin_names(origin, x->serial))
			x->fenced = true;
	}
	former_forget(&t->tail, origin);
}
