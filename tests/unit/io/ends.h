/* SPDX-License-Identifier: BSD-3-Clause */
/* ends.h -- two ends on 127.0.0.1 by softrnic.h alone, without librpma and the interposer. */
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
	struct ibv_comp_channel *completions; /* channel of cq, which is not armed */
	struct ibv_cq *cq;
	struct ibv_mr *mr; /* region of buf */
	char buf[END_BUF];
};

/* Make an id on a channel of its own, nothing else. */
void end_open(struct end *e);
/* Release everything that the end has, the ids first. */
void end_close(struct end *e);
/* The host of all ends: 127.0.0.1 unless a test sets another address. */
extern uint32_t end_host;
/* Does each request of a queue pair made from now on complete with a completion? 1 unless a test
 * sets 0. */
extern int end_signals_all;
struct sockaddr_in end_loopback(uint16_t port);
/* Bind at a port that the system chooses, without listening. Returns the port. */
uint16_t end_bind(struct end *e);
/* Return attributes for a queue pair on this end's queue. */
struct ibv_qp_init_attr end_qp_attr(struct end *e);
/* Like softrnic_create_qp_ex(); attr->cap gets the granted values. */
int end_create_qp(struct end *e, struct ibv_qp_init_attr *attr);
/* Resolve the address and make a queue pair. */
void end_aim(struct end *e, uint16_t port);
/* Wait for an event, which must have this type. Returns the event's status. */
int end_expect(struct end *e, enum rdma_cm_event_type type);
/* Does any event come within the time? */
bool end_hears_within(struct end *e, int ms);

/* Take the listener's next request, and make a queue pair for it; `server` is empty before. */
void end_take(struct end *listener, struct end *server);
/* A listener, a client, and the server's end of the client's connection. */
struct ends {
	struct end listener, client, server;
};
void ends_open(struct ends *e);
void ends_close(struct ends *e);
void ends_establish(struct ends *e); /* the client has already called connect */

int end_post_recv(struct end *e, uint64_t wr_id);
int end_post_send(struct end *e, uint64_t wr_id, uint32_t len);
/* Wait for the next completion. */
struct ibv_wc end_wait_wc(struct end *e);

#endif
