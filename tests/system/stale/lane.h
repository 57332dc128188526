/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane.h -- two initiators write to the same place of a target's file, one after the other. The
 * first one's bytes, which are never acknowledged, must not overwrite the second one's.
 */
#ifndef STALE_LANE_H
#define STALE_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "system/lib/client.h"

#define LANE_BYTES  (1ul << 20)
#define LANE_STRIDE (2ul << 20) /* distance of places in the file: no two share a folio */
#define LANE_PIECE  (64u << 10)
#define LANE_PUT    4096u

struct lane {
	struct client client;
	unsigned number;
	size_t bytes;   /* bytes of the lane's place, LANE_BYTES at most */
	uint8_t letter; /* the last letter at the place */
};

/* The file that contains the places: the target has mapped it, and this program reads it. */
struct place {
	const char *port;
	int fd;
	bool behind; /* until a write-back the medium has older bytes than the page cache */
	bool rings;  /* connections must use shared memory */
};

/* liveness_ms 0: the default */
void lane_open(struct lane *lane, unsigned number, size_t bytes, int liveness_ms);
void lane_close(struct lane *lane);
/* Connect, again and again for a while: a target may refuse until a former connection has ended. */
void lane_connect(struct lane *lane, const struct place *place);
/* Write the next letter over the whole place, without requesting or awaiting a completion. */
void lane_post(struct lane *lane);
/* Give up the connection without a disconnect. */
void lane_give_up(struct lane *lane);
/*
 * Write the next letter to the end of the place, where a former connection's bytes come last. Flush
 * the letter to persistence, which the target acknowledges.
 */
void lane_put(struct lane *lane);
void lane_post_put(struct lane *lane);
void lane_expect_put(struct lane *lane);
/* The number of bytes at the end of the place that are not from the last put, in the file or on
 * its medium. */
size_t lane_stale(const struct lane *lane, const struct place *place);

#endif
