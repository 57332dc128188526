/* SPDX-License-Identifier: BSD-3-Clause */
#include "provider/verbs_native.h"

#include <errno.h>

enum { CHAIN_MAX = 16 };

/*
 * Operations that librpma posts by ibv_post_send(). A QP that is created for extended operations
 * must be created with these as well.
 */
enum {
	PLAIN_OPS = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
		    IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM
};

enum { ATOMIC_OPS = IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD };

/* The extended operations that the device supports. */
static uint64_t native_device_ops(struct ibv_context *ctx)
{
	struct ibv_device_attr_ex attr = {0};
	uint64_t ops = 0;

	if (ibv_query_device_ex(ctx, NULL, &attr))
		return 0;
	if (attr.orig_attr.atomic_cap != IBV_ATOMIC_NONE)
		ops |= ATOMIC_OPS;
#ifdef HAVE_WR_ATOMIC_WRITE
	if (attr.device_cap_flags_ex & VEXT_DEVICE_ATOMIC_WRITE)
		ops |= IBV_QP_EX_WITH_ATOMIC_WRITE;
#endif
#ifdef HAVE_WR_FLUSH
	if ((attr.device_cap_flags_ex & VEXT_DEVICE_FLUSH) == VEXT_DEVICE_FLUSH)
		ops |= IBV_QP_EX_WITH_FLUSH;
#endif
	return ops;
}

/*
 * Create a QP with extended operations if possible. If the kernel supports operations that this
 * machine's rdma-core does not, the QP is created without extended operations. A QP does not show
 * whether the device has atomic operations, so qp_context stores this; librpma does not use
 * qp_context otherwise.
 */
int verbs_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	uint64_t ops = native_device_ops(id->verbs);
	struct ibv_qp_init_attr_ex plain;

	attr->qp_context = (void *)(uintptr_t)(ops & ATOMIC_OPS ? VEXT_CAP_ATOMICS : 0);
	plain = *attr;
	if (!(ops & ~(uint64_t)ATOMIC_OPS))
		return rdma_create_qp_ex(id, attr);
	attr->comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr->send_ops_flags = ops | PLAIN_OPS;
	if (!rdma_create_qp_ex(id, attr))
		return 0;
	*attr = plain;
	return rdma_create_qp_ex(id, attr);
}

uint32_t verbs_qp_caps(struct ibv_qp *qp)
{
	const struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	uint32_t caps = VEXT_CAP_KNOWN | (uint32_t)(uintptr_t)qp->qp_context;

	/*
	 * Every RC QP of InfiniBand or RoCE accepts immediate data. iWARP (RFC 5040) has no such
	 * message.
	 */
	if (qp->context->device->transport_type == IBV_TRANSPORT_IB)
		caps |= VEXT_CAP_IMM;
#ifdef HAVE_WR_ATOMIC_WRITE
	if (ex && ex->wr_atomic_write)
		caps |= VEXT_CAP_ATOMIC_WRITE;
#endif
#ifdef HAVE_WR_FLUSH
	if (ex && ex->wr_flush)
		caps |= VEXT_CAP_FLUSH;
#endif
	return caps;
}

/* Of the operations beyond verbs, rdma-core has calls only for Flush and Atomic Write. */
static bool native_can_post(uint32_t caps, enum vext_op op)
{
	return op == VEXT_OP_VERBS || (op == VEXT_OP_FLUSH && caps & VEXT_CAP_FLUSH) ||
	       (op == VEXT_OP_ATOMIC_WRITE && caps & VEXT_CAP_ATOMIC_WRITE);
}

/*
 * Build one work request. Called between wr_start and wr_complete. The length of a flush has 32
 * bits, here and on the wire, and drivers truncate greater values. So a flush of more bytes is
 * turned into a flush of the whole region.
 */
static void native_build(struct ibv_qp_ex *ex, const struct vext_wr *w)
{
	ex->wr_id = w->wr.wr_id;
	ex->wr_flags = w->wr.send_flags;
#ifdef HAVE_WR_FLUSH
	if (w->op == VEXT_OP_FLUSH)
		ibv_wr_flush(ex, w->wr.wr.rdma.rkey, w->wr.wr.rdma.remote_addr, w->len,
			     w->type == VEXT_FLUSH_VISIBLE ? IBV_FLUSH_GLOBAL
							   : IBV_FLUSH_PERSISTENT,
			     w->len > UINT32_MAX ? IBV_FLUSH_MR : IBV_FLUSH_RANGE);
#endif
#ifdef HAVE_WR_ATOMIC_WRITE
	if (w->op == VEXT_OP_ATOMIC_WRITE)
		ibv_wr_atomic_write(ex, w->wr.wr.rdma.rkey, w->wr.wr.rdma.remote_addr, w->bytes);
#endif
}

/* Post all requests or none. Returns 0 or an errno value. */
static int native_post(struct ibv_qp *qp, const struct vext_wr *wrs, int n, int *posted)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	int err;

	ibv_wr_start(ex);
	for (int i = 0; i < n; i++)
		native_build(ex, &wrs[i]);
	err = provider_errno(ibv_wr_complete(ex));
	if (!err)
		*posted += n;
	return err;
}

/*
 * Post the requests as one chain, with one doorbell. The result of libsiw needs care. If its queue
 * is full, it sets *bad to the request that did not fit, but returns 0 if the earlier requests were
 * started. If all requests are queued but cannot be started, it leaves *bad unchanged.
 */
static int native_post_chain(struct ibv_qp *qp, const struct vext_wr *wrs, int n, int *posted)
{
	struct ibv_send_wr chain[CHAIN_MAX], *bad = chain;
	int err;

	for (int i = 0; i < n; i++) {
		chain[i] = wrs[i].wr;
		chain[i].next = i + 1 < n ? &chain[i + 1] : NULL;
	}
	err = provider_errno(ibv_post_send(qp, chain, &bad));
	if (!err && bad && bad != chain)
		err = ENOMEM;
	*posted += err && bad ? (int)(bad - chain) : n;
	return err;
}

/* Returns how many requests at the start of the list use the same interface, at most CHAIN_MAX. */
static int native_run_length(const struct vext_wr *wrs, int n)
{
	int len = 1;

	while (len < n && len < CHAIN_MAX &&
	       (wrs[len].op == VEXT_OP_VERBS) == (wrs[0].op == VEXT_OP_VERBS))
		len++;
	return len;
}

int verbs_post_list(struct ibv_qp *qp, const struct vext_wr *wrs, int n, int *posted)
{
	uint32_t caps = verbs_qp_caps(qp);
	int err = 0;

	*posted = 0;
	for (int i = 0; i < n; i++)
		if (!native_can_post(caps, wrs[i].op))
			return EOPNOTSUPP;
	while (!err && *posted < n) {
		const struct vext_wr *run = wrs + *posted;
		int len = native_run_length(run, n - *posted);

		err = run->op == VEXT_OP_VERBS ? native_post_chain(qp, run, len, posted)
					       : native_post(qp, run, len, posted);
	}
	return err;
}
