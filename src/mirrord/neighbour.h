/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * neighbour.h -- the status of a set's other members, asked from their daemons once a second by a
 * thread of its own, as a connection may take long.
 */
#ifndef MIRRORD_NEIGHBOUR_H
#define MIRRORD_NEIGHBOUR_H

#include "mirror/wire/message.h"

struct neighbours;

/* The members to ask, and how. */
struct neighbour_plan {
	struct mirror_config config;
	uint8_t self; /* slot of this host */
	bool has_secret;
	uint8_t key[32];
};

struct neighbour_answer {
	bool answers;     /* the daemon has answered within the last seconds */
	uint64_t copy_id; /* id of this copy */
	struct message_status status;
	bool lacks_copy; /* the daemon refuses because it has no copy of this member */
	/* Why it refuses the connection for good: "secret" or "version"; NULL: it does not. */
	const char *refusal;
	char why_not[256]; /* why the daemon does not answer; "": not tried yet */
	/* the daemon's answer about the requested size; 0: no answer */
	struct message_reserve reserved;
};

/* NULL with errno set on failure. */
struct neighbours *neighbours_new(void);
/* Waits until a connect that is under way has been given up. */
void neighbours_delete(struct neighbours *n);
/* Use this plan from now on; copies it. */
void neighbours_set_plan(struct neighbours *n, const struct neighbour_plan *plan);
/* Soon ask all daemons to extend their files for a set of that size; 0: stop asking. */
void neighbours_reserve(struct neighbours *n, uint64_t size);
void neighbours_get(struct neighbours *n, uint8_t slot, struct neighbour_answer *answer);

#endif
