/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * id_external.h -- ids whose program makes the queue pair by itself (ibv_create_qp()), and moves it
 * with the attributes of rdma_init_qp_attr().
 *
 * Such a queue pair connects to its peer in the same way as a queue pair without rdma_cm. The queue
 * pair of an id for datagrams (RDMA_PS_UDP) is made by rdma_create_qp(), but does not use the id's
 * connection, either. The id's connection only carries the names of both queue pairs and the
 * programs' private data, and shows the disconnect. This connection has a separate queue pair,
 * which no program sees.
 */
#ifndef VERBS_ID_EXTERNAL_H
#define VERBS_ID_EXTERNAL_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>

#include "softrnic/proto/cm_qp.h"
#include "softrnic/stream/stream.h"
#include "softrnic/verbs/async.h"

struct cmid;

struct id_external {
	bool on;                 /* the program connects or accepts a queue pair of its own */
	bool has_peer;           /* `peer` was received */
	bool has_psn;            /* `psn` is chosen */
	uint32_t psn;            /* number of the first packet of this end */
	struct cm_qp peer;       /* the peer's queue pair */
	struct ibv_qp *qp;       /* the connection's own queue pair; NULL: there is none */
	struct async_stop quiet; /* while `qp` exists: its events are discarded */
};

/* Make the connection's own queue pair, and put the name of the program's queue pair, whose number
 * is `qpn`, before the private data. Returns 0 or an errno value. */
int id_external_begin(struct cmid *id, uint32_t qpn, struct stream_params *params);
/* Fill in the path to the peer, whose name was received. Returns 0 or an errno value. */
int id_external_path(const struct cmid *id, struct ibv_ah_attr *ah);
/* Remove the name of the peer's queue pair from the private data, and store it. Returns true if
 * there was one. */
bool id_external_take(struct cmid *id, struct stream_params *params);
/* Delete the connection's own queue pair. */
void id_external_end(struct cmid *id);

#endif
