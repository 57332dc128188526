/* SPDX-License-Identifier: BSD-3-Clause */
/* peer.c -- makes and deletes a peer. */
#include "rpma/peer.h"

#include <stdlib.h>

#include "rpma/err.h"
#include "rpma/flush.h"

static int peer_alloc_pd(const struct provider *prov, struct ibv_context *ctx, struct ibv_pd **pd)
{
	errno = 0;
	*pd = prov->alloc_pd(ctx);
	if (*pd)
		return 0;
	if (errno == ENOMEM)
		return err_set(RPMA_E_NOMEM, "ibv_alloc_pd() failed: out of memory");
	if (!errno)
		return err_set(RPMA_E_UNKNOWN, "ibv_alloc_pd() failed: no reason given");
	return PROVIDER_FAILED(errno, "%s", "ibv_alloc_pd()");
}

int rpma_peer_new(struct ibv_context *ibv_ctx, struct rpma_peer **peer_ptr)
{
	const struct provider *prov;
	struct rpma_peer *peer;
	struct ibv_pd *pd;
	struct abilities can;
	int ret;

	if (!ibv_ctx || !peer_ptr)
		return INVALID();
	prov = provider_of_context(ibv_ctx);
	ret = utils_query(prov, ibv_ctx, &can);
	if (ret)
		return ret;
	ret = peer_alloc_pd(prov, ibv_ctx, &pd);
	if (ret)
		return ret;
	peer = malloc(sizeof(*peer));
	if (!peer) {
		prov->dealloc_pd(pd);
		return NOMEM();
	}
	LOG_INFO("provider %s: %son-demand paging", prov->name, can.odp ? "" : "no ");
	*peer = (struct rpma_peer){.prov = prov, .pd = pd, .can = can};
	pthread_mutex_init(&peer->lock, NULL);
	*peer_ptr = peer;
	return 0;
}

int rpma_peer_delete(struct rpma_peer **peer_ptr)
{
	struct rpma_peer *peer;
	int err, ret;

	if (!peer_ptr)
		return INVALID();
	peer = *peer_ptr;
	if (!peer)
		return 0;
	ret = flush_sink_put(peer->flush_sink);
	err = peer->prov->dealloc_pd(peer->pd);
	if (err)
		ret = first_error(ret, PROVIDER_FAILED(err, "%s", "ibv_dealloc_pd()"));
	pthread_mutex_destroy(&peer->lock);
	free(peer);
	*peer_ptr = NULL;
	return ret;
}
