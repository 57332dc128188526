/* SPDX-License-Identifier: BSD-3-Clause */
/* survive.h -- the losses that a set survives, in one sentence, and the effect of a given loss;
 * pure. */
#ifndef RPMIRROR_SURVIVE_H
#define RPMIRROR_SURVIVE_H

#include <stdbool.h>

#include <jansson.h>

#include "mirror/core/types.h"

struct survive_facts {
	unsigned copies; /* number of in-sync copies */
	unsigned min_copies;
	enum mirror_lonely lonely;
	/* The members of etcd. 0: the register is a file, or it is unknown which members answer. */
	unsigned register_members, register_healthy;
	bool is_register_silent; /* the register did not answer the last request */
	unsigned unreached;      /* copies that the asked host cannot reach */
};

/* Take the facts of a set from the status. */
void survive_facts_of(const json_t *set, struct survive_facts *facts);
/* Write a text such as "survives the loss of any one host". */
void survive_text(const struct survive_facts *facts, char *text, size_t size);

enum survive_outcome {
	SURVIVE_NO_CHANGE,
	SURVIVE_GOES_ON,    /* the primary goes on with fewer copies */
	SURVIVE_FAILS_OVER, /* another member takes over without an operator */
	SURVIVE_STOPS,      /* an operator has to promote another member */
	SURVIVE_BLOCKS,     /* flushes wait until a copy is back */
	SURVIVE_LOSES       /* no in-sync copy is left */
};

/* The parts that are lost at the same time. */
struct survive_lost {
	mirror_mask members;
	uint32_t stores; /* members of the register: a bit for each position in the status */
};

/*
 * Add the parts that this name stands for; returns false if there are none. A member's name: its
 * host, with the host's members of the register (unless several members share the host, as in
 * tests). HOST: everything on that host. HOST:PORT: one member of the register.
 */
bool survive_add_lost(const json_t *set, const char *name, struct survive_lost *lost);
enum survive_outcome survive_loss(const json_t *set, const struct survive_lost *lost, char *text,
				  size_t size);
const char *survive_outcome_str(enum survive_outcome outcome);

#endif
