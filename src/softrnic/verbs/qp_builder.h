/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qp_builder.h -- a list of work requests that is built by one call after the other (ibv_wr_...()).
 *
 * A call that builds a request returns no error. The first error is recorded, and the call that
 * posts the list returns this error and posts nothing. The caller holds the builder's lock.
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
	size_t count, room; /* numbers of used and of allocated elements */
};

struct qp_builder {
	pthread_mutex_t lock; /* held from wr_start to wr_complete or wr_abort */
	/*
	 * IBV_QP_EX_WITH_* flags: the operations that were chosen when the queue pair was created
	 */
	uint64_t ops;
	struct ibv_qp_cap cap;
	int err;                   /* the first error */
	struct builder_array wrs;  /* struct vext_wr */
	struct builder_array sges; /* array of struct ibv_sge, for all requests in their order */
	/* inline data; for inline data the `addr` of an SGE is an offset in this array */
	struct builder_array bytes;
};

/* returns NULL if out of memory */
struct qp_builder *qp_builder_new(uint64_t ops, const struct ibv_qp_cap *cap);
void qp_builder_delete(struct qp_builder *b); /* accepts NULL */
void qp_builder_fail(struct qp_builder *b, int err);
/* Begin the next request: all members are zero except its number and flags. Returns NULL if an
 * error is recorded. */
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
