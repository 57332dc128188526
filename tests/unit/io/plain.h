/* SPDX-License-Identifier: BSD-3-Clause */
/* plain.h -- queue pairs without rdma_cm ("plain") in this process, made with softrnic.h only.
 * SOFTRNIC_GIDS is 127.0.0.1. */
#ifndef UNIT_IO_PLAIN_H
#define UNIT_IO_PLAIN_H

#include "lib/unit.h"

#include "softrnic/softrnic.h"

#define PLAIN_BUF   4096
#define PLAIN_DEPTH 16

struct plain {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr; /* region of the member buf */
	struct ibv_qp *qp;
	enum ibv_qp_type type;
	uint8_t timeout, retry_cnt; /* values of the move to RTS */
	/* Reads and atomics that may be outstanding in each direction */
	uint8_t rd_atomic;
	uint8_t rnr_retry;     /* 7 by default: no limit */
	uint8_t min_rnr_timer; /* 12 by default: InfiniBand's code of 0.64 ms */
	/* sequence number of the first packet; 1, as the peer expects */
	uint32_t sq_psn;
	_Alignas(8) char buf[PLAIN_BUF];
};

/* opens an RC queue pair in RESET; timeout 0 means that no retry clock runs */
void plain_open(struct plain *p);
/* opens a queue pair of this type in RESET */
void plain_open_as(struct plain *p, enum ibv_qp_type type);
void plain_close(struct plain *p);
void plain_destroy_qp(struct plain *p);

void plain_reset(struct plain *p);
void plain_init(struct plain *p);
void plain_rtr(struct plain *p, uint32_t peer);
void plain_rts(struct plain *p);
/* Move the queue pair from RESET to RTS. */
void plain_ready(struct plain *p, uint32_t peer);
enum ibv_qp_state plain_state(struct plain *p);
/* Returns true if `p` has a greater number than `peer`, so that `p` is the end that dials. */
bool plain_dials(const struct plain *p, const struct plain *peer);
/* Open two queue pairs, of which the first is the one that dials. */
void plain_pair_open(struct plain *dials, struct plain *awaits);

void plain_recv(struct plain *p, uint64_t wr_id);
void plain_send(struct plain *p, uint64_t wr_id, const char *text);
/* Wait at most 10 s for the next completion. */
struct ibv_wc plain_wait(struct plain *p);
/* Fail if a completion comes within the time. */
void plain_expect_none(struct plain *p, int ms);
/* Send a message each way, and check that both arrive. */
void plain_talk(struct plain *a, struct plain *b);

#endif
