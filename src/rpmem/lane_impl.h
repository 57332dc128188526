/* SPDX-License-Identifier: BSD-3-Clause */
/* lane_impl.h -- what the files of a lane have of each other. */
#ifndef RPMEM_LANE_IMPL_H
#define RPMEM_LANE_IMPL_H

#include "rpmem/lane.h"

/* A time limit is one for progress: so long ranges go in pieces. */
#define LANE_SLICE     (8u << 20)  /* of a transfer */
#define LANE_BARRIER   (64u << 20) /* flushed together */
#define LANE_TRANSFERS 8           /* slices under way */
#define LANE_BOUNCE    65536u      /* reads up to here go through memory of the lane */

/* op_context of what a lane posts. */
enum lane_op {
	LANE_OP_BARRIER = 1,
	LANE_OP_TRANSFER,
	LANE_OP_SENT,
	LANE_OP_RECEIVE = 16, /* and the slot's number */
};

/* Messages of the general method; registered. */
struct lane_messages {
	uint8_t out[WIRE_PERSIST_DEPTH][32];
	uint8_t in[WIRE_PERSIST_DEPTH][32];
};

struct lane {
	const struct lane_place *place;
	uint32_t number;
	struct rpma_conn *conn;
	struct rpma_cq *cq;
	struct rpma_batch *batch; /* for two operations */
	struct rpma_mr_remote *remote;
	unsigned queue;     /* barriers that may be outstanding */
	unsigned barriers;  /* outstanding */
	unsigned transfers; /* outstanding, of those that give a completion */
	uint8_t *bounce;    /* NULL: no read yet */
	struct rpma_mr_local *bounce_mr;
	struct lane_messages *messages; /* general method only */
	struct rpma_mr_local *messages_mr;
	uint32_t free_slots; /* bits, of messages->out */
	uint32_t next_id;
};

/* lane_io.c: take one completion, and count it. */
int lane_take(struct lane *lane);
/* The connection is lost, or an operation could not be posted; rc: librpma's result. */
int lane_broken(struct lane *lane, const char *what, int rc);

/* lane_general.c: room for the messages; receives before the connection exists. Librpma's results,
 * or an errno. */
int lane_general_init(struct lane *lane);
int lane_general_prepare(struct rpma_conn_req *req, void *lane);
void lane_general_fini(struct lane *lane);
/* Put the message for a range into lane->batch, behind the transfers; there is a free slot. */
int lane_general_add(struct lane *lane, uint64_t offset, uint64_t length);
/* An answer has come. */
int lane_general_on_receive(struct lane *lane, const struct ibv_wc *wc);

#endif
