/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * former.h -- records the connections that this process has initiated and given up, as long as
 * their target may still place their bytes. A later connection to the same target names them in its
 * ORIGIN (doc/wire.md s6, "Origin").
 *
 * Serial numbers ascend with time. The registry keeps the connections that have ended as intervals
 * of serial numbers: one interval between two living connections. So a thousand connections that
 * were lost one after the other are one interval, and the memory is bounded by the number of living
 * connections.
 *
 * Pure. The owner calls all functions under one lock, and provides the memory of each struct
 * former.
 */
#ifndef STREAM_FORMER_H
#define STREAM_FORMER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "softrnic/proto/ext_origin.h"

#define FORMER_TARGETS_MAX  4096u /* greatest number of target processes in the registry */
#define FORMER_TARGET_BYTES 88u   /* bytes on the heap for each target */

struct former_gap {
	uint64_t first, last; /* serial numbers of the interval; 0: the gap is empty */
};

struct former_target;

/* A connection, from its first ORIGIN until its stream is closed. */
struct former {
	struct list link;
	struct former_target *target; /* NULL: the connection is not in the registry */
	uint64_t serial;
	/* the user may have seen the connection's end, or has released the connection */
	bool given_up;
	bool fenced; /* the target has confirmed the end of the connection */
	/* connections that were given up, between the previous living connection and this one */
	struct former_gap gap;
};

struct formers {
	struct list targets; /* targets, in the order of their last use */
	unsigned n;
};

void formers_init(struct formers *all);
/* Drop all entries. Called in a forked child, because the connections belong to its parent. */
void formers_reset(struct formers *all);
/* Add a connection to the target process that `instance` names. `fresh` are random bytes, used as
 * the id of a new target. *dropped is true if the table was full, so that another target was
 * dropped. Returns 0 or -ENOMEM. */
int former_join(struct formers *all, struct former *f, const uint8_t instance[EXT_ID_LEN],
		const uint8_t fresh[EXT_ID_LEN], bool *dropped);
void former_give_up(struct former *f);
/* Remove a connection that is closed. `over`: see stream_is_over(). */
void former_leave(struct formers *all, struct former *f, bool over);
/*
 * Fill in the id, the serial number, and as many ranges as fit. The next ORIGIN carries the
 * remaining ranges.
 */
void former_name(const struct former *f, struct ext_origin *origin);
/*
 * Called when the target has answered that it places no more bytes of the connections in `origin`.
 */
void former_fenced(struct former *f, const struct ext_origin *origin);

#endif
