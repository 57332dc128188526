/* SPDX-License-Identifier: BSD-3-Clause */
/* op_ext.h -- the common part of the requests that belong to the extensions (doc/wire.md s6). */
#ifndef RNIC_OP_EXT_H
#define RNIC_OP_EXT_H

#include "softrnic/rnic/qp_impl.h"

/* ext_range_rx receives requests with a range; ext_answer_rx receives the answer to any request. */
extern const struct op_rx ext_range_rx, ext_answer_rx;

/* Fill in a work request with a range, and build its message. */
void ext_fill_range(struct sq_wr *slot, const struct ibv_send_wr *wr);
bool ext_build_range(struct qp *qp, struct sq_wr *wr, enum ext_kind kind);
/* Build a request from its encoded message. */
bool ext_build_request(struct qp *qp, struct sq_wr *wr, const void *bytes, int len);

/* Set the answer to the request. The answer may be sent from now on. */
void ext_ready(struct qp *qp, struct irq_entry *e, enum ext_status status, uint32_t detail);
bool ext_build_answer(struct qp *qp, const struct irq_entry *e);
/* End the stream by a Terminate, because the peer's request is invalid or impossible. */
void ext_refuse(struct qp *qp);

#endif
