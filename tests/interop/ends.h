/* SPDX-License-Identifier: BSD-3-Clause */
/* ends.h -- endpoints on loopback, for programs that use only libibverbs and librdmacm. */
#ifndef INTEROP_ENDS_H
#define INTEROP_ENDS_H

#include <pthread.h>
#include <rdma/rdma_cma.h>

/* A context of the software RNIC, as programs without rdma_cm open one. The caller closes it. */
struct ibv_context *end_open_device(void);
struct ibv_qp_init_attr end_qp_attr(void);
/*
 * flags: RAI_PASSIVE listens (port 0: any port); without it, connects to the port. On failure the
 * test fails.
 */
struct rdma_cm_id *end_make(int flags, __be16 port);
struct rdma_cm_id *end_make_with(int flags, __be16 port, struct ibv_qp_init_attr attr);

/* A connected client and server. */
struct ends {
	struct rdma_cm_id *listener, *server, *client;
	pthread_t thread;
};
/* A thread that connects the client of these ends. */
void *ends_connect(void *ends);
void ends_open(struct ends *d);
/* The same with queue pairs that make_qp creates, called once for each of the two ids. */
void ends_open_with(struct ends *d, void (*make_qp)(struct rdma_cm_id *id));
void ends_close(struct ends *d);

#endif
