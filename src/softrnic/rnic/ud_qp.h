/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ud_qp.h -- a queue pair of datagrams: each request names its destination, and each message is one
 * packet, which may be lost.
 *
 * No I/O, no clock, no lock inside: every function is called with the owner's lock. The owner moves
 * packets: ud_qp_gather() and ud_qp_sent() give it those of posted requests, ud_qp_receive() takes
 * one that came. Files: ud_qp.c (life and states), ud_qp_send.c, ud_qp_recv.c.
 */
#ifndef RNIC_UD_QP_H
#define RNIC_UD_QP_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "softrnic/proto/ud.h"
#include "softrnic/rnic/cq.h"
#include "softrnic/rnic/mr.h"
#include "softrnic/rnic/srq.h"
#include "softrnic/rnic/ud_flow.h"
#include "verbs_ext/verbs_ext.h"

/* An address handle: its path is checked and complete. */
struct ud_ah {
	struct ibv_ah ibv;
	struct ud_path path;
};

/* Messages, and packets that were dropped, by their cause. */
#define UD_COUNTERS(X) X(sends_in) X(sends_out) X(bad_qkey) X(no_receive) X(too_long) X(not_ready)
struct ud_counters {
#define X(name) uint64_t name;
	UD_COUNTERS(X)
#undef X
};

struct ud_qp_config {
	struct mr_table *mrs;
	struct ibv_pd *pd;
	struct cq *send_cq, *recv_cq;
	struct srq *srq; /* NULL: own receive queue */
	uint32_t qp_num;
	struct ibv_qp_cap cap; /* already checked against the device's limits */
	bool sq_sig_all;
	void *owner;
	void (*async)(void *owner, enum ibv_event_type event);
};

struct ud_qp; /* begins with struct qp_face */

int ud_qp_new(const struct ud_qp_config *cfg, struct ud_qp **out); /* 0 or -errno; in RESET */
void ud_qp_delete(struct ud_qp *qp);                               /* drops its completions */
struct ibv_qp *ud_qp_ibv(struct ud_qp *qp);
struct ud_qp *ud_qp_of(struct ibv_qp *ibv);
void *ud_qp_owner(const struct ud_qp *qp);
const struct ud_counters *ud_qp_counters(const struct ud_qp *qp);

/* The move is permitted. To RESET: what is posted is dropped, and so are completions. To ERR: all of
 * it is flushed. */
void ud_qp_move(struct ud_qp *qp, enum ibv_qp_state to, bool notify_drained);
void ud_qp_set_qkey(struct ud_qp *qp, uint32_t qkey);

/* As the verbs calls. What is posted is sent by gather and sent. */
int ud_qp_post_send(struct ud_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int ud_qp_post_recv(struct ud_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/* All or nothing. 0 or an errno value. */
int ud_qp_post_list(struct ud_qp *qp, const struct vext_wr *wrs, int n);

/*
 * The packets of the next requests, at most `max`, as far as their peers have room: how many, or
 * -EAGAIN if the first one's has none. A request whose memory is not there ends with an error.
 */
int ud_qp_gather(struct ud_qp *qp, struct ud_flows *flows, uint64_t now, struct ud_packet *packets,
		 int max);
/* The first n requests have left: they complete. */
void ud_qp_sent(struct ud_qp *qp, int n);
/* `payload` has so many bytes, which came with this header. */
void ud_qp_receive(struct ud_qp *qp, const struct ud_header *h, const struct ud_path *path,
		   const uint8_t *payload, size_t len);

#endif
