/* SPDX-License-Identifier: BSD-3-Clause */
/* device.h -- the one device of this process and the verbs objects on it. */
#ifndef VERBS_DEVICE_H
#define VERBS_DEVICE_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>

#include "softrnic/io/stall.h"
#include "softrnic/rnic/cq.h"
#include "softrnic/rnic/mr.h"
#include "softrnic/rnic/srq.h"
#include "softrnic/verbs/evq.h"
#include "softrnic/io/policy.h"

struct conn;
struct ud_port;

/* A place in the list of connections that a CQ drives. */
struct vcq_conn {
	struct list link;
	struct conn *conn;
};

/* Likewise of ports whose datagrams it receives. */
struct vcq_port {
	struct list link;
	struct ud_port *port;
};

struct vpd {
	struct ibv_pd ibv;
	struct vpd *base;          /* itself; of a parent domain the one that it refers to */
	struct vtd *td;            /* a parent domain's; or NULL */
	atomic_uint users;         /* MRs, SRQs, QPs and parent domains on it */
	struct stall_count *stall; /* of the memory on it that can stall */
};

/* A thread domain: a promise of the program that this device has no use for. */
struct vtd {
	struct ibv_td ibv;
	atomic_uint users; /* parent domains */
};

/* The domain itself: what is made on a parent domain is made on the one that it refers to. */
static inline struct vpd *vpd_of(struct ibv_pd *ibv)
{
	return container_of(ibv, struct vpd, ibv)->base;
}

struct vchannel {
	struct ibv_comp_channel ibv;
	struct evq q;
	atomic_uint users;        /* CQs on it */
	pthread_mutex_t cqs_lock; /* outer to a CQ's conns_lock */
	struct list cqs;
};

/* A poll of an empty queue, and a wait for an event, drive at most so many connections. */
#define VCQ_CONNS POLICY_CONNS

struct vcq {
	struct cq cq;
	struct list on_channel;
	struct evq_node node; /* completion events, in the channel's queue */
	unsigned generation;
	atomic_uint users;      /* QPs on it */
	atomic_uint delivered;  /* events handed out; guarded by ibv.mutex for waiting */
	struct lock conns_lock; /* never waited for while a connection's lock is held by a poller */
	struct list conns;      /* vcq_conn: what polling an empty queue drives */
	struct list ports;      /* vcq_port: likewise */
	atomic_uint waiting;    /* connections in `conns` with something that waits to be sent */
	unsigned num_conns;     /* in the list */
	atomic_uint polls;      /* of the empty queue, since it was armed */
	uint64_t polls_at;      /* when they were counted last; with conns_lock */
	atomic_uint left;       /* polls that left a connection to another thread */
	/* An extended queue's (cq_ex.c). */
	pthread_mutex_t polling; /* from a start_poll that succeeds to its end_poll */
	bool one_thread;         /* the program promises it: `polling` is not taken */
	struct ibv_wc current;   /* what the program reads; with `polling` */
	uint64_t current_at_ns;
};

struct vsrq {
	struct srq srq;
	unsigned generation;
	atomic_uint users; /* QPs on it */
};

/* NULL and errno when it cannot be made. */
struct mr_table *device_mrs(void);
/* Before the first descriptor or lock that a forked child must not share. 0 or -errno. */
int fork_hook(void);
void device_atfork_prepare(void);
void device_atfork_parent(void);
void device_atfork_child(void);

/* The data path, called through ibv_context.ops. */
int verbs_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int verbs_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int verbs_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int verbs_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int verbs_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* As ibv_create_cq(): NULL and errno. */
struct vcq *vcq_new(struct ibv_context *context, uint32_t cqe, void *cq_context,
		    struct ibv_comp_channel *channel, uint32_t comp_vector);
/* As verbs_poll_cq() for one completion of a queue with `now`, and when it was added. */
int vcq_poll_stamped(struct vcq *cq, struct ibv_wc *wc, uint64_t *at_ns);
/* The calls that the header's inline functions make through a context, besides those that device.c
 * sets. */
void vctx_fill(struct verbs_context *vctx);

/* A connection's QP uses the queue: polling it empty drives the connection. */
void vcq_attach(struct vcq *cq, struct vcq_conn *place, struct conn *conn);
void vcq_detach(struct vcq *cq, struct vcq_conn *place);
/* A queue pair of datagrams uses the queue. */
void vcq_attach_port(struct vcq *cq, struct vcq_port *place);
void vcq_detach_port(struct vcq *cq, struct vcq_port *place);
/* The next event of the channel, waited for; its connections are driven meanwhile. 0, or -1 and
 * errno: as evq_pop() and evq_pop_until(). */
int channel_wait(struct vchannel *ch, struct vcq **cq);
int channel_wait_until(struct vchannel *ch, uint64_t deadline, struct vcq **cq);
/* Every connection lets go of a killed region; returns when nothing holds it any more. */
void conns_detach_mr(struct mr *mr);
void conns_detach_binding(struct mr *binding); /* the same for a binding of a window (rnic/mw.h) */

#endif
