/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qp_builder.h -- a list of work requests that calls build one after the other.
 *
 * A call that builds reports nothing, so the first error is recorded, and returned when the list is
 * posted. Then nothing of it is posted. The caller has the builder's lock.
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
	uint64_t ops;         /* IBV_QP_EX_WITH_*: that the queue pair was made for */
	struct ibv_qp_cap cap;
	int err;                    /* the first */
	struct builder_array wrs;   /* struct vext_wr */
	struct builder_array sges;  /* struct ibv_sge, of all requests in their order */
	struct builder_array bytes; /* inline data; `addr` of such an entry is its place here */
};

struct qp_builder *qp_builder_new(uint64_t ops, const struct ibv_qp_cap *cap); /* NULL: no memory */
void qp_builder_delete(struct qp_builder *b);                                  /* or of NULL */
void qp_builder_fail(struct qp_builder *b, int err);
/* The next request, zeroed but for its number and flags; NULL: an error is recorded. */
struct vext_wr *qp_builder_next(struct qp_builder *b, uint64_t op, uint64_t wr_id, unsigned flags);
/* The payload of the last request, which has none yet. Inline data are copied. */
void qp_builder_entries(struct qp_builder *b, size_t n, const struct ibv_sge *list);
void qp_builder_inline(struct qp_builder *b, size_t n, const struct ibv_data_buf *bufs);
/* Where the last request goes. */
void qp_builder_address(struct qp_builder *b, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey);
/* Post what was built. 0 or an errno value. The list is empty afterwards. */
int qp_builder_post(struct qp_builder *b, struct ibv_qp *qp);
void qp_builder_forget(struct qp_builder *b);

#endif
