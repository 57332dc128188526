/* SPDX-License-Identifier: BSD-3-Clause */
/* plain_qp_meet.c -- how a plain queue pair finds its peer. */
#include <errno.h>

#include "base/log.h"
#include "softrnic/verbs/plain_qp.h"

int plain_qp_number(uint32_t *num)
{
	static atomic_uint last;
	unsigned room = 0xffffff - QP_NUM_PLAIN; /* 0xffffff names all queue pairs of a multicast */

	*num = QP_NUM_PLAIN + atomic_fetch_add(&last, 1) % room;
	return 0;
}

int plain_qp_meet(struct plain_qp *p)
{
	LOG_NOTICE("qp %u: two queue pairs that rdma_cm does not connect cannot meet here", p->num);
	return EOPNOTSUPP;
}

void plain_qp_on_stream_event(void *owner, enum stream_event event, int status)
{
	struct plain_qp *p = owner;

	LOG_DEBUG("qp %u: event %d of its stream, status %d", p->num, event, status);
}
