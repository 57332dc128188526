/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * face.h -- the rdma_cm objects that programs see.
 *
 * An id is made before its address is known, and only the address tells which device serves it.
 * So a program holds a face, and behind it stands an id of the software RNIC or, once a real
 * device turns out to own the address, one of rdma-core. The id behind has its face as context.
 */
#ifndef INTERPOSER_FACE_H
#define INTERPOSER_FACE_H

#include <pthread.h>

#include "interposer/chan.h"
#include "interposer/words.h"

struct face {
	struct rdma_cm_id pub;
	const struct words *words;
	struct rdma_cm_id *inner;
	struct face_chan *own_chan; /* of a synchronous id: its calls wait for their event */
	atomic_bool ended;          /* DISCONNECTED was delivered */
	bool own_send_cq, own_recv_cq;
	bool hidden;            /* it exists for its queue pair */
	struct ibv_qp *soft_qp; /* `pub.qp` of the software RNIC; guarded by the list's lock */
	struct ibv_qp_init_attr *ep_attr; /* of a listening endpoint: for the QPs of its requests */
	struct face *next;                /* in the list of all */
};

struct face_event {
	struct rdma_cm_event pub;
	struct rdma_cm_event *inner;
	const struct words *words;
};

static inline struct face *face_of(struct rdma_cm_id *id)
{
	return (struct face *)id;
}

/* A face for an id that rdma_cm made: an inbound request that came out of this channel. NULL and
 * errno. */
struct face *face_new_passive(struct face *listener, struct face_chan *ch,
			      struct rdma_cm_id *inner);
void face_free(struct face *f);
/* Show what a call or an event changed behind the face. */
void face_sync(struct face *f);
/* If a real device owns this local or reaches this remote address, let it serve the id. */
void face_choose(struct face *f, struct sockaddr *local, struct sockaddr *remote);
/* The event that a synchronous id's last call left with it is not needed any more. */
void face_ack_event(struct rdma_cm_id *id);
/* A synchronous id waits for the event of the call that returned `ret`; others return it. */
int face_complete(struct face *f, int ret);
/* ibv_create_qp(): a queue pair on an id that no program sees. NULL and errno. */
struct ibv_qp *face_make_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
/* ibv_destroy_qp() of such a queue pair or an id's. */
void face_drop_qp(struct ibv_qp *qp);
/* Did it end with its id? Then nothing of it may be looked at. The answer is given once. */
bool face_qp_take_gone(const struct ibv_qp *qp);
/* The id has this queue pair from now on, or none. */
void face_set_qp(struct face *f, struct ibv_qp *qp);
/* The queues that rdma_create_qp() made because the program gave none. */
int face_make_cqs(struct face *f, struct ibv_qp_init_attr_ex *attr);
void face_drop_cqs(struct face *f);

#endif
