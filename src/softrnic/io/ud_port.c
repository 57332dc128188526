/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/ud_port.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "softrnic/io/config.h"
#include "softrnic/io/engine.h"
#include "softrnic/io/qp_port.h"

#define UD_ENDS     256u
#define UD_ROOM     (UD_DATAGRAM_MAX + 1) /* one more byte reveals a longer datagram */
#define UD_TURN_MAX 16                    /* batches in one turn of the engine */

/* Polls that follow each other within 20 us on average are a loop; each packet that they find may
 * take as long. The time is read once in UD_POLLS polls. */
#define UD_POLLS   64u
#define UD_POLL_NS 20000ull
/*
 * The engine reads again after this time without a loop of polls: a few time slices of other
 * threads, usually 4 ms each. If the engine read while another thread uses the CPU, messages would
 * find no receive, because the program that posts receives does not run.
 */
#define UD_LEASE_NS (20 * NSEC_PER_MS)

/* Packets and their memory. */
struct ud_batch {
	struct ud_packet packets[LINK_UDP_BATCH];
	uint8_t bytes[LINK_UDP_BATCH][UD_ROOM];
};

struct ud_credits {
	struct ud_packet packets[LINK_UDP_BATCH];
	uint8_t bytes[LINK_UDP_BATCH][UD_HEADER_LEN];
	int n;
};

struct ud_port {
	struct eng_source source;
	struct link_udp link;
	uint16_t number;
	struct lock rx_lock; /* guards these members: */
	struct ud_end *ends[UD_ENDS];
	struct ud_batch rx;
	struct ud_credits credits; /* requested by the present batch */
	bool made_room;            /* the present batch contained a credit */
	uint64_t dropped;          /* ud_port_dropped() */
	unsigned polls;
	unsigned polled;        /* packets since the last poll of UD_POLLS */
	uint64_t polled_at;     /* time of that poll */
	unsigned waiters;       /* threads that wait for the descriptor */
	uint64_t leased_at;     /* time of a thread's last loop of polls, or last wait */
	struct eng_timer again; /* the engine checks whether other threads still read */
	bool again_is_set;
	atomic_bool left_to_users; /* the engine does not read; written under the receive lock */
	struct lock tx_lock;       /* guards these members: */
	struct ud_batch tx;
	struct ud_flows flows;
	struct list waiting;       /* ends that wait until the socket takes packets */
	struct list held;          /* ends that wait for a credit */
	struct eng_timer patience; /* limit of the wait for a credit */
	uint64_t patience_at;      /* time of that limit; 0: not set */
};

/* --- received ------------------------------------------------------------------------------- */

/* The source of a datagram can be forged, as with RoCE v2. But on a host where the port is taken,
 * only a privileged program can do so. */
static bool ud_is_from(const struct ud_packet *p, const struct ud_header *h)
{
	return config_get()->qp_any_source || p->port == ud_port_of(h->from_qpn);
}

/*
 * Called with the receive lock, like the following functions. The credit is sent after the batch.
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

/* A credit that the socket does not take is lost: a later credit replaces it. */
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

static void ud_take_credit(struct ud_port *p, const struct ud_packet *packet,
			   const struct ud_header *h)
{
	lock_enter(&p->tx_lock);
	p->made_room |= ud_flows_on_credit(&p->flows, packet, h->serial, h->qkey);
	lock_leave(&p->tx_lock);
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
	    !ud_is_from(packet, &h))
		p->dropped++;
	else if (h.opcode == UD_CREDIT)
		ud_take_credit(p, packet, &h);
	else
		ud_take_message(p, packet, &h);
}

static void ud_resume(struct ud_port *p, struct list *waiting);

/* Receive one batch. Returns the number of packets; LINK_UDP_BATCH: there may be more. */
static int ud_receive(struct ud_port *p)
{
	int n;

	p->made_room = false;

	for (int i = 0; i < LINK_UDP_BATCH; i++) {
		p->rx.packets[i].bytes = p->rx.bytes[i];
		p->rx.packets[i].len = UD_ROOM;
	}
	n = link_udp_recv(&p->link, p->rx.packets, LINK_UDP_BATCH);
	for (int i = 0; i < n; i++)
		ud_deliver(p, &p->rx.packets[i]);
	ud_send_credits(p);
	if (p->made_room)
		ud_resume(p, &p->held);
	return n;
}

/* Called with the send lock. The socket's present readiness is reported again. */
static void ud_watch(struct ud_port *p)
{
	engine_watch(&p->source, p->link.fd, !atomic_load(&p->left_to_users),
		     !list_empty(&p->waiting));
}

static void ud_rewatch(struct ud_port *p)
{
	lock_enter(&p->tx_lock);
	ud_watch(p);
	lock_leave(&p->tx_lock);
}

/* Called with the receive lock. */
static void ud_leave_to_users(struct ud_port *p, bool leave)
{
	atomic_store(&p->left_to_users, leave);
	ud_rewatch(p);
}

/* Called with the receive lock. If each packet woke a thread of the engine, it would take CPU time
 * from the thread that polls or waits for the packet. */
static void ud_lease(struct ud_port *p, uint64_t now)
{
	p->leased_at = now;
	if (!atomic_load(&p->left_to_users))
		ud_leave_to_users(p, true);
	if (p->again_is_set)
		return;
	p->again_is_set = true;
	engine_set_timer(&p->again, now + UD_LEASE_NS);
}

/* Called with the receive lock. */
static void ud_note_polls(struct ud_port *p)
{
	uint64_t now = clock_now_ns();

	if (now - p->polled_at < (UD_POLLS + p->polled) * UD_POLL_NS)
		ud_lease(p, now);
	p->polled_at = now;
	p->polled = 0;
}

/* The engine reads again if no other thread does. The end of a wait sets the timer again. */
static void ud_again(struct eng_timer *timer)
{
	struct ud_port *p = container_of(timer, struct ud_port, again);

	lock_enter(&p->rx_lock);
	p->again_is_set = false;
	if (atomic_load(&p->left_to_users) && !p->waiters) {
		if (clock_now_ns() - p->leased_at >= UD_LEASE_NS)
			ud_leave_to_users(p, false);
		else
			ud_lease(p, p->leased_at);
	}
	lock_leave(&p->rx_lock);
}

/* Called with the receive lock. The next polls are no loop yet. */
static void ud_end_loop(struct ud_port *p)
{
	p->polls = 0;
	p->polled = 0;
	p->polled_at = 0;
	if (atomic_load(&p->left_to_users))
		ud_leave_to_users(p, false);
}

void ud_port_poll(struct ud_port *p)
{
	int n;

	if (!lock_try(&p->rx_lock))
		return;
	n = ud_receive(p);
	p->polled += n > 0 ? (unsigned)n : 0;
	if (++p->polls % UD_POLLS == 0)
		ud_note_polls(p);
	lock_leave(&p->rx_lock);
}

/* Receive as many batches as one turn permits. Returns true if there may be more. */
static bool ud_receive_all(struct ud_port *p)
{
	bool more = true;

	for (int i = 0; more && i < UD_TURN_MAX; i++)
		more = ud_receive(p) == LINK_UDP_BATCH;
	return more;
}

int ud_port_wait_begin(struct ud_port *p)
{
	if (!lock_try(&p->rx_lock))
		return -1;
	p->waiters++;
	ud_lease(p, clock_now_ns());
	lock_leave(&p->rx_lock);
	return p->link.fd;
}

void ud_port_wait_end(struct ud_port *p, bool readable)
{
	lock_enter(&p->rx_lock);
	p->waiters--;
	if (readable)
		(void)ud_receive_all(p);
	if (readable && atomic_load(&p->left_to_users))
		ud_lease(p, clock_now_ns()); /* the thread will probably wait again */
	else if (!p->waiters)
		ud_end_loop(p);
	lock_leave(&p->rx_lock);
}

void ud_port_report(struct ud_port *p)
{
	if (!atomic_load(&p->left_to_users))
		return;
	lock_enter(&p->rx_lock);
	ud_end_loop(p);
	lock_leave(&p->rx_lock);
}

uint64_t ud_port_dropped(struct ud_port *p)
{
	uint64_t dropped;

	lock_enter(&p->rx_lock);
	dropped = p->dropped;
	lock_leave(&p->rx_lock);
	return dropped;
}

unsigned ud_port_silences(struct ud_port *p)
{
	unsigned silences;

	lock_enter(&p->tx_lock);
	silences = p->flows.silences;
	lock_leave(&p->tx_lock);
	return silences;
}

/* --- sent ----------------------------------------------------------------------------------- */

/* Called with the send lock, like the following functions. Ports of other services are not numbers
 * of queue pairs. */
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

/* Wait for the socket. */
static void ud_wait(struct ud_port *p, struct ud_end *end)
{
	if (list_empty(&end->waiting))
		list_add_tail(&p->waiting, &end->waiting);
	ud_watch(p);
}

/* Wait for a credit. */
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

	for (int i = 0; i < LINK_UDP_BATCH; i++)
		p->tx.packets[i].bytes = p->tx.bytes[i];
	n = gather(owner, &p->flows, clock_now_ns(), p->tx.packets, LINK_UDP_BATCH);
	if (n == -EAGAIN)
		ud_hold(p, end);
	if (n <= 0)
		return n;
	n = ud_transmit(p, n);
	if (n == -EAGAIN)
		ud_wait(p, end);
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

/* --- sent later ------------------------------------------------------------------------------ */

static struct ud_end *ud_next(struct ud_port *p, struct list *ends)
{
	struct list *l;

	lock_enter(&p->tx_lock);
	l = list_pop(ends);
	lock_leave(&p->tx_lock);
	return l ? container_of(l, struct ud_end, waiting) : NULL;
}

/* Called with the receive lock, so that no end leaves. Each end of the list gets one turn;
 * afterwards the list has the ends that must wait again. */
static void ud_resume(struct ud_port *p, struct list *waiting)
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

/* No credit has come in time. */
static void ud_on_patience(struct eng_timer *timer)
{
	struct ud_port *p = container_of(timer, struct ud_port, patience);

	lock_enter(&p->rx_lock);
	lock_enter(&p->tx_lock);
	p->patience_at = 0;
	lock_leave(&p->tx_lock);
	ud_resume(p, &p->held);
	lock_leave(&p->rx_lock);
}

/* --- the engine ------------------------------------------------------------------------------ */

static void ud_ready(struct eng_source *src, unsigned ready)
{
	struct ud_port *p = container_of(src, struct ud_port, source);
	bool more = ready & READY_READ;

	lock_enter(&p->rx_lock);
	if (more)
		more = ud_receive_all(p);
	if (ready & READY_WRITE)
		ud_resume(p, &p->waiting);
	if (more || ready & READY_WRITE)
		ud_rewatch(p);
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
	list_init(&p->held);
	p->patience.at = CLOCK_NEVER;
	p->patience.fire = ud_on_patience;
	p->patience.source = &p->source;
	list_init(&p->source.all);
	p->source.alone = true;
	p->source.ready = ud_ready;
	p->source.forked = ud_forked;
	p->again.at = CLOCK_NEVER;
	p->again.fire = ud_again;
	p->again.source = &p->source;
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
