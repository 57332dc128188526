/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inbox.h -- the user's receives: buffers of one end, or of all ends of a host that share an SRQ.
 * They are posted in turn, and each buffer must come back once.
 */
#ifndef SIM_INBOX_H
#define SIM_INBOX_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "softrnic/rnic/srq.h"

#define INBOX_SLOTS  16 /* receives that may be posted at a time */
#define INBOX_PIECES 4  /* pieces of one receive */
#define INBOX_BATCH  4
#define RECV_ID      (1u << 20) /* wr_id of the first buffer; wr_ids of operations are smaller */

struct node;

struct inbox_slot {
	unsigned pieces;
	struct {
		uint64_t off; /* offset in the arena of `home` */
		uint32_t len;
	} piece[INBOX_PIECES];
	bool busy; /* the buffer is posted, and not complete */
};

struct inbox {
	struct node *home; /* this node's memory holds the buffers */
	struct inbox_slot slot[INBOX_SLOTS];
	uint32_t slot_len, depth;
	unsigned posted, completed;
	unsigned lost; /* a queue pair that cannot return receives took at most that many */
	bool has_srq, shared;
	struct srq srq;
};

void inbox_init(struct inbox *b, struct node *home);
void inbox_fini(struct inbox *b);
/* Lay out the buffers in the area for receives, which has room for inbox_room(). */
void inbox_plan(struct inbox *b);
uint64_t inbox_room(const struct inbox *b);
/* Post n receives by one call, as long as there are free buffers. Returns false if fewer than n
 * were posted. */
bool inbox_post(struct inbox *b, struct node *n, unsigned count);
/* Some of the posted receives will not complete. */
void inbox_lose(struct inbox *b);
/* All receives that can complete have completed. */
bool inbox_is_used_up(const struct inbox *b);
/* A completion of a receive at node n. */
void inbox_on_completion(struct inbox *b, struct node *n, const struct ibv_wc *wc);
/* At the end: every receive has completed or is still in the SRQ. */
void inbox_check(const struct inbox *b);
/* Copy the content of posted buffers to `want`, an arena's expected bytes. */
void inbox_allow(const struct inbox *b, uint8_t *want);

#endif
