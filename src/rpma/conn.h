/* SPDX-License-Identifier: BSD-3-Clause */
/* conn.h -- a connection: an id with its own channel, and queues. */
#ifndef RPMA_CONN_H
#define RPMA_CONN_H

#include "rpma/flush.h"
#include "rpma/queues.h"

struct rpma_conn {
	const struct provider *prov;
	struct rdma_cm_id *id;
	struct rdma_event_channel *evch;
	struct queues queues;
	struct flush_sink *flush_sink;
	struct rpma_conn_private_data pdata;
	_Atomic(enum rpma_rejection) rejection;
	_Atomic bool is_foreign;           /* the other end does not use the device's protocol */
	_Atomic bool direct_write_to_pmem; /* the peer's declaration */
};

/*
 * Move id to a new channel, and take over queues and pdata (the sources are zeroed). On failure the
 * caller still owns everything.
 */
int conn_new(struct rpma_peer *peer, struct rdma_cm_id *id, struct queues *queues,
	     struct rpma_conn_private_data *pdata, struct rpma_conn **conn_ptr);

/* Set the error text of a connection without a shared channel, and return
 * RPMA_E_NOT_SHARED_CHNL. */
int conn_not_shared(void);

/* The verbs flag for RPMA_F_COMPLETION_*. */
static inline unsigned int send_flags(int flags)
{
	return flags & (RPMA_F_COMPLETION_ALWAYS & ~RPMA_F_COMPLETION_ON_ERROR) ? IBV_SEND_SIGNALED
										: 0;
}

#endif
