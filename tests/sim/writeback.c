/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * writeback.c -- write-backs from the cache to the medium. The medium takes pieces (sectors of a
 * file, cache lines of DAX) in any order, and each piece at any moment of the write-back. So after
 * a power cut the medium can have any subset of the pieces.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reconnect.h"
#include "windows.h"

#define CUTS_IN_COPY 6

/* Compare the medium, which is all that survives a power cut, with the results that the peer has
 * received so far. */
void node_check_power(struct node *n)
{
	const struct scenario *sc = &n->sim->sc;
	const char *bad = NULL;

	if (n->sim->world->reconnect) {
		reconnect_check(n->sim->world);
		return;
	}
	if (n->sim->world->windows) {
		if (n->index == 1)
			win_check_medium(n);
		return;
	}
	if (!scenario_is_trusted(sc) || sc->fault == FAULT_UNMAP)
		return;
	n->sim->world->cuts++;
	bad = model_on_observed(&n->peer->model, n->mem);
	if (!bad)
		bad = model_check_medium(&n->peer->model, n->mem);
	if (bad)
		sim_violate(n->sim, "node %d, without power: %s", n->index, bad);
}

static void writeback_check_boundary(struct node *n)
{
	if (n->sim->world->cut_often || prng_chance(&n->sim->world->rng, 1))
		node_check_power(n);
}

/* --- pieces ------------------------------------------------------------------------------- */

static uint64_t writeback_piece_len(const struct node *n)
{
	return n->sim->sc.dax[n->index] ? 64 : 512;
}

/* A connection can write to the memory of another connection of its host, through a window that
 * both share. */
static struct memory *writeback_memory(const struct node *n)
{
	const struct world *w = n->sim->world;
	const uint8_t *at = n->job.wb.addr;

	for (unsigned i = 0; w->windows && i < w->conns; i++) {
		struct memory *m = w->conn[i].node[n->index].mem;

		if (at >= m->cache && at < m->cache + m->size)
			return m;
	}
	return n->mem;
}

static uint64_t writeback_off(const struct node *n)
{
	return (uint64_t)((uint8_t *)n->job.wb.addr - writeback_memory(n)->cache);
}

static bool writeback_is_first_half(const struct node *n, uint64_t piece)
{
	struct prng r = {.state = n->job.salt + piece};

	return prng_next(&r) & 1;
}

/*
 * Copy the pieces of one half of the write-back, and check the medium after each of the first ones.
 */
static void writeback_copy_half(struct node *n, bool first)
{
	uint64_t off = writeback_off(n), end = off + n->job.wb.len, unit = writeback_piece_len(n);
	const uint8_t *from =
		n->job.snapshot ? n->job.bytes : memory_pages(writeback_memory(n), off);
	uint64_t looked = 0;

	for (uint64_t piece = off / unit; piece * unit < end; piece++) {
		uint64_t lo = piece * unit > off ? piece * unit : off;
		uint64_t hi = (piece + 1) * unit < end ? (piece + 1) * unit : end;

		if (writeback_is_first_half(n, piece) != first)
			continue;
		memcpy(writeback_memory(n)->medium + lo, from + (lo - off), hi - lo);
		if (looked++ < CUTS_IN_COPY)
			writeback_check_boundary(n);
	}
}

static bool writeback_is_sane(struct node *n)
{
	uint64_t off = writeback_off(n);
	const struct area *a = memory_area_at(writeback_memory(n), off);

	if (a && n->job.wb.len <= a->off + a->len - off)
		return true;
	sim_violate(n->sim, "node %d: write-back of %llu bytes at offset %llu: outside", n->index,
		    (unsigned long long)n->job.wb.len, (unsigned long long)off);
	return false;
}

/* The region must stay registered until its bytes are written back. */
static void writeback_check_held(struct node *n)
{
	const struct area *a = memory_area_at(writeback_memory(n), writeback_off(n));

	if (a && a->gone && !(a->lasting && n->job.wb.kind == QP_JOB_WRITE_BACK))
		sim_violate(n->sim, "node %d: a write-back of a region that is gone", n->index);
}

static bool writeback_is_volatile(struct node *n)
{
	const struct area *a = memory_area_at(writeback_memory(n), writeback_off(n));

	return a && a->is_volatile;
}

/* --- the job ------------------------------------------------------------------------------ */

static bool writeback_is_query(const struct node *n)
{
	return n->job.wb.kind == QP_JOB_CLASS;
}

/* Compute the digest of the medium or, if there is none, of the memory. */
static void writeback_answer(struct node *n)
{
	struct vext_digest *d = n->job.wb.answer;
	const struct area *a = memory_area_at(writeback_memory(n), writeback_off(n));
	const uint8_t *from =
		a->is_volatile ? writeback_memory(n)->cache : writeback_memory(n)->medium;

	if (n->job.wb.kind == QP_JOB_WRITE_BACK)
		return;
	d->durability = memory_durability(writeback_memory(n),
					  (enum area_kind)(a - writeback_memory(n)->area));
	if (writeback_is_query(n))
		return;
	d->alg = n->job.wb.alg;
	d->len = (uint32_t)n->job.wb.len;
	d->source = a->is_volatile ? VEXT_DIGEST_FROM_MEMORY : VEXT_DIGEST_FROM_MEDIUM;
	memory_digest(writeback_memory(n), writeback_off(n), from + writeback_off(n), n->job.wb.len,
		      d);
}

static void writeback_keep_bytes(struct node *n)
{
	struct node_writeback *job = &n->job;

	if (job->wb.len > job->room) {
		job->room = job->wb.len;
		job->bytes = realloc(job->bytes, job->room);
		if (!job->bytes)
			abort();
	}
	memcpy(job->bytes, memory_pages(writeback_memory(n), writeback_off(n)), job->wb.len);
}

/* Model a pool that is busy for some time before it begins the job. */
static void writeback_delay(struct node *n)
{
	struct sim *sim = n->sim;

	if (!sim->sc.pool_busy_ns)
		return;
	n->job.busy_until = sim->world->now + prng_below(&sim->world->rng, sim->sc.pool_busy_ns);
	sim_at(sim, n->job.busy_until, EV_PUMP, n->index, 0);
}

/* The pool possibly still computes a digest although no end waits for it any more. */
void node_stop_job(void *owner)
{
}

static void writeback_begin(struct node *n, uint64_t delay)
{
	struct node_writeback *job = &n->job;
	struct sim *sim = n->sim;
	uint64_t now = sim->world->now;

	n->host->writing++;
	n->host->ends_at = now + delay;
	/* With connections in a row, the kernel writes back the present content, never an older
	 * content. */
	job->snapshot = job->late || (!sim->world->reconnect && prng_chance(&sim->world->rng, 50));
	job->salt = prng_next(&sim->world->rng);
	writeback_keep_bytes(n);
	writeback_check_boundary(n);
	sim_at(sim, now + (job->late ? 1 + delay : delay / 2), EV_COPY, n->index, 0);
	sim_at(sim, now + (job->late ? 0 : delay), EV_WRITEBACK, n->index, 0);
}

/* Broken on purpose: act as if the running write-back included bytes that were placed after it
 * began. */
static void writeback_join(struct node *n)
{
	n->job.joined = true;
	n->host->writing++;
	sim_at(n->sim, n->host->ends_at, EV_WRITEBACK, n->index, 0);
}

static uint64_t writeback_duration(struct sim *sim)
{
	return prng_below(&sim->world->rng, sim->sc.writeback_ns + 1);
}

static void writeback_submit(struct node *n)
{
	enum sim_mode mode = n->sim->sc.mode;

	n->job.joined = false;
	if (n->host->writing && mode == SIM_JOINS && !writeback_is_query(n))
		writeback_join(n);
	else if (n->host->writing && n->host->shares)
		list_add_tail(&n->host->waiting, &n->job.waits);
	else
		writeback_begin(n, writeback_duration(n->sim));
}

/*
 * A job of the running write-back has ended. After the last one, all waiting jobs begin together.
 */
static void writeback_leave(struct node *n)
{
	struct host *h = n->host;
	uint64_t delay = writeback_duration(n->sim);
	struct list *it;

	if (--h->writing)
		return;
	while ((it = list_pop(&h->waiting))) {
		struct node *next = container_of(it, struct node, job.waits);

		next->shared += h->writing > 0;
		writeback_begin(next, delay);
	}
}

bool node_start_job(void *owner, struct stream_update *u)
{
	struct node *n = owner;
	struct sim *sim = n->sim;
	struct node_writeback *job = &n->job;

	if (job->running || job->late)
		return false;
	if (job->busy_until > sim->world->now)
		return false;
	if (!stream_job_begin(n->stream, &job->wb, u))
		return false;
	job->running = true;
	job->late = sim->sc.mode == SIM_EARLY_ACK && !writeback_is_query(n);
	if (!writeback_is_sane(n))
		return false;
	writeback_submit(n);
	node_pump_soon(n);
	return true;
}

static bool writeback_is_made(const struct node *n)
{
	return n->sim->sc.mode != SIM_NO_WRITEBACK && !n->killed;
}

static void writeback_take_pieces(struct node *n)
{
	if (!writeback_is_made(n) || writeback_is_volatile(n) || writeback_is_query(n))
		return;
	writeback_check_held(n);
	writeback_copy_half(n, true);
	if (n->job.late)
		writeback_copy_half(n, false);
}

void node_on_copy(struct node *n)
{
	writeback_take_pieces(n);
	if (!n->job.late)
		return;
	n->job.late = false;
	node_pump(n);
}

static int writeback_status(struct node *n)
{
	struct sim *sim = n->sim;
	bool fails = sim->sc.fault == FAULT_WRITEBACK && !writeback_is_query(n) &&
		     sim->sc.fault_node == n->index && n->job.count++ >= sim->sc.fault_pos;

	if (fails)
		sim->fault_hit = true;
	if (fails)
		return -EIO;
	if (!writeback_is_volatile(n) || !n->job.wb.strict || writeback_is_query(n))
		return 0;
	sim->fault_hit = true;
	return -ENOTSUP;
}

void node_on_writeback(struct node *n)
{
	struct stream_update u;
	int status;

	writeback_leave(n);
	if (n->killed)
		return;
	writeback_check_held(n);
	status = writeback_status(n);
	if (status == 0 && writeback_is_made(n) && !n->job.late && !n->job.joined &&
	    !writeback_is_volatile(n) && !writeback_is_query(n))
		writeback_copy_half(n, false);
	if (status == 0)
		writeback_answer(n);
	writeback_check_boundary(n);
	n->job.running = false;
	writeback_delay(n);
	stream_job_end(n->stream, status, n->sim->world->now, &u);
	writeback_check_boundary(n);
	node_perform(n, &u);
	writeback_check_boundary(n);
}

void node_evict(struct node *n)
{
	struct prng *rng = &n->sim->world->rng;
	const struct area *a = &n->mem->area[prng_below(rng, AREA_WORDS + 1)];
	uint64_t unit = writeback_piece_len(n), at, lo, hi;

	if (a->gone || a->is_volatile)
		return;
	at = a->off + prng_below(rng, a->len);
	lo = at / unit * unit > a->off ? at / unit * unit : a->off;
	hi = (at / unit + 1) * unit < a->off + a->len ? (at / unit + 1) * unit : a->off + a->len;
	memcpy(n->mem->medium + lo, n->mem->cache + lo, hi - lo);
	n->evictions++;
	writeback_check_boundary(n);
}
