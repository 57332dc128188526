/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ud_qp.h -- a queue pair for datagrams: each request names its destination, and each message is
 * one packet, which may be lost.
 *
 * This code does no I/O, reads no clock and takes no lock: the caller of every function holds the
 * owner's lock. The owner sends and receives the packets. ud_qp_gather() returns the packets of
 * posted requests, ud_qp_sent() completes them, and ud_qp_receive() handles a packet that arrived.
 * Files: ud_qp.c (creation and states), ud_qp_send.c, ud_qp_recv.c.
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

/* An address handle. Its path was checked and completed when the handle was made. */
struct ud_ah {
	struct ibv_ah ibv;
	struct ud_path path;
};

/* Counters: messages, and dropped packets by the cause of the drop. */
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
	struct srq *srq; /* NULL: the queue pair has its own receive queue */
	uint32_t qp_num;
	struct ibv_qp_cap cap; /* already checked against the device's limits by the caller */
	bool sq_sig_all;
	void *owner;
	void (*async)(void *owner, enum ibv_event_type event);
};

struct ud_qp; /* begins with struct qp_face */

/* 0 or -errno; the new queue pair is in RESET */
int ud_qp_new(const struct ud_qp_config *cfg, struct ud_qp **out);
/* also drops the completions of the queue pair */
void ud_qp_delete(struct ud_qp *qp);
struct ibv_qp *ud_qp_ibv(struct ud_qp *qp);
struct ud_qp *ud_qp_of(struct ibv_qp *ibv);
void *ud_qp_owner(const struct ud_qp *qp);
const struct ud_counters *ud_qp_counters(const struct ud_qp *qp);

/* The caller has checked that the move is permitted. RESET drops posted requests and completions.
 * ERR flushes all posted requests. */
void ud_qp_move(struct ud_qp *qp, enum ibv_qp_state to, bool notify_drained);
void ud_qp_set_qkey(struct ud_qp *qp, uint32_t qkey);

/* Post requests like the verbs calls do. ud_qp_gather() and ud_qp_sent() then send posted Sends. */
int ud_qp_post_send(struct ud_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int ud_qp_post_recv(struct ud_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/* Post all requests or none. Returns 0 or an errno value. */
int ud_qp_post_list(struct ud_qp *qp, const struct vext_wr *wrs, int n);

/*
 * Load the payload of the next request now, so that the next ud_qp_gather() accesses no memory of
 * the program, and builds one packet. Called for memory whose loads may wait for a file system,
 * because the caller of ud_qp_gather() may hold a lock of other queue pairs. If there is no memory
 * for the copy, the call has no effect.
 */
void ud_qp_stage(struct ud_qp *qp);
/*
 * Build the packets of the next requests, at most `max`, until the next packet must wait for its
 * peer's credit. Returns the number of packets, or -EAGAIN if the first packet must wait. A request
 * whose memory is not accessible completes with an error.
 */
int ud_qp_gather(struct ud_qp *qp, struct ud_flows *flows, uint64_t now, struct ud_packet *packets,
		 int max);
/* Complete the first n requests, whose packets are sent. */
void ud_qp_sent(struct ud_qp *qp, int n);
/* Handle a message that arrived with this header. `len` is the length of `payload`. */
void ud_qp_receive(struct ud_qp *qp, const struct ud_header *h, const struct ud_path *path,
		   const uint8_t *payload, size_t len);

#endif
