/* SPDX-License-Identifier: BSD-3-Clause */
/* ends.h -- endpoints on loopback, for programs that use only libibverbs and librdmacm. */
#ifndef INTEROP_ENDS_H
#define INTEROP_ENDS_H

#include <pthread.h>
#include <rdma/rdma_cma.h>

/* Open a context of the software RNIC without rdma_cm. The caller closes the context. */
struct ibv_context *end_open_device(void);
struct ibv_qp_init_attr end_qp_attr(void);
/*
 * With RAI_PASSIVE in flags, listen (port 0: on any port); otherwise connect to the port. A failure
 * fails the test.
 */
struct rdma_cm_id *end_make(int flags, __be16 port);
struct rdma_cm_id *end_make_with(int flags, __be16 port, struct ibv_qp_init_attr attr);

/* A connected client and server, and their listener. */
struct ends {
	struct rdma_cm_id *listener, *server, *client;
	pthread_t thread;
};
/* Thread function that connects the client of these ends. */
void *ends_connect(void *ends);
void ends_open(struct ends *d);
/* Like ends_open(), with queue pairs that make_qp creates: a call for each of the two ids. */
void ends_open_with(struct ends *d, void (*make_qp)(struct rdma_cm_id *id));
void ends_close(struct ends *d);

#endif
