/* SPDX-License-Identifier: BSD-3-Clause */
/* peer_cfg.c -- the configuration of a peer, and its descriptor: one byte, 0 or 1. */
#include "rpma/peer_cfg.h"

#include "rpma/err.h"

enum { DESC_SIZE = 1 };

PEER_CFG_FIELDS(CFG_SETTER_AND_GETTER)
CFG_DELETE(peer_cfg)

int rpma_peer_cfg_new(struct rpma_peer_cfg **pcfg_ptr)
{
	struct rpma_peer_cfg *pcfg;

	if (!pcfg_ptr)
		return INVALID();
	pcfg = malloc(sizeof(*pcfg));
	if (!pcfg)
		return NOMEM();
	atomic_init(&pcfg->direct_write_to_pmem, false);
	*pcfg_ptr = pcfg;
	return 0;
}

int rpma_peer_cfg_get_descriptor(const struct rpma_peer_cfg *pcfg, void *desc)
{
	if (!pcfg || !desc)
		return INVALID();
	*(uint8_t *)desc = atomic_load(&pcfg->direct_write_to_pmem);
	return 0;
}

int rpma_peer_cfg_get_descriptor_size(const struct rpma_peer_cfg *pcfg, size_t *desc_size)
{
	if (!pcfg || !desc_size)
		return INVALID();
	*desc_size = DESC_SIZE;
	return 0;
}

int rpma_peer_cfg_from_descriptor(const void *desc, size_t desc_size,
				  struct rpma_peer_cfg **pcfg_ptr)
{
	struct rpma_peer_cfg *pcfg;
	bool direct;
	int ret;

	if (!desc || !pcfg_ptr)
		return INVALID();
	if (desc_size < DESC_SIZE) {
		LOG_ERROR("the peer configuration's descriptor has %zu bytes, less than %d",
			  desc_size, DESC_SIZE);
		return RPMA_E_INVAL;
	}
	ret = rpma_peer_cfg_new(&pcfg);
	if (ret)
		return ret;
	direct = *(const uint8_t *)desc != 0;
	atomic_init(&pcfg->direct_write_to_pmem, direct);
	LOG_INFO("direct write to pmem is %s by the peer", direct ? "supported" : "not supported");
	*pcfg_ptr = pcfg;
	return 0;
}
