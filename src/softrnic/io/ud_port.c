/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/ud_port.h"

#include <errno.h>
#include <stdlib.h>

#include "base/lock.h"
#include "base/log.h"
#include "softrnic/io/config.h"
#include "softrnic/io/engine.h"
#include "softrnic/io/qp_port.h"

#define UD_ENDS     256u
#define UD_ROOM     (UD_DATAGRAM_MAX + 1) /* so that a longer one is seen to be longer */
#define UD_TURN_MAX 16                    /* batches in one turn of the engine */

/* Packets and their memory. */
struct ud_batch {
	struct ud_packet packets[LINK_UDP_BATCH];
	uint8_t bytes[LINK_UDP_BATCH][UD_ROOM];
};

struct ud_port {
	struct eng_source source;
	struct link_udp link;
	uint16_t number;
	struct lock rx_lock; /* of these: */
	struct ud_end *ends[UD_ENDS];
	struct ud_batch rx;
	uint64_t dropped;    /* datagrams that are none of ours, or for no queue pair */
	struct lock tx_lock; /* of these: */
	struct ud_batch tx;
	struct list waiting; /* ends that wait until the socket takes packets */
};

/* --- received ------------------------------------------------------------------------------- */

/* Where a datagram says that it comes from can be forged, as with RoCE v2; but no program without
 * special rights can do so on a host where the port is taken. */
static bool ud_is_from(const struct ud_packet *p, const struct ud_header *h)
{
	return config_get()->qp_any_source || p->port == ud_port_of(h->from_qpn);
}

/* With the receive lock. */
static void ud_deliver(struct ud_port *p, const struct ud_packet *packet)
{
	struct ud_end *end = NULL;
	struct ud_header h;

	if (!ud_header_decode(packet->bytes, packet->len, &h) &&
	    ud_port_of(h.to_qpn) == p->number && ud_is_from(packet, &h))
		end = p->ends[h.to_qpn % UD_ENDS];
	if (!end) {
		p->dropped++;
		return;
	}
	end->received(end, &h, &packet->path, packet->bytes + UD_HEADER_LEN,
		      packet->len - UD_HEADER_LEN);
}

/* With the receive lock: one batch. Returns whether there may be more. */
static bool ud_receive(struct ud_port *p)
{
	int n;

	for (int i = 0; i < LINK_UDP_BATCH; i++) {
		p->rx.packets[i].bytes = p->rx.bytes[i];
		p->rx.packets[i].len = UD_ROOM;
	}
	n = link_udp_recv(&p->link, p->rx.packets, LINK_UDP_BATCH);
	for (int i = 0; i < n; i++)
		ud_deliver(p, &p->rx.packets[i]);
	return n == LINK_UDP_BATCH;
}

void ud_port_poll(struct ud_port *p)
{
	if (!lock_try(&p->rx_lock))
		return;
	(void)ud_receive(p);
	lock_leave(&p->rx_lock);
}

/* --- sent ----------------------------------------------------------------------------------- */

/* With the send lock. Numbers of other services' ports are no queue pairs'. */
static int ud_transmit(struct ud_port *p, int n)
{
	int good = 0;

	while (good < n && p->tx.packets[good].port >= QP_PORT_MIN)
		good++;
	return good ? link_udp_send(&p->link, p->tx.packets, good) : 1;
}

int ud_port_send(struct ud_port *p, struct ud_end *end, ud_gather_fn *gather, void *owner)
{
	int n;

	lock_enter(&p->tx_lock);
	for (int i = 0; i < LINK_UDP_BATCH; i++)
		p->tx.packets[i].bytes = p->tx.bytes[i];
	n = gather(owner, p->tx.packets, LINK_UDP_BATCH);
	if (n > 0)
		n = ud_transmit(p, n);
	if (n == -EAGAIN) {
		if (list_empty(&end->waiting))
			list_add_tail(&p->waiting, &end->waiting);
		engine_watch(&p->source, p->link.fd, true, true);
	}
	lock_leave(&p->tx_lock);
	return n;
}

static struct ud_end *ud_next_waiting(struct ud_port *p)
{
	struct list *l;

	lock_enter(&p->tx_lock);
	l = list_pop(&p->waiting);
	lock_leave(&p->tx_lock);
	return l ? container_of(l, struct ud_end, waiting) : NULL;
}

/* With the receive lock, so that no end leaves. One that has to wait again is the last in the list
 * then, and asks for another report. */
static void ud_resume(struct ud_port *p)
{
	struct ud_end *end;
	int turns = UD_ENDS;

	engine_watch(&p->source, p->link.fd, true, false);
	while (turns-- > 0 && (end = ud_next_waiting(p)))
		end->writable(end);
}

/* --- the engine ------------------------------------------------------------------------------ */

static void ud_ready(struct eng_source *src, unsigned ready)
{
	struct ud_port *p = container_of(src, struct ud_port, source);
	bool more = true;

	lock_enter(&p->rx_lock);
	for (int i = 0; more && i < UD_TURN_MAX; i++)
		more = ud_receive(p);
	if (more || ready & READY_WRITE)
		ud_resume(p); /* and what can be read is reported anew */
	lock_leave(&p->rx_lock);
}

/* In a forked child: the socket is the parent's. */
static void ud_forked(struct eng_source *src)
{
	link_udp_close(&container_of(src, struct ud_port, source)->link);
}

int ud_port_open(const struct link_addr *at, struct ud_port **out)
{
	struct ud_port *p = calloc(1, sizeof(*p));
	int ret = p ? link_udp_open(at, &p->link) : -ENOMEM;

	if (ret) {
		free(p);
		return ret;
	}
	p->number = at->port;
	lock_init(&p->rx_lock);
	lock_init(&p->tx_lock);
	list_init(&p->waiting);
	list_init(&p->source.all);
	p->source.alone = true;
	p->source.ready = ud_ready;
	p->source.forked = ud_forked;
	ret = engine_add(&p->source, p->link.fd, false);
	if (ret) {
		link_udp_close(&p->link);
		free(p);
		return ret;
	}
	LOG_INFO("port %u takes datagrams for queue pairs", p->number);
	*out = p;
	return 0;
}

void ud_port_join(struct ud_port *p, struct ud_end *end)
{
	list_init(&end->waiting);
	lock_enter(&p->rx_lock);
	p->ends[end->qpn % UD_ENDS] = end;
	lock_leave(&p->rx_lock);
}

void ud_port_leave(struct ud_port *p, struct ud_end *end)
{
	lock_enter(&p->rx_lock);
	p->ends[end->qpn % UD_ENDS] = NULL;
	lock_enter(&p->tx_lock);
	list_del(&end->waiting);
	lock_leave(&p->tx_lock);
	lock_leave(&p->rx_lock);
}
