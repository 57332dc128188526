/* SPDX-License-Identifier: BSD-3-Clause */
/* ends.h -- two ends on 127.0.0.1 that use only softrnic.h, without librpma and without the
 * interposer. */
#ifndef UNIT_IO_ENDS_H
#define UNIT_IO_ENDS_H

#include "lib/unit.h"

#include "softrnic/softrnic.h"

#define END_BUF   4096
#define END_DEPTH 128 /* depth of each queue */

struct end {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_comp_channel *completions; /* channel of cq; cq is not armed */
	struct ibv_cq *cq;
	struct ibv_mr *mr; /* region of the member buf */
	char buf[END_BUF];
};

/* Make an id with a channel, but no queue pair. */
void end_open(struct end *e);
/* Release all objects of the end, the ids first. */
void end_close(struct end *e);
/* Address of the host of all ends: 127.0.0.1, unless a test sets another one. */
extern uint32_t end_host;
/* 1 (the default): each request of a queue pair made from now on gets a completion. 0: only
 * signalled requests do. */
extern int end_signals_all;
struct sockaddr_in end_loopback(uint16_t port);
/* Bind to a port that the system chooses, without listening. Returns the port. */
uint16_t end_bind(struct end *e);
/* Returns attributes for a queue pair that uses this end's completion queue. */
struct ibv_qp_init_attr end_qp_attr(struct end *e);
/* Like softrnic_create_qp_ex(); attr->cap gets the granted values. */
int end_create_qp(struct end *e, struct ibv_qp_init_attr *attr);
/* Resolve the address of this port, and make a queue pair. */
void end_aim(struct end *e, uint16_t port);
/* Take the next event, which must have this type. Returns the event's status. */
int end_expect(struct end *e, enum rdma_cm_event_type type);
/* Returns true if any event comes within the time. */
bool end_hears_within(struct end *e, int ms);

/* Take the listener's next request, and make a queue pair for it in `server`, which must be
 * empty. */
void end_take(struct end *listener, struct end *server);
/* A listener, a client, and the server's end of the client's connection. */
struct ends {
	struct end listener, client, server;
};
void ends_open(struct ends *e);
void ends_close(struct ends *e);
/* Complete the connection for which the client has already called connect. */
void ends_establish(struct ends *e);

int end_post_recv(struct end *e, uint64_t wr_id);
int end_post_send(struct end *e, uint64_t wr_id, uint32_t len);
/* Wait for the next completion. */
struct ibv_wc end_wait_wc(struct end *e);

#endif
