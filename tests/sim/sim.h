/* SPDX-License-Identifier: BSD-3-Clause */
/* sim.h -- one run: two ends, a link, a clock, and the first violated invariant. */
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

struct sim {
	uint64_t seed, now, events;
	struct prng rng;
	struct scenario sc;
	struct sched sched;
	struct link link;
	struct node node[2];
	bool fault_hit; /* what goes wrong has gone wrong */
	unsigned redials;
	bool leaving; /* somebody disconnects */
	bool dark;    /* the power is off */
	bool violated;
	char violation[256];
};

struct coverage;

/* Returns true when no invariant was violated. */
bool sim_run(struct sim *sim, uint64_t seed, enum sim_mode mode, struct coverage *coverage);
void sim_fini(struct sim *sim);
void sim_violate(struct sim *sim, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Must all operations succeed, as far as it has gone? */
bool sim_is_clean(const struct sim *sim);

#endif
