/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plain_qp_meet.c -- starts the search for a plain queue pair's peer: computes the names of both
 * ends from its attributes.
 */
#include <errno.h>
#include <string.h>

#include "softrnic/io/config.h"
#include "softrnic/verbs/gid.h"
#include "softrnic/verbs/plain_qp.h"

static int plain_qp_look(struct plain_qp *p, const struct gid_row *own,
			 const struct link_addr *peer)
{
	struct conn_plain_rtr with = {
		.ends.own.qpn = p->num,
		.ends.peer.qpn = p->attr.dest_qp_num,
		.ends.uc = p->ibv->qp_type == IBV_QPT_UC,
		.from = own->addr,
		.to = *peer,
		.rq_psn = p->attr.rq_psn,
		.path_mtu = (uint8_t)p->attr.path_mtu,
		.max_dest_rd_atomic = p->attr.max_dest_rd_atomic,
		.min_rnr_timer = p->attr.min_rnr_timer,
	};

	memcpy(with.ends.own.gid, own->gid.raw, MEET_GID_LEN);
	memcpy(with.ends.peer.gid, p->attr.ah_attr.grh.dgid.raw, MEET_GID_LEN);
	return conn_plain_rtr(p->home, &with);
}

int plain_qp_meet(struct plain_qp *p)
{
	struct link_addr peer;
	struct gid_row own;
	int ret;

	if (!config_get()->roce)
		return EOPNOTSUPP; /* an iWARP device connects queue pairs only by rdma_cm */
	ret = gids_route(&p->attr.ah_attr.grh, &own, &peer);
	return ret ? ret : plain_qp_look(p, &own, &peer);
}

int plain_qp_limit(struct plain_qp *p)
{
	struct conn_plain_rts with = {
		.sq_psn = p->attr.sq_psn,
		.max_rd_atomic = p->attr.max_rd_atomic,
		.timeout = p->attr.timeout,
		.retry_cnt = p->attr.retry_cnt,
		.min_rnr_timer = p->attr.min_rnr_timer,
		.rnr_retry = p->attr.rnr_retry,
	};

	return conn_plain_rts(p->home, &with);
}
