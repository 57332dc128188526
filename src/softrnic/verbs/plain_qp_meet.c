/* SPDX-License-Identifier: BSD-3-Clause */
/* plain_qp_meet.c -- how a plain queue pair finds its peer: what its attributes say of both ends. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "softrnic/verbs/plain_qp.h"

int plain_qp_meet(struct plain_qp *p)
{
	struct conn_plain_rtr with = {
		.ends.own.qpn = p->num,
		.ends.peer.qpn = p->attr.dest_qp_num,
		.ends.uc = p->ibv->qp_type == IBV_QPT_UC,
		.from = p->path.own,
		.to = p->path.peer,
		.rq_psn = p->attr.rq_psn,
		.path_mtu = (uint8_t)p->attr.path_mtu,
		.max_dest_rd_atomic = p->attr.max_dest_rd_atomic,
	};

	memcpy(with.ends.own.gid, p->path.own_gid.raw, MEET_GID_LEN);
	memcpy(with.ends.peer.gid, p->attr.ah_attr.grh.dgid.raw, MEET_GID_LEN);
	return conn_plain_rtr(p->home, &with);
}

int plain_qp_limit(struct plain_qp *p)
{
	struct conn_plain_rts with = {
		.sq_psn = p->attr.sq_psn,
		.max_rd_atomic = p->attr.max_rd_atomic,
		.timeout = p->attr.timeout,
		.retry_cnt = p->attr.retry_cnt,
	};

	return conn_plain_rts(p->home, &with);
}

void plain_qp_on_stream_event(void *owner, enum stream_event event, int status)
{
	struct plain_qp *p = owner;

	LOG_DEBUG("qp %u: event %d of its stream, status %d", p->num, event, status);
}
