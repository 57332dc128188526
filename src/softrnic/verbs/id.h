/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * id.h -- rdma_cm ids, their event channels and their events.
 *
 * An id's lock may be taken inside its connection's lock. The event queues' locks may be taken
 * inside an id's lock.
 */
#ifndef VERBS_ID_H
#define VERBS_ID_H

#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>

#include "base/list.h"
#include "softrnic/io/conn.h"
#include "softrnic/io/link.h"
#include "softrnic/verbs/device.h"
#include "softrnic/verbs/evq.h"
#include "softrnic/verbs/id_external.h"
#include "softrnic/verbs/qp_make.h"

struct listener;

struct chan {
	struct rdma_event_channel pub;
	struct evq q;
};

/* Number of events that a connection can have at the same time: its establishment or failure, and
 * its disconnect. */
#define ID_EVENTS 2

struct cmid {
	struct rdma_cm_id pub;
	pthread_mutex_t lock; /* guards the channel and the counts */
	pthread_cond_t acked_cv;
	struct list link; /* link in the list of all ids */
	unsigned generation;
	bool sync;             /* made without a channel, so each call waits for its event */
	bool passive;          /* the id was made for an inbound request */
	struct chan *own_chan; /* channel of a synchronous id */
	atomic_uint delivered; /* number of delivered events; guarded by the event queue's mutex */
	unsigned acked;
	/* RDMA_OPTION_ID_AFONLY; until the user sets the option, the system's default for IPv6
	 * sockets */
	enum link_families families;
	/* link that is bound, but not listening or connecting yet; NULL: the id is not bound */
	struct link *bound;
	struct conn *conn;       /* NULL until a QP or a connection needs it */
	struct qp_places places; /* entries of the connection in the lists of its QP's CQs */
	struct listener *listener;
	/* inbound requests that the user has neither accepted nor rejected yet */
	struct id_requests {
		struct list list;
		unsigned n, max;
	} requests;
	struct list request; /* link of this id in its listener's list of requests */
	struct cmid *parent; /* the listener; NULL: none, or the request was answered */
	struct id_limits {
		int connect_ms, liveness_ms;
	} limits;               /* values that the user passed to softrnic_set_limits() */
	bool announces_flushes; /* the user has called softrnic_announce_flushes() */
	bool has_ack_timeout;   /* the user has set RDMA_OPTION_ID_ACK_TIMEOUT */
	uint8_t ack_timeout;
	struct id_external external;
	struct conn_owner owner; /* owner that the user passed to softrnic_set_owner() */
	struct cmev *spare[ID_EVENTS];
};

struct cmev {
	struct rdma_cm_event pub;
	struct evq_node node;
	/* id whose counts of delivered and acknowledged events include this event */
	struct cmid *counted;
	uint8_t pdata[STREAM_PDATA_MAX];
};

static inline struct cmid *cmid_of(struct rdma_cm_id *id)
{
	return container_of(id, struct cmid, pub);
}

static inline struct chan *chan_of(struct rdma_event_channel *ch)
{
	return container_of(ch, struct chan, pub);
}

bool id_is_removed(const struct cmid *id);
/* Are the id's messages sent as datagrams, and not over its connection? */
static inline bool id_is_datagram(const struct cmid *id)
{
	return id->pub.ps == RDMA_PS_UDP;
}

/* Returns 0 if err is 0; otherwise sets errno to err and returns -1. */
int id_errno(int err);

/* Make an id for an inbound request, on the listener's channel and with this connection. Returns
 * NULL if out of memory. */
struct cmid *id_new_passive(struct cmid *listener, struct conn *conn);
/* Free an id that the user has never seen. */
void id_drop(struct cmid *id);
/* Make the id's connection, if it does not have one yet. Returns 0 or -errno. */
int id_need_conn(struct cmid *id);
/* Pass the user's settings to the connection, if there is one. Returns 0, or -EINVAL if the
 * connection has already started. */
int id_apply_settings(struct cmid *id);
/* Translate a connection's event into an event of rdma_cm. This is the conn_event_fn of initiators
 * and responders. */
void id_on_stream_event(void *owner, enum stream_event event, int status);

/* Reserve memory for all events that the connection can report, so that no event is lost because
 * memory is missing. Returns 0 or -ENOMEM. */
int id_reserve_events(struct cmid *id);
void id_free_reserve(struct cmid *id);
/* Queue an event for the user. `params` may be NULL. */
void id_post(struct cmid *id, enum rdma_cm_event_type type, int status,
	     const struct stream_params *params);
/* Queue the CONNECT_REQUEST event of a passive id. The listener counts the event. Returns 0 or
 * -ENOMEM. */
int id_post_request(struct cmid *listener, struct cmid *child, const struct stream_params *params);
/* Finish a call of an id. For an asynchronous id, queue the event and return 0. For a synchronous
 * id, return err. */
int id_result(struct cmid *id, enum rdma_cm_event_type type, int err);
/* For a synchronous id: wait for its next event, and keep the event in id->event. */
int id_wait(struct cmid *id);
/* Discard undelivered events, then wait until all delivered events are acknowledged. */
void id_quiesce(struct cmid *id);

/* id_addr.c: conversion between addresses of rdma_cm and of links. */
void id_set_addr(struct sockaddr_storage *ss, const struct link_addr *addr);
void id_set_local(struct cmid *id, const struct link_addr *local);

/* in id_listen.c: */
void id_stop_listening(struct cmid *id);
/* Remove a request from its listener's list. Called when the request is answered (accepted or
 * rejected) or has vanished. */
void id_request_done(struct cmid *child);
void id_requests_atfork_prepare(void);
void id_requests_atfork_release(void);

/* in id_qp.c: */
void id_destroy_qp(struct cmid *id);
/* Make a queue pair on the id's connection. `attr` contains the requested attributes, and receives
 * the granted ones. Returns 0 or an errno value. */
int id_make_qp(struct cmid *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr, uint64_t ops,
	       struct ibv_qp **out);
void id_end_qp(struct cmid *id, struct ibv_qp *ibv);

void ids_atfork_prepare(void);
void ids_atfork_release(void);
void ids_atfork_child(void);

#endif
