/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * id.h -- rdma_cm ids, their event channels and their events.
 *
 * An id's lock is inner to its connection's lock and outer to the event queues'.
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
#include "softrnic/verbs/qp_make.h"

struct listener;

struct chan {
	struct rdma_event_channel pub;
	struct evq q;
};

/* The events of one connection: its establishment or failure, and its end. */
#define ID_EVENTS 2

struct cmid {
	struct rdma_cm_id pub;
	pthread_mutex_t lock; /* guards channel and counts */
	pthread_cond_t acked_cv;
	struct list link; /* in the list of all ids */
	unsigned generation;
	bool sync;             /* made without a channel: calls wait for their event */
	bool passive;          /* made for an inbound request */
	struct chan *own_chan; /* a synchronous id's channel */
	atomic_uint delivered; /* guarded by the event queue's mutex */
	unsigned acked;
	/* RDMA_OPTION_ID_AFONLY; until the user sets it, the system's default for IPv6 sockets */
	enum link_families families;
	struct link *bound;      /* bound, but not listening or connecting yet; NULL: not bound */
	struct conn *conn;       /* NULL until a QP or a connection needs it */
	struct qp_places places; /* the connection's places in its QP's CQs */
	struct listener *listener;
	struct id_requests { /* inbound requests that the user has not accepted or rejected yet */
		struct list list;
		unsigned n, max;
	} requests;
	struct list request; /* the id's link in its listener's list of requests */
	struct cmid *parent; /* the listener; NULL: there is none, or the request was answered */
	struct id_limits {
		int connect_ms, liveness_ms;
	} limits;                /* as the user passed them to softrnic_set_limits() */
	bool announces_flushes;  /* softrnic_announce_flushes() */
	struct conn_owner owner; /* softrnic_set_owner() */
	struct cmev *spare[ID_EVENTS];
};

struct cmev {
	struct rdma_cm_event pub;
	struct evq_node node;
	struct cmid *counted; /* the id whose delivered and acked counts include this event */
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
/* Returns 0 if err is 0; otherwise sets errno to err and returns -1. */
int id_errno(int err);

/* An id for an inbound request: on the listener's channel, with its connection. NULL: no memory. */
struct cmid *id_new_passive(struct cmid *listener, struct conn *conn);
/* Free an id that no user has seen. */
void id_drop(struct cmid *id);
/* The connection of an id, made on first need. 0 or -errno. */
int id_need_conn(struct cmid *id);
/* Pass the user's settings to the connection, if there is one. Returns 0, or -EINVAL if it has
 * already started. */
int id_apply_settings(struct cmid *id);
/* Translate a connection's stream event into rdma_cm's; the conn_event_fn of both sides. */
void id_on_stream_event(void *owner, enum stream_event event, int status);

/* Reserve memory for all events that the connection can report, so that no such event is lost for
 * want of memory. Returns 0 or -ENOMEM. */
int id_reserve_events(struct cmid *id);
void id_free_reserve(struct cmid *id);
/* Queue an event for the user. params may be NULL. */
void id_post(struct cmid *id, enum rdma_cm_event_type type, int status,
	     const struct stream_params *params);
/* Queue a passive id's CONNECT_REQUEST, which counts among its listener's events. Returns 0 or
 * -ENOMEM. */
int id_post_request(struct cmid *listener, struct cmid *child, const struct stream_params *params);
/* For an asynchronous id, post the event and return 0. For a synchronous one, return err as the
 * result. */
int id_result(struct cmid *id, enum rdma_cm_event_type type, int err);
/* A synchronous id waits for its next event and keeps it in id->event. */
int id_wait(struct cmid *id);
/* Discard undelivered events, then wait until all delivered events are acknowledged. */
void id_quiesce(struct cmid *id);

/* id_addr.c: conversion between rdma_cm's addresses and those of links. */
void id_set_addr(struct sockaddr_storage *ss, const struct link_addr *addr);
void id_set_local(struct cmid *id, const struct link_addr *local);

/* id_listen.c */
void id_stop_listening(struct cmid *id);
/* The user has answered a request (accepted or rejected it), or the request vanished. */
void id_request_done(struct cmid *child);
void id_requests_atfork_prepare(void);
void id_requests_atfork_release(void);

/* id_qp.c */
void id_destroy_qp(struct cmid *id);

void ids_atfork_prepare(void);
void ids_atfork_release(void);
void ids_atfork_child(void);

#endif
