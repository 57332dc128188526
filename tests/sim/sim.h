/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim.h -- a run is a world: a clock, chance, what happens next, and one or more connections
 * between the same two hosts. The connections share what a host shares: its STag table, its
 * protection domain and, if they like, a SRQ. Each goes by a scenario of its own, and only the
 * first one has a fault: what happens to it must not be felt by the others.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "link.h"
#include "node.h"
#include "prng.h"
#include "scenario.h"
#include "sched.h"

#define SIM_IMPATIENT_NS (3 * NSEC_PER_SEC)  /* every run without a fault is over by then */
#define SIM_GIVE_UP_NS   (12 * NSEC_PER_SEC) /* and every other by then */
#define SIM_CONNECT_NS   (2 * NSEC_PER_SEC)
#define SIM_DRAIN_NS     (2 * NSEC_PER_SEC)
#define SIM_LIVENESS_NS  (600 * NSEC_PER_MS) /* much more than the link and the medium delay */
#define SIM_CONNS        4

struct world;

/* One connection: two ends and what is between them. */
struct sim {
	struct world *world;
	unsigned index;
	struct scenario sc;
	struct link link;
	struct node node[2];
	bool fault_hit; /* what goes wrong has gone wrong */
	unsigned redials;
	bool leaving; /* somebody disconnects */
};

struct world {
	uint64_t seed, now, events;
	struct prng rng;
	struct sched sched;
	struct sim conn[SIM_CONNS];
	unsigned conns;
	struct host host[2];
	bool cut_often; /* look at the medium wherever a power cut could hurt */
	unsigned long long cuts;
	bool dark; /* the power is off */
	bool violated;
	char violation[256];
};

struct coverage;

/* How a run differs from an honest one, or from one that looks where it happens to. */
struct sim_options {
	enum sim_mode mode;
	bool cut_often;
};

/* Returns true when no invariant was violated. */
bool world_run(struct world *w, uint64_t seed, const struct sim_options *opt,
	       struct coverage *coverage);
void world_fini(struct world *w);

void sim_violate(struct sim *sim, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Something happens to an end of this connection. */
void sim_at(struct sim *sim, uint64_t at, enum event_kind kind, int node, uint64_t arg);
void sim_on_event(struct sim *sim, const struct event *e);
/* Has everything ended? */
bool sim_is_over(struct sim *sim);
/* verdict.c: this must hold at any time (the memory of n is a state that its peer made)... */
void sim_check_memory(struct node *n);
/* ...and this at the end. */
void sim_verdict(struct sim *sim);
/* Must all operations succeed, as far as it has gone? */
bool sim_is_clean(const struct sim *sim);

#endif
