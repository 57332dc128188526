/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * script.h -- a provider whose results the test sets, and which stores its arguments.
 *
 * The provider moves no bytes. It counts its objects, and asserts the rules of rdma_cm and verbs:
 * an event is acknowledged once, and an id is destroyed after its QP and its events.
 */
#ifndef TEST_SCRIPT_H
#define TEST_SCRIPT_H

#include "librpma.h"
#include "provider/provider.h"
#include "rpma/peer.h"

extern const struct provider provider_script;

enum { SCRIPT_LIST_MAX = 8 };

struct script {
	/* Members that the test sets. */
	int read_sink_access;
	uint32_t caps; /* capabilities of the peer: VEXT_CAP_* */
	/* true: the connection is not established yet, so the capabilities are unknown */
	bool caps_unknown;
	uint64_t device_caps;      /* device_cap_flags_ex */
	int reg_mr_err_if_pmem;    /* errno of registrations with VEXT_ACCESS_FLUSH_PERSISTENT */
	int reg_mr_err_unless_odp; /* errno of registrations without IBV_ACCESS_ON_DEMAND */
	int advise_err, post_err, limits_err, cancel_err;
	/* number of counters of a connection, at most 3; negative: not supported */
	int counters;
	int post_taken;      /* how many requests of a list are posted although the post fails */
	int polled;          /* result of poll_cq, which is also the number of completions */
	int get_event_errno; /* errno if the event channel is empty */

	/* Members that the provider sets. */
	int live; /* live: objects that are not released, and events that are not acknowledged */
	int rejects, accepts, connects, flushes, cancels;
	int posts; /* number of posts; advice counts, too */
	size_t owner_len;
	char owner[64];
	int access, connect_ms, liveness_ms, timeout_ms;
	uint8_t reject_len; /* length of the private data of the rejection */
	struct ibv_srq_init_attr srq_attr;
	struct ibv_qp_init_attr_ex qp_attr;
	struct rdma_conn_param param;
	struct ibv_send_wr send;
	struct ibv_recv_wr recv;
	struct ibv_sge sge;
	struct {
		uint64_t wr_id, addr, len;
		unsigned int send_flags;
		uint32_t rkey;
		enum vext_flush_type type;
	} flush;
	struct {
		uint64_t wr_id, addr;
		unsigned int send_flags;
		uint32_t rkey;
		char bytes[8];
	} atomic;
	/*
	 * The last list of requests, with copies of the segments and of inline bytes.
	 */
	int listed;
	struct vext_wr list[SCRIPT_LIST_MAX];
	struct ibv_sge segs[SCRIPT_LIST_MAX][RPMA_SEND_SEGMENTS_MAX];
	uint64_t inlined[SCRIPT_LIST_MAX];
	struct rdma_cm_id *last_id;
	struct ibv_cq *announce; /* the queue that get_cq_event() returns; NULL: that call fails */
	int cqe;
};
extern struct script script;

/* Reset the provider to a fresh device. */
void script_reset(void);
/* Returns a peer on the scripted device. The peer itself is not counted. */
struct rpma_peer script_peer(const struct provider *prov);
/* Release the objects that connections of the peer shared. Returns the number of objects left. */
int script_peer_end(struct rpma_peer *peer);
/* Queue an event for an id. If the event is a CONNECT_REQUEST, `id` is the listener, and a new id
 * is made. */
void script_event(struct rdma_cm_id *id, enum rdma_cm_event_type type, const void *pdata,
		  uint8_t len);

#endif
