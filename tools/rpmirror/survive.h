/* SPDX-License-Identifier: BSD-3-Clause */
/* survive.h -- writes in one sentence which losses a set survives, and finds the effect of a given
 * loss; pure. */
#ifndef RPMIRROR_SURVIVE_H
#define RPMIRROR_SURVIVE_H

#include <stdbool.h>

#include <jansson.h>

#include "mirror/core/types.h"

struct survive_facts {
	unsigned copies; /* number of copies that are in-sync */
	unsigned min_copies;
	enum mirror_lonely lonely;
	/* Numbers of members of etcd. 0: the register is a file, or the members that answer are
	 * unknown. */
	unsigned register_members, register_healthy;
	bool is_register_silent; /* the register did not answer the last request */
	unsigned unreached;      /* number of copies that this host's daemon cannot reach */
};

/* Get the facts of a set from the status. */
void survive_facts_of(const json_t *set, struct survive_facts *facts);
/* Write a text such as "survives the loss of any one host". */
void survive_text(const struct survive_facts *facts, char *text, size_t size);

enum survive_outcome {
	SURVIVE_NO_CHANGE,
	SURVIVE_GOES_ON,    /* the primary continues with fewer copies */
	SURVIVE_FAILS_OVER, /* another member takes over without an operator */
	SURVIVE_STOPS,      /* an operator has to promote another member */
	SURVIVE_BLOCKS,     /* flushes wait until a copy is back */
	SURVIVE_LOSES       /* no in-sync copy is left */
};

/* The parts that are assumed to be lost at the same time. */
struct survive_lost {
	mirror_mask members;
	uint32_t stores; /* lost members of the register: a bit for each position in the status */
};

/*
 * Add the parts that a name stands for. Returns false if it stands for no part. The name of a
 * member stands for the member's host, with the register's members on that host (if several members
 * share the host, as in tests, only for the member). HOST stands for all parts on that host,
 * HOST:PORT for one member of the register.
 */
bool survive_add_lost(const json_t *set, const char *name, struct survive_lost *lost);
enum survive_outcome survive_loss(const json_t *set, const struct survive_lost *lost, char *text,
				  size_t size);
const char *survive_outcome_str(enum survive_outcome outcome);

#endif
