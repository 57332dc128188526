/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * growth.c -- the set grows: operators order a growth at random times, and daemons carry the growth
 * out by core/growth.h. Some disks are too small, and some files have other data past the set's
 * end.
 *
 * These runs use separate random numbers, so that runs in which no set grows do not change.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define ANSWERS_MS 1000 /* the last answer of another daemon is valid for this time */

/* An order to grow, in the daemon that got the order from the operator. */
struct sim_order {
	uint32_t uid;
	struct growth_order order;
	struct mirror_record rec; /* the record that the daemon read last */
	uint64_t revision;
	struct growth_answer answers[MIRROR_MEMBERS_MAX];
	uint64_t heard[MIRROR_MEMBERS_MAX];
};

static void *growth_new(const void *from, size_t size)
{
	void *p = malloc(size);

	if (!p)
		abort();
	return memcpy(p, from, size);
}

/* ---- a run ---- */

uint64_t growth_choose(struct world *w)
{
	struct prng *rng = &w->growth_rng;
	unsigned first = (unsigned)prng_between(rng, 1, USUAL_SIZE - 1), far = SIZES;

	w->grows = prng_below(rng, 1000) < 300 ||
		   (w->mode >= SIM_GROW_UNRESERVED && w->mode <= SIM_GROW_TAIL_TRUSTED);
	w->most_blocks =
		prng_below(rng, 1000) < 60 ? far : (unsigned)prng_between(rng, first + 1, 6);
	if (!w->grows)
		first = w->most_blocks = USUAL_SIZE;
	w->words = w->most_blocks * BLOCK_WORDS;
	return size_of_blocks(first);
}

static unsigned growth_blocks(uint64_t size)
{
	return words_below(size) / BLOCK_WORDS;
}

/* Make some disks too small, and give some files data past the copy's end. */
void growth_make_disk(struct world *w, struct host *h)
{
	unsigned blocks = growth_blocks(h->disk.len);

	h->capacity = size_of_blocks(SIZES);
	if (!w->grows)
		return;
	if (prng_below(&w->growth_rng, 1000) < 150)
		h->capacity = size_of_blocks((unsigned)prng_between(&w->growth_rng, blocks, SIZES));
	if (prng_below(&w->growth_rng, 1000) >= 150 || h->capacity < size_of_blocks(SIZES))
		return;
	for (unsigned i = words_below(h->disk.len); i < WORDS; i++)
		h->disk.cache[i] = h->disk.medium[i] = 0xbad0000 + i;
	h->disk.len = h->disk.len_medium = h->capacity;
}

/* ---- one copy ---- */

static bool growth_is_there(const struct host *h, uint32_t uid)
{
	return h->daemon_uid && h->daemon_uid == uid && !h->stopping;
}

/* Map the copy again, with longer files. An order in the daemon remains valid. */
static void growth_take(struct world *w, struct host *h, uint64_t size)
{
	struct growth growth = h->growth;
	struct sim_order *order = h->order;
	struct member_verdict v;

	h->order = NULL;
	daemon_end(w, h);
	daemon_start(w, h);
	h->order = order;
	if (!h->daemon_uid) {
		growth_forget(h);
		return;
	}
	h->growth = growth;
	if (order)
		order->uid = h->daemon_uid;
	member_grow(&h->member, size, &v);
	w->count.taken += v.answer == MEMBER_YES;
	sim_trace(w, "%u: has %llu bytes: %s", h->id, (unsigned long long)size,
		  v.answer == MEMBER_YES ? "done" : v.text);
}

struct growth_job {
	uint64_t keep, size;
};

/* Runs on a thread of the daemon: first extend the files, then make the extension durable. */
static void growth_run(struct world *w, struct event *e)
{
	struct host *h = &w->host[e->host];
	const struct growth_job *job = e->data;
	bool fits = job->size <= h->capacity;
	uint64_t keep = w->mode == SIM_GROW_NOT_ZERO ? UINT64_MAX : job->keep;

	if (!growth_is_there(h, e->uid))
		return;
	if (fits && !e->arg) {
		disk_extend(&h->disk, keep, job->size);
		sched_add(w, sim_between(w, 100, 100 * MS), growth_run, h->id, e->uid, 1,
			  growth_new(job, sizeof(*job)));
		return;
	}
	if (fits && w->mode != SIM_GROW_NOT_DURABLE)
		disk_settle(&h->disk, keep);
	growth_on_files(&h->growth, &h->member, job->size, fits ? 0 : ENOSPC, "the disk is full",
			host_ms(w, h));
	sim_trace(w, "%u: %s room for %llu bytes", h->id, fits ? "has" : "has no",
		  (unsigned long long)job->size);
	if (fits && w->mode == SIM_GROW_EARLY && !h->stopping &&
	    member_may_grow(&h->member, job->size))
		growth_take(w, h, job->size);
	host_settle(w, h);
}

static enum growth_room growth_reserve(struct world *w, struct host *h, uint64_t size)
{
	struct growth_files files = {h->disk.len, h->disk.meta_len};
	struct growth_job job = {growth_keep(&h->member), size};
	enum growth_room room =
		growth_make_room(&h->growth, &h->member, &files, size, host_ms(w, h));

	if (room != GROWTH_BEGIN)
		return room;
	sched_add(w, sim_between(w, 100, 100 * MS), growth_run, h->id, h->daemon_uid, 0,
		  growth_new(&job, sizeof(job)));
	return GROWTH_UNDER_WAY;
}

void growth_look(struct world *w, struct host *h, const struct mirror_record *rec)
{
	uint64_t size = rec->config.size;

	if (!w->grows || !growth_is_there(h, h->daemon_uid) || h->split)
		return;
	if (growth_is_due(&h->member, rec) && growth_reserve(w, h, size) == GROWTH_HAS_ROOM &&
	    growth_may_take(&h->growth, &h->member, size))
		growth_take(w, h, size);
}

bool growth_is_in_the_way(const struct world *w, const struct host *h,
			  const struct mirror_record *rec)
{
	return w->mode != SIM_GROW_IGNORED && growth_obstacle(&h->growth, &h->member, rec);
}

/* ---- an order ---- */

void growth_forget(struct host *h)
{
	free(h->order);
	h->order = NULL;
}

/* Each in-sync copy must have room for the size, even if its host loses power now. */
static void growth_check_room(struct world *w, uint64_t size)
{
	for (unsigned i = 0; i < w->hosts; i++) {
		const struct disk *d = &w->host[i].disk;

		if (w->reg.rec.view.insync & MIRROR_BIT(i) &&
		    (d->len_medium < size || d->meta_len_medium < meta_size_for(size)))
			oracle_fail(w, "the set has %llu bytes, for which %u of S has no room",
				    (unsigned long long)size, i);
	}
}

struct growth_swap {
	uint64_t revision, nonce, size;
};

static void growth_swap(struct world *w, struct event *e)
{
	const struct growth_swap *swap = e->data;
	struct mirror_config next = w->reg.rec.config;

	if (w->now < w->reg.down_until || w->now < w->register_cut_until[e->host] ||
	    swap->revision != w->reg.revision || swap->nonce != w->reg.rec.nonce)
		return;
	next.size = swap->size;
	if (!world_configure(w, &next))
		return;
	w->count.grows++;
	sim_trace(w, "register: the set has %llu bytes", (unsigned long long)next.size);
	growth_check_room(w, next.size);
}

struct growth_question {
	uint32_t host, uid; /* the daemon that sent the question */
	uint64_t size;
	uint64_t copy_id;      /* the copy that the answer describes */
	enum growth_room room; /* whether that copy has room */
};

static void growth_answered(struct world *w, struct event *e)
{
	const struct growth_question *q = e->data;
	struct sim_order *o = w->host[q->host].order;

	if (!o || o->uid != q->uid)
		return;
	o->answers[e->host] = (struct growth_answer){
		.answers = true, .copy_id = q->copy_id, .size = q->size, .room = q->room};
	o->heard[e->host] = w->now;
}

static void growth_asked(struct world *w, struct event *e)
{
	struct host *h = &w->host[e->host];
	struct growth_question *q = e->data, answer = *q;

	if (!growth_is_there(h, h->daemon_uid) || w->now < w->cut_until[q->host][e->host])
		return;
	answer.copy_id = h->member.meta->super.member_id;
	answer.room = growth_reserve(w, h, q->size);
	sched_add(w, sim_delay(w), growth_answered, e->host, 0, 0,
		  growth_new(&answer, sizeof(answer)));
}

static void growth_ask_all(struct world *w, struct host *h)
{
	struct sim_order *o = h->order;
	struct growth_question q = {.host = h->id, .uid = o->uid, .size = o->order.size};

	for (unsigned i = 0; i < w->hosts; i++) {
		if (!(o->rec.view.insync & MIRROR_BIT(i)))
			continue;
		if (i == h->id)
			o->answers[i] =
				(struct growth_answer){.answers = true,
						       .copy_id = h->member.meta->super.member_id,
						       .size = q.size,
						       .room = growth_reserve(w, h, q.size)};
		else
			sched_add(w, sim_delay(w), growth_asked, i, 0, 0,
				  growth_new(&q, sizeof(q)));
		if (i != h->id && w->now - o->heard[i] > ANSWERS_MS * MS)
			o->answers[i].answers = false;
	}
}

static void growth_step(struct world *w, struct event *e)
{
	struct host *h = &w->host[e->host];
	struct sim_order *o = h->order;
	enum growth_step step;
	uint8_t slot;

	if (!o || o->uid != h->daemon_uid || h->stopping)
		return;
	/* If the register can be read, sometimes use its record instead of the daemon's last
	 * read. */
	if (w->now >= w->reg.down_until && w->now >= w->register_cut_until[h->id] &&
	    sim_chance(w, 300)) {
		o->rec = w->reg.rec;
		o->revision = w->reg.revision;
	}
	growth_ask_all(w, h);
	step = growth_order_next(&o->order, &o->rec, o->answers, host_ms(w, h), &slot);
	if (w->mode == SIM_GROW_UNRESERVED)
		step = GROWTH_SWAP;
	if (step == GROWTH_WAITS) {
		sched_add(w, sim_between(w, 20 * MS, 150 * MS), growth_step, h->id, 0, 0, NULL);
		return;
	}
	if (step == GROWTH_SWAP) {
		struct growth_swap swap = {o->revision, o->rec.nonce, o->order.size};

		sched_add(w, sim_delay(w), growth_swap, h->id, 0, 0,
			  growth_new(&swap, sizeof(swap)));
	}
	w->count.refused += step != GROWTH_SWAP;
	growth_forget(h);
	host_settle(w, h);
}

bool growth_give_order(struct world *w, struct host *h, uint64_t size)
{
	struct sim_order *o;

	if (!growth_is_there(h, h->daemon_uid) || h->order || size <= w->reg.rec.config.size ||
	    w->now < w->reg.down_until || w->now < w->register_cut_until[h->id])
		return false;
	o = calloc(1, sizeof(*o));
	if (!o)
		abort();
	o->uid = h->daemon_uid;
	o->rec = w->reg.rec;
	o->revision = w->reg.revision;
	o->order = (struct growth_order){.size = size, .begun_ms = host_ms(w, h)};
	h->order = o;
	sim_trace(w, "%u: is to let the set grow to %llu bytes", h->id, (unsigned long long)size);
	sched_add(w, sim_between(w, 10, MS), growth_step, h->id, 0, 0, NULL);
	return true;
}

void growth_orders(struct world *w, struct event *e)
{
	unsigned now = growth_blocks(w->reg.rec.config.size);

	(void)e;
	if (w->healing)
		return;
	if (now < w->most_blocks)
		growth_give_order(w, &w->host[prng_below(&w->growth_rng, w->hosts)],
				  size_of_blocks((unsigned)prng_between(&w->growth_rng, now + 1,
									w->most_blocks)));
	sched_add(w, prng_between(&w->growth_rng, 20 * MS, 1500 * MS), growth_orders, 0, 0, 0,
		  NULL);
}

static void growth_map_again(struct world *w, struct event *e)
{
	struct lib *lib = lib_find(w, e->host, e->uid);

	if (!lib)
		return;
	primary_demote(&lib->p);
	lib_run(w, lib);
	host_settle(w, &w->host[e->host]);
}

/* Let the set grow, so that the restored register will lack this growth, and another process maps
 * the larger set. */
void growth_before_restore(struct world *w, struct host *h)
{
	unsigned blocks = growth_blocks(w->reg.rec.config.size);

	if (!w->grows || blocks >= USUAL_SIZE || !sim_chance(w, 700) ||
	    !growth_give_order(w, h, size_of_blocks(blocks + 1)))
		return;
	w->words = (blocks + 1) * BLOCK_WORDS;
	if (h->lib && sim_chance(w, 700))
		sched_add(w, sim_between(w, 50 * MS, 500 * MS), growth_map_again, h->id,
			  h->lib->uid, 0, NULL);
}

/* ---- peace ---- */

/*
 * Do what `rpmirror explain` advises: make room and map the set again, and grow the set again if
 * the restored register lacks the growth. An application whose flushes wait for a copy cannot unmap
 * the set. If this copy returns only after the growth, end the application.
 */
void growth_operate(struct world *w)
{
	uint64_t largest = 0;

	for (unsigned i = 0; i < w->hosts; i++) {
		struct host *h = &w->host[i];
		struct lib *lib = h->lib;

		h->capacity = size_of_blocks(SIZES);
		if (h->meta.super.size > largest)
			largest = h->meta.super.size;
		if (!lib || lib->ended || lib->size >= w->reg.rec.config.size)
			continue;
		if (lib->served && !lib->quiescing) {
			primary_demote(&lib->p);
			lib_run(w, lib);
		} else {
			lib_crash(w, h);
		}
	}
	for (unsigned i = 0; i < w->hosts && w->resolving; i++)
		if (growth_give_order(w, &w->host[i], largest))
			break;
}

bool growth_is_well(const struct world *w)
{
	uint64_t size = w->reg.rec.config.size;

	for (unsigned i = 0; i < w->hosts; i++)
		if (w->host[i].meta.super.size != size ||
		    (w->host[i].lib && w->host[i].lib->size != size))
			return false;
	return true;
}
