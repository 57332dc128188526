/* SPDX-License-Identifier: BSD-3-Clause */
/* srq.c -- shared receive queues. */
#include "rpma/srq.h"

#include <stdlib.h>

#include "rpma/err.h"
#include "rpma/mr.h"
#include "rpma/peer.h"
#include "rpma/srq_cfg.h"

static int srq_open(struct rpma_srq *srq, struct rpma_peer *peer, const struct rpma_srq_cfg *cfg)
{
	uint32_t rcq_size = atomic_load(&cfg->rcq_size);
	struct ibv_srq_init_attr attr = {
		.attr = {.max_wr = atomic_load(&cfg->rq_size), .max_sge = 1}};

	srq->prov = peer->prov;
	srq->ibv = peer->prov->create_srq(peer->pd, &attr);
	if (!srq->ibv)
		return PROVIDER_FAILED(errno, "ibv_create_srq(max_wr=%u)", attr.attr.max_wr);
	return rcq_size ? cq_new(peer->prov, peer->pd->context, rcq_size, NULL, &srq->rcq) : 0;
}

int rpma_srq_new(struct rpma_peer *peer, struct rpma_srq_cfg *cfg, struct rpma_srq **srq_ptr)
{
	struct rpma_srq *srq;
	int ret;

	if (!peer || !srq_ptr)
		return INVALID();
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NOMEM();
	ret = srq_open(srq, peer, cfg ? cfg : &srq_cfg_default);
	if (ret)
		rpma_srq_delete(&srq);
	else
		*srq_ptr = srq;
	return ret;
}

int rpma_srq_delete(struct rpma_srq **srq_ptr)
{
	struct rpma_srq *srq;
	int ret, err;

	if (!srq_ptr)
		return INVALID();
	srq = *srq_ptr;
	if (!srq)
		return 0;
	ret = cq_delete(&srq->rcq);
	err = srq->ibv ? srq->prov->destroy_srq(srq->ibv) : 0;
	if (err)
		ret = first_error(ret, PROVIDER_FAILED(err, "%s", "ibv_destroy_srq()"));
	free(srq);
	*srq_ptr = NULL;
	return ret;
}

int rpma_srq_recv(struct rpma_srq *srq, struct rpma_mr_local *dst, size_t offset, size_t len,
		  const void *op_context)
{
	struct ibv_recv_wr wr;
	struct ibv_sge sge;
	int ret, err;

	if (!srq || (!dst && (offset || len)))
		return INVALID();
	ret = mr_recv_wr(&wr, &sge, dst, offset, len, op_context);
	if (ret)
		return ret;
	err = provider_post_srq_recv(srq->ibv, &wr);
	return err ? PROVIDER_FAILED(err, "ibv_post_srq_recv(length=%zu)", len) : 0;
}

int rpma_srq_get_rcq(const struct rpma_srq *srq, struct rpma_cq **rcq_ptr)
{
	if (!srq || !rcq_ptr)
		return INVALID();
	*rcq_ptr = srq->rcq;
	return 0;
}
