/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * neighbour.h -- what the daemons of a set's other members say of themselves, asked once a second
 * on a thread of its own, as a connection may take long.
 */
#ifndef MIRRORD_NEIGHBOUR_H
#define MIRRORD_NEIGHBOUR_H

#include "mirror/wire/message.h"

struct neighbours;

/* Which members to ask, and how. */
struct neighbour_plan {
	struct mirror_config config;
	uint8_t self; /* slot of this host's */
	bool has_secret;
	uint8_t key[32];
};

struct neighbour_answer {
	bool answers;     /* it did in the last seconds, */
	uint64_t copy_id; /* of this copy */
	struct message_status status;
	bool lacks_copy;   /* its daemon refuses, as it has no copy that is this member's */
	char why_not[256]; /* unless it answers; "" as long as it was not tried */
	struct message_reserve reserved; /* if it answers, of the size that is asked for; else 0 */
};

/* NULL with errno set. */
struct neighbours *neighbours_new(void);
/* Waits until a connection that is being tried has been given up. */
void neighbours_delete(struct neighbours *n);
/* From now on. Copied. */
void neighbours_set_plan(struct neighbours *n, const struct neighbour_plan *plan);
/* Ask all, and soon, to make their files long enough for a set of that size; 0: no more. */
void neighbours_reserve(struct neighbours *n, uint64_t size);
void neighbours_get(struct neighbours *n, uint8_t slot, struct neighbour_answer *answer);

#endif
