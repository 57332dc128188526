/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cm_qp.h -- the name of a queue pair that is connected by rdma_cm, and whose data use another
 * connection than that of its id (doc/wire.md s17). In the request and in the reply the name
 * precedes the program's private data.
 */
#ifndef PROTO_CM_QP_H
#define PROTO_CM_QP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CM_QP_LEN     32
#define CM_QP_GID_LEN 16
#define CM_QP_MAX     0xffffffu /* greatest value of either number */

struct cm_qp {
	bool datagram; /* true: of type UD; false: of a connected type */
	uint32_t qpn;
	uint32_t psn; /* number of the first packet that the queue pair sends */
	uint8_t gid[CM_QP_GID_LEN];
};

/* Returns the length written, CM_QP_LEN, or -ENOSPC. */
int cm_qp_encode(void *buf, size_t size, const struct cm_qp *qp);
/* Returns CM_QP_LEN, or -EBADMSG if the private data do not begin with such a name. */
int cm_qp_decode(const void *buf, size_t len, struct cm_qp *qp);

#endif
