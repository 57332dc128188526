/* SPDX-License-Identifier: BSD-3-Clause */
/* ud_port_send.c -- sends a port's packets, or lets their queue pairs wait for the socket or a
 * credit. */
#include <errno.h>

#include "base/clock.h"
#include "softrnic/io/qp_port.h"
#include "softrnic/io/ud_port_impl.h"

/* Watch the socket as the state requires. Its readiness at the time of the call is reported again.
 * The caller holds the send lock. */
static void ud_watch(struct ud_port *p)
{
	engine_watch(&p->source, p->link.fd, !atomic_load(&p->left_to_users),
		     !list_empty(&p->waiting));
}

void ud_port_rewatch(struct ud_port *p)
{
	lock_enter(&p->tx_lock);
	ud_watch(p);
	lock_leave(&p->tx_lock);
}

/* --- sent ----------------------------------------------------------------------------------- */

/* Send n packets. A packet to a port of another service is not sent, because such a port is not
 * part of a queue pair's number. This function and the following ones are called with the send
 * lock. */
static int ud_transmit(struct ud_port *p, int n)
{
	struct ud_packet *packets = p->tx.packets;
	int good = 0, sent = 0;

	while (good < n && packets[good].port >= QP_PORT_MIN)
		good++;
	if (good)
		sent = link_udp_send(&p->link, packets, good);
	for (int i = n; i-- > 0 && i >= sent;)
		ud_flows_give_back(&p->flows, &packets[i]);
	return good ? sent : 1;
}

/* Let the end wait for a credit. */
static void ud_hold(struct ud_port *p, struct ud_end *end)
{
	uint64_t until = p->flows.wait_until;

	if (list_empty(&end->waiting))
		list_add_tail(&p->held, &end->waiting);
	if (p->patience_at && p->patience_at <= until)
		return;
	p->patience_at = until;
	engine_set_timer(&p->patience, until);
}

static int ud_send_locked(struct ud_port *p, struct ud_end *end, ud_gather_fn *gather, void *owner)
{
	int n;

	n = gather(owner, &p->flows, clock_now_ns(), p->tx.packets, LINK_UDP_BATCH);
	if (n == -EAGAIN)
		ud_hold(p, end);
	if (n <= 0)
		return n;
	n = ud_transmit(p, n);
	if (n == -EAGAIN) {
		if (list_empty(&end->waiting))
			list_add_tail(&p->waiting, &end->waiting);
		ud_watch(p);
	}
	return n;
}

int ud_port_send(struct ud_port *p, struct ud_end *end, ud_gather_fn *gather, void *owner)
{
	int n;

	lock_enter(&p->tx_lock);
	n = ud_send_locked(p, end, gather, owner);
	lock_leave(&p->tx_lock);
	return n;
}

unsigned ud_port_silences(struct ud_port *p)
{
	unsigned silences;

	lock_enter(&p->tx_lock);
	silences = p->flows.silences;
	lock_leave(&p->tx_lock);
	return silences;
}

/* --- sending later --------------------------------------------------------------------------- */

static struct ud_end *ud_next(struct ud_port *p, struct list *ends)
{
	struct list *l;

	lock_enter(&p->tx_lock);
	l = list_pop(ends);
	lock_leave(&p->tx_lock);
	return l ? container_of(l, struct ud_end, waiting) : NULL;
}

void ud_port_resume(struct ud_port *p, struct list *waiting)
{
	struct list turn, *l;
	struct ud_end *end;

	list_init(&turn);
	lock_enter(&p->tx_lock);
	while ((l = list_pop(waiting)))
		list_add_tail(&turn, l);
	lock_leave(&p->tx_lock);
	while ((end = ud_next(p, &turn)))
		end->writable(end);
}

/* Called when the time limit for a credit has passed: let the waiting ends try again. */
static void ud_on_patience(struct eng_timer *timer)
{
	struct ud_port *p = container_of(timer, struct ud_port, patience);

	lock_enter(&p->rx_lock);
	lock_enter(&p->tx_lock);
	p->patience_at = 0;
	lock_leave(&p->tx_lock);
	ud_port_resume(p, &p->held);
	lock_leave(&p->rx_lock);
}

void ud_port_send_init(struct ud_port *p)
{
	for (int i = 0; i < LINK_UDP_BATCH; i++)
		p->tx.packets[i].bytes = p->tx.bytes[i];
	list_init(&p->waiting);
	list_init(&p->held);
	p->patience.at = CLOCK_NEVER;
	p->patience.fire = ud_on_patience;
	p->patience.source = &p->source;
}
