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

/* The entry for a connection in a CQ's list of connections that the CQ drives. */
struct vcq_conn {
	struct list link;
	struct conn *conn;
	unsigned armed_in; /* for conn_own_arm(); guarded by the CQ's conns_lock */
};

/* The entry for a port in a CQ's list of ports whose datagrams the CQ receives. */
struct vcq_port {
	struct list link;
	struct ud_port *port;
};

struct vpd {
	struct ibv_pd ibv;
	/* for a parent domain: the domain that it refers to; for other domains: itself */
	struct vpd *base;
	struct vtd *td;            /* thread domain of a parent domain; NULL: none */
	atomic_uint users;         /* number of MRs, SRQs, QPs and parent domains that use it */
	struct stall_count *stall; /* counts the domain's memory that can stall */
};

/* A thread domain: a hint of the program, which this device ignores. */
struct vtd {
	struct ibv_td ibv;
	atomic_uint users; /* number of parent domains that refer to this thread domain */
};

/*
 * Returns the protection domain itself. An object that is made on a parent domain belongs to the
 * domain that the parent domain refers to.
 */
static inline struct vpd *vpd_of(struct ibv_pd *ibv)
{
	return container_of(ibv, struct vpd, ibv)->base;
}

struct vchannel {
	struct ibv_comp_channel ibv;
	struct evq q;
	atomic_uint users;        /* number of CQs that use it */
	pthread_mutex_t cqs_lock; /* a CQ's conns_lock may be taken inside it */
	struct list cqs;
};

/* Limit of connections that a poll of an empty queue drives, or that a wait for an event drives. */
#define VCQ_CONNS POLICY_CONNS

struct vcq {
	struct cq cq;
	struct list on_channel;
	struct evq_node node; /* completion event of this CQ, in the channel's queue */
	unsigned generation;
	atomic_uint users;      /* number of QPs that use it */
	atomic_uint delivered;  /* number of delivered events; guarded by ibv.mutex for waiting */
	struct lock conns_lock; /* a thread that holds a connection's lock never waits for it */
	/* vcq_conn entries: the connections that a poll of the empty queue drives */
	struct list conns;
	/* vcq_port entries: the ports that a poll of the empty queue drives */
	struct list ports;
	atomic_uint waiting; /* number of connections in `conns` with deferred requests */
	unsigned num_conns;  /* number of connections in `conns` */
	atomic_uint polls;   /* number of polls of the empty queue since the queue was armed */
	uint64_t polls_at;   /* time at which `polls` was judged last; guarded by conns_lock */
	/* number of polls that found a connection in use by another thread */
	atomic_uint left;
	/* Members for an extended queue (cq_ex.c): */
	pthread_mutex_t polling; /* held from a successful start_poll to its end_poll */
	/* the program promises to use only one thread, so `polling` is not taken */
	bool one_thread;
	struct ibv_wc current; /* the completion that the program reads; guarded by `polling` */
	uint64_t current_at_ns;
};

struct vsrq {
	struct srq srq;
	unsigned generation;
	atomic_uint users; /* number of QPs that use it */
};

/* The STag table of the device. Returns NULL and sets errno if it cannot be made. */
struct mr_table *device_mrs(void);
/* Install the fork() handlers. Must be called before the first descriptor or lock exists that a
 * forked child must not share. Returns 0 or -errno. */
int fork_hook(void);
void device_atfork_prepare(void);
void device_atfork_parent(void);
void device_atfork_child(void);

/* The data path, called through ibv_context.ops. */
int verbs_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int verbs_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int verbs_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
void verbs_look_at_sends(struct ibv_qp *qp); /* calls conn_look_at_sends() */
int verbs_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int verbs_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* Make a completion queue, like ibv_create_cq(). Returns NULL and sets errno on failure. */
struct vcq *vcq_new(struct ibv_context *context, uint32_t cqe, void *cq_context,
		    struct ibv_comp_channel *channel, uint32_t comp_vector);
/* Poll for one completion of a queue with a clock, like verbs_poll_cq(). *at_ns is the time of the
 * completion. */
int vcq_poll_stamped(struct vcq *cq, struct ibv_wc *wc, uint64_t *at_ns);
/*
 * Set the calls that inline functions of verbs.h make through a context. device.c sets the other
 * calls.
 */
void vctx_fill(struct verbs_context *vctx);

/*
 * Called when the QP of a connection begins to use the CQ. From then on polls of the empty CQ drive
 * the connection, until vcq_detach().
 */
void vcq_attach(struct vcq *cq, struct vcq_conn *place, struct conn *conn);
void vcq_detach(struct vcq *cq, struct vcq_conn *place);
/* Called when a queue pair for datagrams begins to use the CQ. From then on polls of the empty CQ
 * receive from the queue pair's port, until vcq_detach_port(). */
void vcq_attach_port(struct vcq *cq, struct vcq_port *place);
void vcq_detach_port(struct vcq *cq, struct vcq_port *place);
/* Wait for the channel's next event, and process bytes of its connections meanwhile. Returns 0, or
 * -1 and sets errno; see evq_pop(). */
int channel_wait(struct ibv_comp_channel *channel, uint64_t deadline, bool interruptible,
		 struct ibv_cq **cq, void **cq_context);
/* Make every connection release a killed region. Returns after the last hold is released. */
void conns_detach_mr(struct mr *mr);
/* does the same as conns_detach_mr() for the binding of a window (rnic/mw.h) */
void conns_detach_binding(struct mr *binding);

#endif
