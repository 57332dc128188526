/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * former.h -- the connections that this process has initiated: which of them it has given up
 * without knowing that they are over at the target. A later connection names these (doc/wire.md s6,
 * "Origin").
 *
 * Serial numbers ascend with time, and of those that have ended only an interval between two living
 * ones is kept. So a thousand connections that were lost one after the other are one interval, and
 * all of it takes as much memory as the living connections have.
 *
 * Pure. The owner has a lock around all of it, and the memory of each struct former.
 */
#ifndef STREAM_FORMER_H
#define STREAM_FORMER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "softrnic/proto/ext_origin.h"

#define FORMER_TARGETS_MAX  4096u /* processes of targets */
#define FORMER_TARGET_BYTES 88u   /* on the heap, for each */

struct former_gap {
	uint64_t first, last; /* 0: none */
};

struct former_target;

/* A connection, from its first ORIGIN until its stream is closed. */
struct former {
	struct list link;
	struct former_target *target; /* NULL: it is not in the registry */
	uint64_t serial;
	bool given_up;         /* the user may see that it has ended, or has released it */
	bool fenced;           /* the target has answered that it is over */
	struct former_gap gap; /* given up between the living one before it and this one */
};

struct formers {
	struct list targets; /* the one that was used last is last */
	unsigned n;
};

void formers_init(struct formers *all);
/* Forget all; a forked child's copies of connections are not its own. */
void formers_reset(struct formers *all);
/*
 * A new connection to the process that is so named. fresh: random, the id if this is the first one.
 * 0 or -ENOMEM. *dropped: the table was full, and what was known of another target is forgotten.
 */
int former_join(struct formers *all, struct former *f, const uint8_t instance[EXT_ID_LEN],
		const uint8_t fresh[EXT_ID_LEN], bool *dropped);
void former_give_up(struct former *f);
/* It is closed. over: see stream_is_over(). */
void former_leave(struct formers *all, struct former *f, bool over);
/* Id, serial number, and as many ranges as one message takes; the others are for the next one. */
void former_name(const struct former *f, struct ext_origin *origin);
/* The target has answered: what was named is over. */
void former_fenced(struct former *f, const struct ext_origin *origin);

#endif
