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

/* A connection's entry in the list of connections that a CQ drives. */
struct vcq_conn {
	struct list link;
	struct conn *conn;
};

/* A port's entry in the list of ports whose datagrams a CQ receives. */
struct vcq_port {
	struct list link;
	struct ud_port *port;
};

struct vpd {
	struct ibv_pd ibv;
	struct vpd *base;          /* itself; of a parent domain, the domain that it refers to */
	struct vtd *td;            /* set for a parent domain only; may be NULL */
	atomic_uint users;         /* MRs, SRQs, QPs and parent domains on it */
	struct stall_count *stall; /* of the domain's memory that can stall */
};

/* A thread domain: a hint of the program, which this device ignores. */
struct vtd {
	struct ibv_td ibv;
	atomic_uint users; /* parent domains */
};

/*
 * The underlying domain: an object made on a parent domain belongs to the domain that it refers to.
 */
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

/* A poll of an empty queue, and a wait for an event, each drive at most this many connections. */
#define VCQ_CONNS POLICY_CONNS

struct vcq {
	struct cq cq;
	struct list on_channel;
	struct evq_node node; /* completion events, in the channel's queue */
	unsigned generation;
	atomic_uint users;      /* QPs on it */
	atomic_uint delivered;  /* events handed out; guarded by ibv.mutex for waiting */
	struct lock conns_lock; /* a poller that holds a connection's lock never waits for it */
	struct list conns;      /* vcq_conn: connections that a poll of the empty queue drives */
	struct list ports;      /* vcq_port: ports that a poll of the empty queue drives */
	atomic_uint waiting;    /* connections in `conns` with deferred requests */
	unsigned num_conns;     /* in `conns` */
	atomic_uint polls;      /* polls of the empty queue since it was armed */
	uint64_t polls_at;      /* time of the last count; guarded by conns_lock */
	atomic_uint left;       /* polls that left a connection to another thread */
	/* Members of an extended queue (cq_ex.c). */
	pthread_mutex_t polling; /* from a start_poll that succeeds to its end_poll */
	bool one_thread;         /* the program promises one thread: `polling` is not taken */
	struct ibv_wc current;   /* the completion that the program reads; guarded by `polling` */
	uint64_t current_at_ns;
};

struct vsrq {
	struct srq srq;
	unsigned generation;
	atomic_uint users; /* QPs on it */
};

/* Returns NULL and sets errno if the table cannot be made. */
struct mr_table *device_mrs(void);
/* To be called before the first descriptor or lock that a forked child must not share exists.
 * Returns 0 or -errno. */
int fork_hook(void);
void device_atfork_prepare(void);
void device_atfork_parent(void);
void device_atfork_child(void);

/* The data path, called through ibv_context.ops. */
int verbs_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int verbs_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int verbs_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
void verbs_look_at_sends(struct ibv_qp *qp); /* conn_look_at_sends() */
int verbs_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int verbs_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* As ibv_create_cq(): returns NULL and sets errno on failure. */
struct vcq *vcq_new(struct ibv_context *context, uint32_t cqe, void *cq_context,
		    struct ibv_comp_channel *channel, uint32_t comp_vector);
/* As verbs_poll_cq() for one completion of a queue with a clock; *at_ns is the time of the
 * completion. */
int vcq_poll_stamped(struct vcq *cq, struct ibv_wc *wc, uint64_t *at_ns);
/*
 * Set the calls that inline functions of verbs.h make through a context; device.c sets the others.
 */
void vctx_fill(struct verbs_context *vctx);

/* A connection's QP uses the queue: a poll of the empty queue drives the connection. */
void vcq_attach(struct vcq *cq, struct vcq_conn *place, struct conn *conn);
void vcq_detach(struct vcq *cq, struct vcq_conn *place);
/* A queue pair of datagrams uses the queue: a poll of the empty queue receives from its port. */
void vcq_attach_port(struct vcq *cq, struct vcq_port *place);
void vcq_detach_port(struct vcq *cq, struct vcq_port *place);
/* Wait for the channel's next event, and drive its connections meanwhile. Returns 0, or -1 and sets
 * errno, as evq_pop() and evq_pop_until(). */
int channel_wait(struct vchannel *ch, struct vcq **cq);
int channel_wait_until(struct vchannel *ch, uint64_t deadline, struct vcq **cq);
/* Every connection releases a killed region. Returns after the last reference is gone. */
void conns_detach_mr(struct mr *mr);
void conns_detach_binding(struct mr *binding); /* as above, for a binding of a window (rnic/mw.h) */

#endif
