/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "softrnic/io/config.h"
#include "softrnic/io/qp_port.h"
#include "softrnic/io/ud_port_impl.h"

#define UD_TURN_MAX 16 /* greatest number of batches in one turn of the engine */

/* --- received ------------------------------------------------------------------------------- */

/* Does the datagram come from the UDP port that belongs to its source queue pair? A sender can
 * forge the source, as with RoCE v2. But on a host where this port is in use, only a privileged
 * program can do so. */
static bool ud_is_from(const struct ud_packet *p, const struct ud_header *h)
{
	return config_get()->qp_any_source || p->port == ud_port_of(h->from_qpn);
}

/*
 * Prepare a credit; it is sent after the batch. This function and the following ones are called
 * with the receive lock.
 */
static void ud_add_credit(struct ud_port *p, const struct ud_packet *asking,
			  const struct ud_header *h)
{
	struct ud_header credit = {.opcode = UD_CREDIT,
				   .serial = h->serial,
				   .qkey = p->link.window,
				   .from_qpn = h->to_qpn,
				   .to_qpn = h->from_qpn};
	struct ud_packet *c = &p->credits.packets[p->credits.n];

	*c = (struct ud_packet){
		.path = asking->path,
		.port = asking->port,
		.bytes = p->credits.bytes[p->credits.n],
		.len = UD_HEADER_LEN,
	};
	c->path.hop_limit = LINK_UDP_HOP_LIMIT;
	memcpy(c->path.from, asking->path.to, sizeof(c->path.from));
	memcpy(c->path.to, asking->path.from, sizeof(c->path.to));
	(void)ud_header_encode(c->bytes, c->len, &credit);
	p->credits.n++;
}

/*
 * Send the credits. A credit that the socket does not take is lost, and a later credit replaces it.
 */
static void ud_send_credits(struct ud_port *p)
{
	int sent = 0;

	if (!p->credits.n)
		return;
	lock_enter(&p->tx_lock);
	for (int i = 0; i < p->credits.n && sent >= 0; i += sent)
		sent = link_udp_send(&p->link, p->credits.packets + i, p->credits.n - i);
	lock_leave(&p->tx_lock);
	p->credits.n = 0;
}

static void ud_take_message(struct ud_port *p, const struct ud_packet *packet,
			    const struct ud_header *h)
{
	struct ud_end *end = p->ends[h->to_qpn % UD_ENDS];

	if (h->asks)
		ud_add_credit(p, packet, h);
	if (end)
		end->received(end, h, &packet->path, packet->bytes + UD_HEADER_LEN,
			      packet->len - UD_HEADER_LEN);
	else
		p->dropped++;
}

static void ud_deliver(struct ud_port *p, const struct ud_packet *packet)
{
	struct ud_header h;

	if (ud_header_decode(packet->bytes, packet->len, &h) || ud_port_of(h.to_qpn) != p->number ||
	    !ud_is_from(packet, &h)) {
		p->dropped++;
	} else if (h.opcode == UD_CREDIT) {
		lock_enter(&p->tx_lock);
		p->made_room |= ud_flows_on_credit(&p->flows, packet, h.serial, h.qkey);
		lock_leave(&p->tx_lock);
	} else {
		ud_take_message(p, packet, &h);
	}
}

int ud_port_receive(struct ud_port *p)
{
	int n;

	p->made_room = false;
	for (int i = 0; i < LINK_UDP_BATCH; i++)
		p->rx.packets[i].len = UD_ROOM;
	n = link_udp_recv(&p->link, p->rx.packets, LINK_UDP_BATCH);
	for (int i = 0; i < n; i++)
		ud_deliver(p, &p->rx.packets[i]);
	ud_send_credits(p);
	if (p->made_room)
		ud_port_resume(p, &p->held);
	return n;
}

bool ud_port_receive_all(struct ud_port *p)
{
	bool more = true;

	for (int i = 0; more && i < UD_TURN_MAX; i++)
		more = ud_port_receive(p) == LINK_UDP_BATCH;
	return more;
}

uint64_t ud_port_dropped(struct ud_port *p)
{
	uint64_t dropped;

	lock_enter(&p->rx_lock);
	dropped = p->dropped;
	lock_leave(&p->rx_lock);
	return dropped;
}

/* --- the engine ------------------------------------------------------------------------------ */

static void ud_ready(struct eng_source *src, unsigned ready)
{
	struct ud_port *p = container_of(src, struct ud_port, source);
	bool more = ready & READY_READ;

	lock_enter(&p->rx_lock);
	if (more)
		more = ud_port_receive_all(p);
	if (ready & READY_WRITE)
		ud_port_resume(p, &p->waiting);
	if (more || ready & READY_WRITE)
		ud_port_rewatch(p);
	lock_leave(&p->rx_lock);
}

/* In a forked child: close the copy of the socket, which belongs to the parent. */
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
	for (int i = 0; i < LINK_UDP_BATCH; i++)
		p->rx.packets[i].bytes = p->rx.bytes[i];
	ud_port_send_init(p);
	ud_port_lease_init(p);
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
	LOG_INFO("port %u receives datagrams for queue pairs", p->number);
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
