/* SPDX-License-Identifier: BSD-3-Clause */
/* conn.h -- a connection: an id with a separate channel, and queues. */
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
	/* the other end does not use the protocol of this end's device */
	_Atomic bool is_foreign;
	/* the peer declared that its writes go directly to persistent memory */
	_Atomic bool direct_write_to_pmem;
};

/*
 * Make a connection: move id to a new channel, and take over queues and pdata (the caller's structs
 * are zeroed). On failure the caller still owns id, queues and pdata.
 */
int conn_new(struct rpma_peer *peer, struct rdma_cm_id *id, struct queues *queues,
	     struct rpma_conn_private_data *pdata, struct rpma_conn **conn_ptr);

/*
 * For a connection without a shared channel: set the error text and return RPMA_E_NOT_SHARED_CHNL.
 */
int conn_not_shared(void);

/* Returns the verbs flag for the RPMA_F_COMPLETION_* flags. */
static inline unsigned int send_flags(int flags)
{
	return flags & (RPMA_F_COMPLETION_ALWAYS & ~RPMA_F_COMPLETION_ON_ERROR) ? IBV_SEND_SIGNALED
										: 0;
}

#endif
