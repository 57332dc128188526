/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane.h -- one initiator after the other writes to the same place of a target's file: the first
 * one's bytes, which are never acknowledged, must not come to lie over the second one's.
 */
#ifndef STALE_LANE_H
#define STALE_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "system/lib/client.h"

#define LANE_BYTES  (1ul << 20)
#define LANE_STRIDE (2ul << 20) /* of the places in the file: none shares a folio with another */
#define LANE_PIECE  (64u << 10)
#define LANE_PUT    4096u

struct lane {
	struct client client;
	unsigned number;
	size_t bytes;   /* of its place, LANE_BYTES at most */
	uint8_t letter; /* what was put there last */
};

/* What the places are in: a file that the target has mapped, and this program reads. */
struct place {
	const char *port;
	int fd;
	bool behind; /* its medium is behind the page cache until a write-back */
	bool rings;  /* connections are to go through shared memory */
};

/* liveness_ms 0: the default */
void lane_open(struct lane *lane, unsigned number, size_t bytes, int liveness_ms);
void lane_close(struct lane *lane);
/* Again and again, for a while: a target may refuse until a former connection has ended. */
void lane_connect(struct lane *lane, const struct place *place);
/* Write the next letter all over the place; no completion is asked for, and none awaited. */
void lane_post(struct lane *lane);
/* The connection is given up: no disconnect. */
void lane_give_up(struct lane *lane);
/* The next letter at the end of the place, where a former connection's bytes come last, and a
 * persistent flush: it is acknowledged. */
void lane_put(struct lane *lane);
void lane_post_put(struct lane *lane);
void lane_expect_put(struct lane *lane);
/* Bytes of the end that are not the last put's, in the file or at its medium. */
size_t lane_stale(const struct lane *lane, const struct place *place);

#endif
