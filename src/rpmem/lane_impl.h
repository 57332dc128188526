/* SPDX-License-Identifier: BSD-3-Clause */
/* lane_impl.h -- declarations shared by the files of a lane. */
#ifndef RPMEM_LANE_IMPL_H
#define RPMEM_LANE_IMPL_H

#include "rpmem/lane.h"

/* Split long ranges, because the time limit applies to each completion. */
#define LANE_SLICE     (8u << 20)  /* largest transfer, in bytes */
#define LANE_BARRIER   (64u << 20) /* largest range that one barrier flushes, in bytes */
#define LANE_TRANSFERS 8           /* largest number of slices in transfer */
/* reads of at most this many bytes use the lane's own memory */
#define LANE_BOUNCE 65536u

/* Values of op_context of the lane's operations. */
enum lane_op {
	LANE_OP_BARRIER = 1,
	LANE_OP_TRANSFER,
	LANE_OP_SENT,
	LANE_OP_RECEIVE = 16, /* plus the number of the slot */
};

/* The messages of the general method, in registered memory. */
struct lane_messages {
	uint8_t out[WIRE_PERSIST_DEPTH][32];
	uint8_t in[WIRE_PERSIST_DEPTH][32];
};

struct lane {
	const struct lane_place *place;
	uint32_t number;
	struct rpma_conn *conn;
	struct rpma_cq *cq;
	struct rpma_batch *batch; /* holds two operations */
	struct rpma_mr_remote *remote;
	unsigned queue;     /* largest number of outstanding barriers */
	unsigned barriers;  /* number of outstanding barriers */
	unsigned transfers; /* number of outstanding transfers that give a completion */
	uint8_t *bounce;    /* NULL before the first read */
	struct rpma_mr_local *bounce_mr;
	struct lane_messages *messages; /* NULL unless the general method is used */
	struct rpma_mr_local *messages_mr;
	uint32_t free_slots; /* a bit for each free slot of messages->out */
	uint32_t next_id;
};

/* Report that the connection is lost, or that an operation could not be posted. rc: librpma's
 * result. */
int lane_broken(struct lane *lane, const char *what, int rc);

/*
 * lane_general.c: registers memory for the messages, and posts receives before the connection
 * exists. Returns librpma's result, or an errno.
 */
int lane_general_init(struct lane *lane);
int lane_general_prepare(struct rpma_conn_req *req, void *lane);
void lane_general_fini(struct lane *lane);
/* Add the message for a range to lane->batch, after the transfers. A slot must be free. */
int lane_general_add(struct lane *lane, uint64_t offset, uint64_t length);
/* Handle a received answer. */
int lane_general_on_receive(struct lane *lane, const struct ibv_wc *wc);

#endif
