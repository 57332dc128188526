/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qp_builder.h -- a list of work requests that calls build one after the other.
 *
 * A call that builds a request returns no error. The first error is recorded, and the call that
 * posts the list returns it; then no request is posted. The caller has the builder's lock.
 */
#ifndef VERBS_QP_BUILDER_H
#define VERBS_QP_BUILDER_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "verbs_ext/verbs_ext.h"

/* An array that grows. */
struct builder_array {
	void *data;
	size_t count, room; /* in elements */
};

struct qp_builder {
	pthread_mutex_t lock; /* from wr_start to wr_complete or wr_abort */
	uint64_t ops; /* IBV_QP_EX_WITH_*: the operations chosen at the queue pair's creation */
	struct ibv_qp_cap cap;
	int err;                    /* the first error */
	struct builder_array wrs;   /* struct vext_wr */
	struct builder_array sges;  /* struct ibv_sge, of all requests in their order */
	struct builder_array bytes; /* inline data; `addr` of an inline entry is an offset here */
};

struct qp_builder *qp_builder_new(uint64_t ops, const struct ibv_qp_cap *cap); /* NULL: no memory */
void qp_builder_delete(struct qp_builder *b);                                  /* NULL is allowed */
void qp_builder_fail(struct qp_builder *b, int err);
/* Begin the next request: all zeros except its number and flags. NULL: an error is recorded. */
struct vext_wr *qp_builder_next(struct qp_builder *b, uint64_t op, uint64_t wr_id, unsigned flags);
/* Set the payload of the last request. Inline data are copied. */
void qp_builder_entries(struct qp_builder *b, size_t n, const struct ibv_sge *list);
void qp_builder_inline(struct qp_builder *b, size_t n, const struct ibv_data_buf *bufs);
/* Set the destination of the last request. */
void qp_builder_address(struct qp_builder *b, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey);
/* Post the list and empty it. Returns 0 or an errno value. */
int qp_builder_post(struct qp_builder *b, struct ibv_qp *qp);
void qp_builder_forget(struct qp_builder *b);

#endif
