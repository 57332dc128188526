/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * script.h -- a provider that does what the test tells it and remembers what it was asked.
 *
 * It moves no bytes. Its objects are counted, and it insists on the rules of rdma_cm and verbs: an
 * event is acknowledged once, an id goes only after its QP and its events.
 */
#ifndef TEST_SCRIPT_H
#define TEST_SCRIPT_H

#include "librpma.h"
#include "provider/provider.h"
#include "rpma/peer.h"

extern const struct provider provider_script;

enum { SCRIPT_LIST_MAX = 8 };

struct script {
	/* What the test decides. */
	int read_sink_access;
	uint32_t caps;             /* of the peer: VEXT_CAP_* */
	bool caps_unknown;         /* as before the connection is established */
	uint64_t device_caps;      /* device_cap_flags_ex */
	int reg_mr_err_if_pmem;    /* errno for registrations with VEXT_ACCESS_FLUSH_PERSISTENT */
	int reg_mr_err_unless_odp; /* errno for registrations without IBV_ACCESS_ON_DEMAND */
	int advise_err, post_err, limits_err, cancel_err;
	int counters;        /* of a connection, up to 3; negative: no such thing */
	int post_taken;      /* so many of a list are posted nevertheless */
	int polled;          /* what poll_cq returns; so many completions are written */
	int get_event_errno; /* of an empty event channel */

	/* What was seen. */
	int live; /* objects not released, events not acknowledged */
	int rejects, accepts, connects, flushes, cancels;
	int posts; /* and advice */
	size_t owner_len;
	char owner[64];
	int access, connect_ms, liveness_ms, timeout_ms;
	uint8_t reject_len; /* of the private data */
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
	/* The last list, with its segments; of inline ones their bytes, which are gone later. */
	int listed;
	struct vext_wr list[SCRIPT_LIST_MAX];
	struct ibv_sge segs[SCRIPT_LIST_MAX][RPMA_SEND_SEGMENTS_MAX];
	uint64_t inlined[SCRIPT_LIST_MAX];
	struct rdma_cm_id *last_id;
	struct ibv_cq *announce; /* the queue that get_cq_event tells of; NULL: it fails */
	int cqe;
};
extern struct script script;

/* Everything as on a fresh device. */
void script_reset(void);
/* A peer on the scripted device, not counted. */
struct rpma_peer script_peer(const struct provider *prov);
/* What its connections shared goes with it. How many objects are left. */
int script_peer_end(struct rpma_peer *peer);
/* Queue an event for an id; of a CONNECT_REQUEST `id` is the listener and a new id is made. */
void script_event(struct rdma_cm_id *id, enum rdma_cm_event_type type, const void *pdata,
		  uint8_t len);

#endif
