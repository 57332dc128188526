/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node.h -- one end: a stream with its queue pair, driven as the engine drives it, but by
 * virtual time and by chance.
 */
#ifndef SIM_NODE_H
#define SIM_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "memory.h"
#include "model.h"
#include "softrnic/cm/stream.h"

struct sim;

#define NODE_SLOTS  16 /* receives that may be posted at a time */
#define NODE_PIECES 4  /* of one receive */

struct recv_slot {
	unsigned pieces;
	struct {
		uint64_t off; /* in the arena */
		uint32_t len;
	} piece[NODE_PIECES];
};

struct node {
	struct sim *sim;
	struct node *peer;
	int index;
	struct cm_stream *stream;
	struct qp *qp;
	struct ibv_pd pd;
	struct mr_table *mrs;
	struct cq send_cq, recv_cq;
	struct srq srq;
	struct memory mem;
	struct model model; /* of what we ask of the peer */
	void *rx_buf, *tx_buf;
	bool rx_lent, tx_lent;
	bool kicked, redial, pump_due, eof_seen, stopping;
	uint64_t deadline; /* the one that is scheduled */
	/* What the user was told. */
	bool requested, answered, established, disconnected;
	bool ended;   /* no connection, and none comes */
	bool killed;  /* nothing of it runs any more */
	bool overrun; /* a completion was lost */
	bool left;    /* the user disconnected */
	/* The write-back under way. */
	struct qp_writeback wb;
	bool wb_running, wb_copying, wb_snapshot;
	uint8_t *wb_bytes;
	uint64_t wb_room;
	unsigned wb_count;
	/* The user's receives: a ring of buffers. */
	struct recv_slot slot[NODE_SLOTS];
	unsigned recv_posted, recv_completed;
	uint32_t slot_len;
	bool recv_failed;
	unsigned phase;       /* of the operations that may be posted */
	unsigned left_posted; /* operations that were posted when the user disconnected */
	/* The deregistration under way. */
	uint64_t dereg_since;
	enum area_kind dereg_area;
	bool dereg_pool;
};

void node_start(struct node *n, struct sim *sim, int index);
/* Delete everything; says what is wrong when something is left behind. */
void node_stop(struct node *n);
void node_free(struct node *n);
/* A new stream for the (next) connection. */
void node_open_stream(struct node *n);
/* node_io.c: do whatever is due: read, send, write back, end. */
void node_pump(struct node *n);
void node_kill(struct node *n);
void node_pump_soon(struct node *n);
/* node_events.c */
void node_on_writeback(struct node *n);
void node_on_copy(struct node *n);
void node_on_reset(struct node *n, int err);
void node_on_time(struct node *n);
void node_on_dereg(struct node *n);
struct mr **node_dereg_mr(struct node *n); /* the region that goes; NULL when it is gone */

#endif
