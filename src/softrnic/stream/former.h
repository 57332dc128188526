/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * former.h -- the connections that this process has initiated and given up, and that their target
 * may still serve. A later connection names them (doc/wire.md s6, "Origin").
 *
 * Serial numbers ascend with time. Of the connections that have ended, the registry keeps one
 * interval between two living ones. So a thousand connections that were lost one after the other
 * are one interval, and the memory is bounded by the number of living connections.
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
#define FORMER_TARGET_BYTES 88u   /* bytes on the heap for each target */

struct former_gap {
	uint64_t first, last; /* 0: none */
};

struct former_target;

/* A connection, from its first ORIGIN until its stream is closed. */
struct former {
	struct list link;
	struct former_target *target; /* NULL: it is not in the registry */
	uint64_t serial;
	bool given_up; /* the user may see that it has ended, or has released it */
	bool fenced;   /* the target has confirmed the end of the connection */
	/* connections that were given up between the previous living one and this one */
	struct former_gap gap;
};

struct formers {
	struct list targets; /* targets, in the order of their last use */
	unsigned n;
};

void formers_init(struct formers *all);
/* Drop all entries: in a forked child the copies of the parent's connections are not its own. */
void formers_reset(struct formers *all);
/* Add a connection to the process that `instance` names. fresh: random bytes, used as the id of a
 * new target. *dropped: the table was full, so another target was dropped. Returns 0 or -ENOMEM. */
int former_join(struct formers *all, struct former *f, const uint8_t instance[EXT_ID_LEN],
		const uint8_t fresh[EXT_ID_LEN], bool *dropped);
void former_give_up(struct former *f);
/* The connection is closed. over: see stream_is_over(). */
void former_leave(struct formers *all, struct former *f, bool over);
/*
 * Fill in the id, the serial number, and the ranges that fit; the next message carries the others.
 */
void former_name(const struct former *f, struct ext_origin *origin);
/* The target has answered: all connections in `origin` are over. */
void former_fenced(struct former *f, const struct ext_origin *origin);

#endif
