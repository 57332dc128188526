/* SPDX-License-Identifier: BSD-3-Clause */
/* Send segments that came before a receive was posted: a list, bounded in bytes and messages. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softrnic/rnic/qp_impl.h"

/* What a segment costs; empty ones are not free, or a peer could send any number of them. */
static uint32_t cost(uint32_t len)
{
	return (uint32_t)sizeof(struct park_seg) + len;
}

bool qp_park_has_room(const struct qp *qp, uint32_t len)
{
	return qp->recv.park_bytes + cost(len) <= RNIC_PARK_BYTES &&
	       qp->recv.park_msgs < RNIC_PARK_MSGS;
}

int qp_park_add(struct qp *qp, const struct rx_seg *seg, const uint8_t *bytes)
{
	struct park_seg *p = malloc(sizeof(*p) + seg->payload);

	if (!p)
		return -ENOMEM;
	p->hdr = seg->hdr;
	p->len = seg->payload;
	p->written = seg->written;
	if (p->len > 0)
		memcpy(p->bytes, bytes, p->len);
	list_add_tail(&qp->recv.parked, &p->link);
	qp->recv.park_bytes += cost(p->len);
	qp->recv.park_msgs += p->hdr.last;
	if (p->hdr.last)
		qp->counters.parked_sends++;
	return 0;
}

void qp_park_drop(struct qp *qp, struct park_seg *p)
{
	list_del(&p->link);
	qp->recv.park_bytes -= cost(p->len);
	qp->recv.park_msgs -= p->hdr.last;
	free(p);
}

void qp_park_clear(struct qp *qp)
{
	struct list *node;

	while ((node = list_first(&qp->recv.parked)))
		qp_park_drop(qp, container_of(node, struct park_seg, link));
}
