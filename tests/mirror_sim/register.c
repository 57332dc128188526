/* SPDX-License-Identifier: BSD-3-Clause */
/* register.c -- the set's register: answers arrive late, twice or never, swaps take effect late,
 * and the register is sometimes unavailable. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define SWAP_LIMIT (100 * MS) /* after this time the result of an unanswered swap is unknown */

struct swap {
	struct mirror_record expected, next;
	uint64_t revision;
	bool promotion, alive_set;
	/* an operator waits for the promotion, or no order was needed (orders_want()) */
	bool is_wanted;
	uint64_t alive_revision, alive_counter;
	/* the swap took effect and was answered; otherwise another event reports its result as
	 * unknown */
	bool is_answered;
	unsigned landings;
};

struct answer {
	enum primary_swap result;
	struct mirror_record now;
	uint64_t revision;
	uint64_t nonce; /* nonce of the record in the request */
};

void register_changed(struct world *w)
{
	w->records[++w->reg.version % RECORDS] = w->reg.rec;
}

const struct mirror_record *register_record(const struct world *w, uint64_t version)
{
	return version + RECORDS > w->reg.version ? &w->records[version % RECORDS] : NULL;
}

struct register_seen register_look(const struct world *w)
{
	const struct sim_register *r = &w->reg;

	return (struct register_seen){.at = w->now,
				      .version = r->version,
				      .revision = r->revision,
				      .alive_set = r->alive_set,
				      .alive_epoch = r->alive_epoch,
				      .alive_counter = r->alive_counter,
				      .alive_revision = r->alive_revision};
}

bool register_is_away(const struct world *w, uint32_t host)
{
	return w->now < w->reg.down_until || w->now < w->register_cut_until[host] ||
	       w->now < w->host[host].operator.cut_until;
}

static void *sim_new(size_t size)
{
	void *p = calloc(1, size);

	if (!p)
		abort();
	return p;
}

static void register_answered(struct world *w, struct event *e)
{
	struct lib *lib = lib_find(w, e->host, e->uid);
	struct answer *a = e->data;

	if (!lib || !lib->p.swapping || lib->p.offer.nonce != a->nonce)
		return;
	sim_trace(w, "%u: swap answered %d, register %llu.%llu", e->host, a->result,
		  (unsigned long long)a->now.view.epoch.number,
		  (unsigned long long)a->now.view.seq);
	primary_tick(&lib->p, host_ms(w, &w->host[e->host]));
	primary_on_swap(&lib->p, a->result, &a->now, a->revision);
	if (w->mode == SIM_UNKNOWN_IGNORED)
		lib->p.unknown = 0;
	lib_run(w, lib);
	host_settle(w, &w->host[e->host]);
}

static void register_answer(struct world *w, uint64_t delay, uint32_t host, uint32_t uid,
			    enum primary_swap result, uint64_t nonce)
{
	struct answer *a = sim_new(sizeof(*a));

	a->result = result;
	a->now = w->reg.rec;
	a->revision = w->reg.revision;
	a->nonce = nonce;
	sched_add(w, delay, register_answered, host, uid, 0, a);
}

static bool register_compares(const struct world *w, const struct swap *s)
{
	const struct sim_register *r = &w->reg;

	if (s->revision != r->revision ||
	    (s->expected.nonce != r->rec.nonce && w->mode != SIM_RESTORED_TRUSTED))
		return false;
	return !s->promotion || w->mode == SIM_NO_LEASE ||
	       (s->alive_set == r->alive_set &&
		(!r->alive_set ||
		 (s->alive_revision == r->alive_revision && s->alive_counter == r->alive_counter)));
}

static void register_carry_out(struct world *w, const struct swap *s)
{
	struct sim_register *r = &w->reg;
	mirror_mask before = r->rec.view.insync, after = s->next.view.insync;
	bool serves = s->next.view.phase == MIRROR_PHASE_SERVING &&
		      r->rec.view.phase != MIRROR_PHASE_SERVING;

	if (s->promotion && !s->is_wanted)
		oracle_fail(w, "%u is promoted%s, and the order had ended when it asked for it",
			    s->next.view.primary, s->next.view.forced ? " by force" : "");
	w->count.shrinks += (before & ~after) != 0;
	w->count.expands += (after & ~before) != 0;
	w->count.fills += (after & ~before) && s->next.view.phase == MIRROR_PHASE_RECOVERING;
	r->rec = s->next;
	w->gave_up |= r->rec.view.forced;
	r->revision++;
	register_changed(w);
	if (s->promotion) {
		r->alive_set = true;
		r->alive_epoch = s->next.view.epoch;
		r->alive_counter = 0;
		r->alive_revision = r->revision;
	}
	sim_trace(w, "register: epoch %llu.%llu phase %d primary %u S %#x",
		  (unsigned long long)r->rec.view.epoch.number, (unsigned long long)r->rec.view.seq,
		  r->rec.view.phase, r->rec.view.primary, r->rec.view.insync);
	if (serves)
		oracle_on_serving(w, &r->rec);
	if (after & ~before)
		plan_on_expand(w, r->rec.view.primary);
	if (after & ~before)
		world_ambush_process(w, r->rec.view.primary, 200, 5 * MS);
}

static void register_land(struct world *w, struct event *e)
{
	struct swap *s = e->data;
	bool done = register_compares(w, s);

	if (register_is_away(w, e->host)) {
		if (s->is_answered)
			register_answer(w, SWAP_LIMIT, e->host, e->uid, PRIMARY_SWAP_UNKNOWN,
					s->next.nonce);
		return;
	}
	if (done)
		register_carry_out(w, s);
	if (s->landings > 1) { /* the client repeated the request, and this is the second answer */
		done = register_compares(w, s);
		w->count.late++;
	}
	if (s->is_answered)
		register_answer(w, sim_delay(w), e->host, e->uid,
				done ? PRIMARY_SWAP_DONE : PRIMARY_SWAP_CHANGED, s->next.nonce);
}

/* Breaks a rule: the client reads the register again, finds it unchanged, and concludes that the
 * swap had no effect. */
static void register_read_back(struct world *w, struct event *e)
{
	struct lib *lib = lib_find(w, e->host, e->uid);

	if (!lib)
		return;
	register_answer(w, 1, e->host, e->uid,
			w->reg.rec.nonce == lib->p.offer.nonce ? PRIMARY_SWAP_DONE
							       : PRIMARY_SWAP_FAILED,
			e->arg);
}

static void register_unknown(struct world *w, struct lib *lib, uint64_t nonce)
{
	w->count.late++;
	if (w->mode == SIM_LATE_SWAPS_NAIVE)
		sched_add(w, SWAP_LIMIT, register_read_back, lib->host, lib->uid, nonce, NULL);
	else
		register_answer(w, SWAP_LIMIT, lib->host, lib->uid, PRIMARY_SWAP_UNKNOWN, nonce);
}

static bool register_is_cheated(struct world *w, struct lib *lib, const struct primary_action *a)
{
	const struct mirror_view *was = &a->expected->view, *next = &a->record->view;
	bool serves = was->phase == MIRROR_PHASE_RECOVERING && next->phase == MIRROR_PHASE_SERVING;
	bool shrinks = was->insync & ~next->insync;

	if (!(serves && w->mode == SIM_SERVE_WITHOUT_SWAP) &&
	    !(shrinks && w->mode == SIM_SHRINK_WITHOUT_SWAP))
		return false;
	struct answer *answer = sim_new(sizeof(*answer));

	if (serves)
		oracle_on_serving(w, a->record);
	answer->result = PRIMARY_SWAP_DONE;
	answer->now = *a->record;
	answer->revision = a->revision;
	answer->nonce = a->record->nonce;
	sched_add(w, 1, register_answered, lib->host, lib->uid, 0, answer);
	return true;
}

void register_swap(struct world *w, struct lib *lib, const struct primary_action *a)
{
	uint64_t nonce = a->record->nonce, delay = sim_delay(w);
	bool trouble = !w->healing;
	mirror_mask joins = a->record->view.insync & (mirror_mask)~a->expected->view.insync;

	if (register_is_cheated(w, lib, a))
		return;
	if (w->host[lib->host].daemon_uid == 0 || (trouble && sim_chance(w, 20))) {
		register_answer(w, delay, lib->host, lib->uid, PRIMARY_SWAP_FAILED, nonce);
		return;
	}
	if (a->promotion && orders_lack(w, &w->host[lib->host], a)) {
		register_answer(w, 1, lib->host, lib->uid, PRIMARY_SWAP_CHANGED, nonce);
		return;
	}
	struct swap *s = sim_new(sizeof(*s));

	s->expected = *a->expected;
	s->next = *a->record;
	if (w->mode == SIM_FILL_KEEPS_LOST && joins &&
	    s->next.view.phase == MIRROR_PHASE_RECOVERING)
		s->next.view.insync |= s->expected.view.insync;
	s->revision = a->revision;
	s->promotion = a->promotion;
	s->is_wanted = orders_want(w, &w->host[lib->host], a);
	s->alive_set = lib->seen.alive_set;
	s->alive_revision = lib->seen.alive_revision;
	s->alive_counter = lib->seen.alive_counter;
	s->landings = trouble && sim_chance(w, 30) ? 2 : 1;
	s->is_answered = !(trouble && sim_chance(w, joins ? 250 : 80));
	if (!s->is_answered && sim_chance(w, 700))
		delay += sim_between(w, 0, sim_chance(w, 500) ? 200 * MS : 2000 * MS);
	if (register_is_away(w, lib->host))
		s->is_answered = false;
	if (!s->is_answered)
		world_ambush_member(w, lib->host, joins, 500);
	if (!s->is_answered)
		register_unknown(w, lib, nonce);
	if (s->is_answered || sim_chance(w, 800))
		sched_add(w, delay, register_land, lib->host, lib->uid, 0, s);
	else
		free(s);
}

static void register_read_answer(struct world *w, struct event *e)
{
	struct lib *lib = lib_find(w, e->host, e->uid);
	struct answer *a = e->data;

	if (!lib)
		return;
	primary_tick(&lib->p, host_ms(w, &w->host[e->host]));
	primary_on_record(&lib->p, &a->now, a->revision);
	lib_run(w, lib);
	host_settle(w, &w->host[e->host]);
}

static void register_read_now(struct world *w, struct event *e)
{
	struct answer *a;

	if (register_is_away(w, e->host))
		return;
	a = sim_new(sizeof(*a));
	a->now = w->reg.rec;
	a->revision = w->reg.revision;
	sched_add(w, sim_delay(w), register_read_answer, e->host, e->uid, 0, a);
}

void register_read(struct world *w, struct lib *lib)
{
	if (w->host[lib->host].daemon_uid && (w->healing || !sim_chance(w, 100)))
		sched_add(w, sim_delay(w), register_read_now, lib->host, lib->uid, 0, NULL);
}

/* ---- the alive key; arg: the host's time at which the renewal was sent ---- */

static void register_renewed(struct world *w, struct event *e)
{
	struct lib *lib = lib_find(w, e->host, e->uid);

	if (!lib)
		return;
	lease_on_confirmed(&lib->lease, w->mode == SIM_LEASE_FROM_ANSWER
						? host_ms(w, &w->host[e->host])
						: e->arg);
}

static void register_renew_now(struct world *w, struct event *e)
{
	struct sim_register *r = &w->reg;
	struct mirror_epoch *epoch = e->data;

	if (register_is_away(w, e->host) || !r->alive_set ||
	    !mirror_epoch_is_equal(r->alive_epoch, *epoch))
		return;
	r->alive_counter++;
	r->alive_revision++;
	uint64_t delay = sim_delay(w);

	/* An answer can arrive late, and the next renewals get no answer. */
	if (!plan_on_renewal(w, e->host, &delay) && !w->healing && sim_chance(w, 20)) {
		w->register_cut_until[e->host] = w->now + sim_between(w, 0, 3500 * MS);
		delay = sim_between(w, 0, 999 * MS);
	}
	sched_add(w, delay, register_renewed, e->host, e->uid, e->arg, NULL);
}

void register_renew(struct world *w, struct lib *lib)
{
	struct mirror_epoch *epoch = sim_new(sizeof(*epoch));
	uint64_t sent = host_ms(w, &w->host[lib->host]);

	*epoch = lib->p.rec.view.epoch;
	lib->renew_ms = sent + lib->lease.lease_ms / LEASE_RENEWALS;
	sched_add(w, sim_delay(w), register_renew_now, lib->host, lib->uid, sent, epoch);
}

static void register_clear_now(struct world *w, struct event *e)
{
	struct mirror_epoch *epoch = e->data;

	if (!register_is_away(w, e->host) && mirror_epoch_is_equal(w->reg.alive_epoch, *epoch))
		w->reg.alive_set = false;
}

void register_clear(struct world *w, struct host *h, struct mirror_epoch epoch)
{
	struct mirror_epoch *copy = sim_new(sizeof(*copy));

	*copy = epoch;
	sched_add(w, sim_delay(w), register_clear_now, h->id, 0, 0, copy);
}

/* Restore the register from a backup, so that old revisions occur again. */
void register_restore(struct world *w)
{
	if (!w->reg.old_revision)
		return;
	sim_trace(w, "register: restored to epoch %llu.%llu",
		  (unsigned long long)w->reg.old.view.epoch.number,
		  (unsigned long long)w->reg.old.view.seq);
	w->reg.rec = w->reg.old;
	w->reg.revision = w->reg.old_revision;
	register_changed(w);
	w->reg.alive_set = false;
	w->restored = true;
	w->count.restores++;
}
