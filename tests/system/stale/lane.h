/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane.h -- two initiators write to the same range of a target's file ("the place"), one after the
 * other. The bytes of the first initiator are never acknowledged, and must not overwrite bytes of
 * the second.
 */
#ifndef STALE_LANE_H
#define STALE_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "system/lib/client.h"

#define LANE_BYTES (1ul << 20)
/* distance of two places in the file, so that no folio contains both */
#define LANE_STRIDE (2ul << 20)
#define LANE_PIECE  (64u << 10)
#define LANE_PUT    4096u

struct lane {
	struct client client;
	unsigned number;
	size_t bytes;   /* length of the lane's place, at most LANE_BYTES */
	uint8_t letter; /* the letter that was written last to the place */
};

/* The file that contains the places. The target has mapped it, and this program reads it. */
struct place {
	const char *port;
	int fd;
	bool behind; /* the medium can have older bytes than the page cache, until a write-back */
	bool rings;  /* connections must use rings in shared memory */
};

/* Open a lane. liveness_ms 0: use the default. */
void lane_open(struct lane *lane, unsigned number, size_t bytes, int liveness_ms);
void lane_close(struct lane *lane);
/* Connect, and retry for some time, because a target can refuse until the former connection has
 * ended. */
void lane_connect(struct lane *lane, const struct place *place);
/* Write the next letter over the whole place, without a completion. */
void lane_post(struct lane *lane);
/* Delete the connection without a disconnect. */
void lane_give_up(struct lane *lane);
/*
 * Write the next letter to the end of the place, where a former connection's bytes would arrive
 * last. Flush it persistently, and wait for the acknowledgement.
 */
void lane_put(struct lane *lane);
void lane_post_put(struct lane *lane);
void lane_expect_put(struct lane *lane);
/* Returns how many bytes at the end of the place, in the file or on its medium, do not come from
 * the last put. */
size_t lane_stale(const struct lane *lane, const struct place *place);

#endif
