/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ah.c -- address handles. Each holds an address of this host and a peer's address.
 *
 * An iWARP device has no address handles. An address handle must contain a GID, because on Ethernet
 * a LID alone does not name a peer.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softrnic/io/config.h"
#include "softrnic/rnic/ud_qp.h"
#include "softrnic/softrnic.h"
#include "softrnic/verbs/device.h"
#include "softrnic/verbs/gid.h"

#define AH_HOP_LIMIT 64 /* the hop limit if the program does not set one */

/* Find the path for messages with this address handle. Returns 0 or an errno value. */
static int ah_resolve(const struct ibv_ah_attr *attr, struct ud_path *path)
{
	struct link_addr peer;
	struct gid_row row;
	int err;

	if (!config_get()->roce)
		return EOPNOTSUPP;
	if (!attr->is_global || attr->port_num != 1)
		return EINVAL;
	err = gids_route(&attr->grh, &row, &peer);
	if (err)
		return err;
	if (!gid_is_possible(&peer))
		return EINVAL; /* not a single host's address, for example a multicast address */
	memcpy(path->from, row.gid.raw, sizeof(path->from));
	memcpy(path->to, attr->grh.dgid.raw, sizeof(path->to));
	path->scope = peer.scope;
	path->traffic_class = attr->grh.traffic_class;
	path->hop_limit = attr->grh.hop_limit ? attr->grh.hop_limit : AH_HOP_LIMIT;
	return 0;
}

struct ibv_ah *softrnic_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct ud_ah *ah;
	struct ud_path path;
	int err = ah_resolve(attr, &path);

	if (err) {
		errno = err;
		return NULL;
	}
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;
	ah->path = path;
	ah->ibv.context = pd->context;
	ah->ibv.pd = &vpd_of(pd)->ibv;
	atomic_fetch_add(&vpd_of(pd)->users, 1);
	return &ah->ibv;
}

int softrnic_destroy_ah(struct ibv_ah *ah)
{
	atomic_fetch_sub(&vpd_of(ah->pd)->users, 1);
	free(container_of(ah, struct ud_ah, ibv));
	return 0;
}

/* --- the address handle of a message's sender ----------------------------------------------- */

/* Offsets in the 40 bytes of a GRH. The second half may be an IPv4 header; the first half is unused
 * then. */
enum { IPV4_AT = 20, IPV4_TOS = IPV4_AT + 1, IPV4_FROM = IPV4_AT + 12, IPV4_TO = IPV4_AT + 16 };

static union ibv_gid gid_of_ipv4(const uint8_t *addr)
{
	struct link_addr ipv4 = {.family = LINK_IPV4};

	memcpy(ipv4.bytes, addr, 4);
	return gid_of_addr(&ipv4);
}

/* Read the GRH of a datagram, which is IPv6 or IPv4. Returns false if the bytes are neither. */
static bool ah_parse_grh(const struct ibv_grh *grh, union ibv_gid *from, union ibv_gid *to,
			 struct ibv_global_route *back)
{
	const uint8_t *bytes = (const uint8_t *)grh;
	uint32_t word = be32toh(grh->version_tclass_flow);

	if (word >> 28 == 6) {
		*from = grh->sgid;
		*to = grh->dgid;
		back->flow_label = word & 0xfffff;
		back->traffic_class = (uint8_t)(word >> 20);
		return true;
	}
	if (bytes[IPV4_AT] >> 4 != 4)
		return false;
	*from = gid_of_ipv4(bytes + IPV4_FROM);
	*to = gid_of_ipv4(bytes + IPV4_TO);
	back->traffic_class = bytes[IPV4_TOS];
	return true;
}

static int ah_fail(int err)
{
	errno = err;
	return -1;
}

int softrnic_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc,
			     struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	union ibv_gid to;
	int index;

	if (!config_get()->roce)
		return ah_fail(EOPNOTSUPP);
	*attr = (struct ibv_ah_attr){.sl = wc->sl, .port_num = port, .is_global = 1};
	if (!(wc->wc_flags & IBV_WC_GRH) || !ah_parse_grh(grh, &attr->grh.dgid, &to, &attr->grh))
		return ah_fail(EINVAL);
	index = gids_find(&to);
	if (index < 0)
		return ah_fail(EINVAL);
	attr->grh.sgid_index = (uint8_t)index;
	attr->grh.hop_limit = 0xff;
	return 0;
}

struct ibv_ah *softrnic_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
					  uint8_t port)
{
	struct ibv_ah_attr attr;

	if (softrnic_init_ah_from_wc(pd->context, port, wc, grh, &attr))
		return NULL;
	return softrnic_create_ah(pd, &attr);
}
