/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shim_id.h -- the rdma_cm objects that programs see.
 *
 * An id is made before its address is known, and the device that serves it depends on the address.
 * So a program holds a shim id, which has an inner id: one of the software RNIC or, once a real
 * device turns out to own the address, one of rdma-core. The inner id has its shim id as context.
 *
 * Files depend on each other in this order: ops, channel, shim_id, choose, event, qp, id, plain_qp,
 * and then device, verbs and ep. The public functions of each are thin. Only ep calls public
 * functions of other files.
 */
#ifndef INTERPOSER_SHIM_ID_H
#define INTERPOSER_SHIM_ID_H

#include <pthread.h>

#include "interposer/channel.h"
#include "interposer/ops.h"

struct shim_id {
	struct rdma_cm_id pub;
	const struct ops *ops;
	struct rdma_cm_id *inner;
	/* of a synchronous id, whose calls wait for their events */
	struct shim_channel *own_channel;
	atomic_bool ended; /* DISCONNECTED was delivered */
	bool own_send_cq, own_recv_cq;
	struct ibv_qp *softrnic_qp; /* `pub.qp` of the software RNIC; guarded by the list's lock */
	/* of a listening endpoint: attributes for the QPs of its requests */
	struct ibv_qp_init_attr *ep_attr;
	struct shim_id *next; /* next in the list of all ids */
};

struct shim_event {
	struct rdma_cm_event pub;
	struct rdma_cm_event *inner;
	const struct ops *ops;
};

static inline struct shim_id *shim_id_of(struct rdma_cm_id *id)
{
	return (struct shim_id *)id;
}

/* shim_id.c: make a shim id without an inner id. NULL and errno on failure. */
struct shim_id *shim_id_new(struct shim_channel *ch, void *context, enum rdma_port_space ps);
/*
 * Make the shim id of an inbound request, which rdma_cm reported on this channel. Returns NULL and
 * errno on failure.
 */
struct shim_id *shim_id_new_passive(struct shim_id *listener, struct shim_channel *ch,
				    struct rdma_cm_id *inner);
void shim_id_free(struct shim_id *s);
/* Copy changed fields of the inner id to the shim id. */
void shim_id_sync(struct shim_id *s);
/* Set the queue pair of the id; NULL: no queue pair. */
void shim_id_set_qp(struct shim_id *s, struct ibv_qp *qp);
/* The shim id of this queue pair of the software RNIC, or NULL. */
struct shim_id *shim_id_with_qp(const struct ibv_qp *qp);
/* plain_qp.c: make the interposer handle queue pairs that are created through this context, too.
 * NULL: there is no context. */
struct ibv_context *plain_qp_adopt(struct ibv_context *ctx);
/*
 * plain_qp.c: explain why a queue pair made by verbs alone cannot be modified. Prints the reason
 * once, if users can remove it. This is the only unrequested text: programs print no more than
 * "Failed to modify QP".
 */
void plain_qp_explain(int err, const struct ibv_qp_attr *attr, int mask);
/* The queue pair is about to end with its id: remember its address. Returns 0, or -1 and errno. */
int shim_id_remember_qp(const struct ibv_qp *qp);
/* Did the queue pair end with its id, so that it must not be accessed? Returns true once for each
 * queue pair. */
bool shim_id_forget_qp(const struct ibv_qp *qp);

/* choose.c: let a real device serve the id if it owns the local address or reaches the remote
 * address. */
void shim_id_choose(struct shim_id *s, struct sockaddr *local, struct sockaddr *remote);

/* event.c: 0, or -1 and errno. */
int shim_event_get(struct shim_channel *ch, struct rdma_cm_event **event);
int shim_event_ack(struct rdma_cm_event *event);
/* Acknowledge the event of a synchronous id's last call, which is no longer needed. */
void shim_id_ack_event(struct shim_id *s);
/*
 * Finish a call that returned `ret`. For a synchronous id, wait for the call's event; else return
 * `ret`.
 */
int shim_id_complete(struct shim_id *s, int ret);

/* qp.c: 0, or -1 and errno. */
int shim_qp_create(struct shim_id *s, struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
void shim_qp_destroy(struct shim_id *s);

/* id.c: 0, or -1 and errno. */
int shim_id_destroy(struct shim_id *s);

#endif
