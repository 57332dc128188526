/* SPDX-License-Identifier: BSD-3-Clause */
/* inbox.h -- the user's receives: the buffers of one end, or of all ends of a host that share an
 * SRQ. They are posted in turn, and each posted buffer must complete exactly once. */
#ifndef SIM_INBOX_H
#define SIM_INBOX_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "softrnic/rnic/srq.h"

#define INBOX_SLOTS  16 /* receives that can be posted at the same time */
#define INBOX_PIECES 4  /* memory pieces (SGEs) of one receive */
#define INBOX_BATCH  4
#define RECV_ID      (1u << 20) /* wr_id of the first buffer; wr_ids of operations are smaller */

struct node;

struct inbox_slot {
	unsigned pieces;
	struct {
		uint64_t off; /* offset in the arena of node `home` */
		uint32_t len;
	} piece[INBOX_PIECES];
	bool busy; /* the buffer is posted and has not completed */
};

struct inbox {
	struct node *home; /* the node whose memory has the buffers */
	struct inbox_slot slot[INBOX_SLOTS];
	uint32_t slot_len, depth;
	unsigned posted, completed;
	/* upper limit of the receives that a queue pair took and can no longer complete */
	unsigned lost;
	bool has_srq, shared;
	struct srq srq;
};

void inbox_init(struct inbox *b, struct node *home);
void inbox_fini(struct inbox *b);
/* Lay out the buffers in the area for receives, whose length is inbox_room(). */
void inbox_plan(struct inbox *b);
uint64_t inbox_room(const struct inbox *b);
/* Post up to n receives by one call, one for each free buffer. Returns false if fewer than n were
 * posted. */
bool inbox_post(struct inbox *b, struct node *n, unsigned count);
/* Note that some of the posted receives will not complete. */
void inbox_lose(struct inbox *b);
/* Returns true if all receives that can complete have completed. */
bool inbox_is_used_up(const struct inbox *b);
/* Handle a completion of a receive at node n. */
void inbox_on_completion(struct inbox *b, struct node *n, const struct ibv_wc *wc);
/* Check at the end that every receive has completed or is still in the SRQ. */
void inbox_check(const struct inbox *b);
/* Copy the present bytes of posted buffers to `want`, the expected bytes of an arena, because
 * messages may have changed these buffers. */
void inbox_allow(const struct inbox *b, uint8_t *want);

#endif
