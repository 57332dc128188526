/* SPDX-License-Identifier: BSD-3-Clause */
/* ud_end.h -- an end with one datagram queue pair on this host. Each function asserts success. */
#ifndef TESTS_IO_UD_END_H
#define TESTS_IO_UD_END_H

#include <infiniband/verbs.h>

#define UD_END_QKEY 0x11111111u
#define UD_END_SLOT 256u /* bytes for one receive */

struct ud_end {
	struct ibv_comp_channel *channel;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_ah *ah; /* address handle of this host */
	struct ibv_qp *qp; /* ud_end_close() skips it if it is NULL */
	uint8_t *buf;      /* the caller's memory, of `depth` slots */
	uint32_t depth;
};

void ud_end_open(struct ud_end *e, uint8_t *buf, uint32_t depth);
void ud_end_close(struct ud_end *e);
/* Make another queue pair, in RTS. */
void ud_end_make_qp(struct ud_end *e);
/* Post a receive into the slot; wr_id is the slot. */
void ud_end_recv(struct ud_end *e, unsigned slot);
/* Wait at most 10 s for the next completion. */
struct ibv_wc ud_end_wait(struct ud_end *e);

#endif
