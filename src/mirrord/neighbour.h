/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * neighbour.h -- asks the daemons of a set's other members for their status once a second. A
 * separate thread asks, because a connect may take long.
 */
#ifndef MIRRORD_NEIGHBOUR_H
#define MIRRORD_NEIGHBOUR_H

#include "mirror/wire/message.h"

struct neighbours;

/* The members to ask, and the data that a connection needs. */
struct neighbour_plan {
	struct mirror_config config;
	uint8_t self; /* slot of this host */
	bool has_secret;
	uint8_t key[32];
};

struct neighbour_answer {
	bool answers;     /* the daemon has answered within the last seconds */
	uint64_t copy_id; /* id of the copy that the daemon has */
	struct message_status status;
	bool lacks_copy; /* the daemon refuses because it has no copy of this member */
	/* "secret" or "version", if the daemon refuses connections from this host for that reason,
	 * permanently; NULL: it does not refuse them */
	const char *refusal;
	char why_not[256]; /* reason why the daemon does not answer; "": it was not asked yet */
	/* the daemon's answer about the requested size; 0: no answer */
	struct message_reserve reserved;
};

/* Returns NULL with errno on failure. */
struct neighbours *neighbours_new(void);
/* Waits until a connect that has begun ends at its time limit. */
void neighbours_delete(struct neighbours *n);
/* Copy the plan, and use it from now on. */
void neighbours_set_plan(struct neighbours *n, const struct neighbour_plan *plan);
/* Ask all daemons soon to extend their files for a set of that size; 0: stop asking. */
void neighbours_reserve(struct neighbours *n, uint64_t size);
void neighbours_get(struct neighbours *n, uint8_t slot, struct neighbour_answer *answer);

#endif
