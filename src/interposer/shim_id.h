/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shim_id.h -- the rdma_cm objects that programs see.
 *
 * An id is made before its address is known, and the device that serves it depends on the address.
 * So a program gets a shim id, which has an inner id. The inner id is one of the software RNIC, or
 * one of rdma-core after a real device turns out to own the address. The `context` of the inner id
 * points to the shim id.
 *
 * Files depend on each other in this order: ops, channel, shim_id, choose, event, qp, id, plain_qp,
 * and then device, verbs and ep. Public functions only check arguments and call other functions.
 * Only ep.c calls public functions of other files.
 */
#ifndef INTERPOSER_SHIM_ID_H
#define INTERPOSER_SHIM_ID_H

#include "interposer/channel.h"
#include "interposer/ops.h"

struct shim_id {
	struct rdma_cm_id pub;
	const struct ops *ops;
	struct rdma_cm_id *inner;
	/* channel of a synchronous id, whose calls wait for their events */
	struct shim_channel *own_channel;
	atomic_bool ended; /* the event DISCONNECTED was delivered */
	bool own_send_cq, own_recv_cq;
	/* the software RNIC's queue pair in `pub.qp`; guarded by the list's lock */
	struct ibv_qp *softrnic_qp;
	/* at a listening endpoint: attributes for the QPs of its requests */
	struct ibv_qp_init_attr *ep_attr;
	struct shim_id *next; /* next id in the list of all ids */
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

/* shim_id.c: make a shim id without an inner id. Returns NULL with errno on failure. */
struct shim_id *shim_id_new(struct shim_channel *ch, void *context, enum rdma_port_space ps);
/*
 * Make the shim id for an inbound request, which rdma_cm reported on this channel. Returns NULL
 * with errno on failure.
 */
struct shim_id *shim_id_new_passive(struct shim_id *listener, struct shim_channel *ch,
				    struct rdma_cm_id *inner);
void shim_id_free(struct shim_id *s);
/* Copy changed fields of the inner id to the shim id. */
void shim_id_sync(struct shim_id *s);
void shim_id_set_qp(struct shim_id *s, struct ibv_qp *qp);
/* The id's queue pair is about to be destroyed: shim_id_with_qp() no longer finds it, because
 * another queue pair may get its address. */
void shim_id_drop_qp(struct shim_id *s);
/* Returns the shim id to which this queue pair of the software RNIC belongs, or NULL. */
struct shim_id *shim_id_with_qp(const struct ibv_qp *qp);
/* plain_qp.c: make the interposer also handle queue pairs that are created through function
 * pointers of this context. Returns ctx; NULL if ctx is NULL. */
struct ibv_context *plain_qp_adopt(struct ibv_context *ctx);
/*
 * plain_qp.c: explain why a queue pair made by verbs alone cannot be modified. The text is printed
 * once, if the user can remove the cause. It is the only text that is printed without being
 * requested, because programs print no more than "Failed to modify QP".
 */
void plain_qp_explain(int err, const struct ibv_qp_attr *attr, int mask);
/* Remember the address of a queue pair that is about to end with its id. Returns 0, or -1 with
 * errno. */
int shim_id_remember_qp(const struct ibv_qp *qp);
/* Has the queue pair ended with its id, so that it must not be accessed? Returns true only once for
 * each remembered queue pair. */
bool shim_id_forget_qp(const struct ibv_qp *qp);

/* choose.c: let a real device serve the id if the device owns the local address or reaches the
 * remote address. */
void shim_id_choose(struct shim_id *s, struct sockaddr *local, struct sockaddr *remote);

/* event.c: these two functions return 0, or -1 with errno. */
int shim_event_get(struct shim_channel *ch, struct rdma_cm_event **event);
int shim_event_ack(struct rdma_cm_event *event);
/* Acknowledge the event of a synchronous id's last call, which the id no longer needs. */
void shim_id_ack_event(struct shim_id *s);
/*
 * Finish a call that returned `ret`. For a synchronous id, wait for the call's event; for others,
 * return `ret`.
 */
int shim_id_complete(struct shim_id *s, int ret);

/* qp.c: returns 0, or -1 with errno. */
int shim_qp_create(struct shim_id *s, struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
void shim_qp_destroy(struct shim_id *s);

/* id.c: destroys a shim id. Returns 0, or -1 with errno. */
int shim_id_destroy(struct shim_id *s);

#endif
