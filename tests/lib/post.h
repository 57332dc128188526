/* SPDX-License-Identifier: BSD-3-Clause */
/* post.h -- post one work request of a kind that verbs lacks. Each call returns 0 or an errno
 * value. */
#ifndef TESTLIB_POST_H
#define TESTLIB_POST_H

#include <string.h>

#include "softrnic/rnic/qp.h"

static inline struct vext_wr own_wr(enum vext_op op, uint64_t wr_id, unsigned send_flags,
				    uint32_t rkey, uint64_t raddr)
{
	struct vext_wr w = {.op = op, .wr = {.wr_id = wr_id, .send_flags = send_flags}};

	w.wr.wr.rdma.rkey = rkey;
	w.wr.wr.rdma.remote_addr = raddr;
	return w;
}

static inline int post_one_own(struct qp *qp, const struct vext_wr *w)
{
	int posted;

	return qp_post_list(qp, w, 1, &posted);
}

static inline int qp_flush(struct qp *qp, uint64_t wr_id, unsigned send_flags, uint32_t rkey,
			   uint64_t raddr, uint64_t len, enum vext_flush_type type)
{
	struct vext_wr w = own_wr(VEXT_OP_FLUSH, wr_id, send_flags, rkey, raddr);

	w.len = len;
	w.type = type;
	return post_one_own(qp, &w);
}

static inline int qp_flush_all(struct qp *qp, uint64_t wr_id, enum vext_flush_type type)
{
	struct vext_wr w = own_wr(VEXT_OP_FLUSH_ALL, wr_id, IBV_SEND_SIGNALED, 0, 0);

	w.type = type;
	return post_one_own(qp, &w);
}

static inline int qp_verify(struct qp *qp, uint64_t wr_id, uint32_t rkey, uint64_t raddr,
			    uint64_t len, uint32_t alg, struct vext_digest *digest)
{
	struct vext_wr w = own_wr(VEXT_OP_VERIFY, wr_id, IBV_SEND_SIGNALED, rkey, raddr);

	w.len = len;
	w.alg = alg;
	w.result = digest;
	return post_one_own(qp, &w);
}

static inline int qp_query_class(struct qp *qp, uint64_t wr_id, uint32_t rkey, uint64_t raddr,
				 uint64_t len, uint32_t *durability)
{
	struct vext_wr w = own_wr(VEXT_OP_QUERY, wr_id, IBV_SEND_SIGNALED, rkey, raddr);

	w.len = len;
	w.result = durability;
	return post_one_own(qp, &w);
}

static inline int qp_atomic_write(struct qp *qp, uint64_t wr_id, unsigned send_flags, uint32_t rkey,
				  uint64_t raddr, const void *bytes)
{
	struct vext_wr w = own_wr(VEXT_OP_ATOMIC_WRITE, wr_id, send_flags, rkey, raddr);

	memcpy(w.bytes, bytes, sizeof(w.bytes));
	return post_one_own(qp, &w);
}

#endif
