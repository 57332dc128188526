/* SPDX-License-Identifier: BSD-3-Clause */
/* plain.h -- plain queue pairs of this process, by softrnic.h alone. SOFTRNIC_GIDS is 127.0.0.1. */
#ifndef UNIT_IO_PLAIN_H
#define UNIT_IO_PLAIN_H

#include "lib/unit.h"

#include "softrnic/softrnic.h"

#define PLAIN_BUF   4096
#define PLAIN_DEPTH 16

struct plain {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr; /* region of buf */
	struct ibv_qp *qp;
	enum ibv_qp_type type;
	uint8_t timeout, retry_cnt; /* values for the move to RTS */
	uint8_t rd_atomic;          /* outstanding Reads and atomics each way */
	uint32_t sq_psn;            /* 1; the peer expects 1 */
	_Alignas(8) char buf[PLAIN_BUF];
};

void plain_open(struct plain *p); /* in RESET; timeout 0: its retry clock does not run */
void plain_open_as(struct plain *p, enum ibv_qp_type type); /* types other than RC */
void plain_close(struct plain *p);
void plain_destroy_qp(struct plain *p);

void plain_reset(struct plain *p);
void plain_init(struct plain *p);
void plain_rtr(struct plain *p, uint32_t peer);
void plain_rts(struct plain *p);
/* Move the queue pair from RESET to RTS. */
void plain_ready(struct plain *p, uint32_t peer);
enum ibv_qp_state plain_state(struct plain *p);
/* Has `p` a greater number than `peer`, so that `p` dials? */
bool plain_dials(const struct plain *p, const struct plain *peer);
/* Open two queue pairs, of which the first dials. */
void plain_pair_open(struct plain *dials, struct plain *awaits);

void plain_recv(struct plain *p, uint64_t wr_id);
void plain_send(struct plain *p, uint64_t wr_id, const char *text);
/* Wait for the next completion, for 10 s at most. */
struct ibv_wc plain_wait(struct plain *p);
/* Expect no completion within the time. */
void plain_expect_none(struct plain *p, int ms);
/* Send a message each way, and check that both arrive. */
void plain_talk(struct plain *a, struct plain *b);

#endif
