/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/ud_port.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "softrnic/io/config.h"
#include "softrnic/io/engine.h"
#include "softrnic/io/qp_port.h"

#define UD_ENDS     256u
#define UD_ROOM     (UD_DATAGRAM_MAX + 1) /* so that a longer one is seen to be longer */
#define UD_TURN_MAX 16                    /* batches in one turn of the engine */

/* Polls that follow each other within 20 us on average are a loop. The time is read once in so many. */
#define UD_POLLS   64u
#define UD_LOOP_NS (UD_POLLS * 20000ull)
/* The engine begins to read again when no loop of polls was seen for so long: a time slice of
 * another thread, 4 ms as a rule. */
#define UD_LEASE_NS (5 * NSEC_PER_MS)
/* So many packets of one poll are a burst, during which threads of the engine read, too: with the
 * kernel's default the socket's buffer holds about 50 packets of 4 KiB. */
#define UD_BURST 4

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
	uint64_t dropped;          /* ud_port_dropped() */
	unsigned polls;            /* without a burst */
	uint64_t polled_at;        /* time of the last poll of UD_POLLS */
	struct eng_timer again;    /* the engine looks whether polls have stopped */
	atomic_bool left_to_polls; /* the engine does not read; written with the receive lock */
	struct lock tx_lock;       /* of these: */
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

/* With the receive lock: one batch. Returns how many have come; LINK_UDP_BATCH: there may be more. */
static int ud_receive(struct ud_port *p)
{
	int n;

	for (int i = 0; i < LINK_UDP_BATCH; i++) {
		p->rx.packets[i].bytes = p->rx.bytes[i];
		p->rx.packets[i].len = UD_ROOM;
	}
	n = link_udp_recv(&p->link, p->rx.packets, LINK_UDP_BATCH);
	for (int i = 0; i < n; i++)
		ud_deliver(p, &p->rx.packets[i]);
	return n;
}

/* With the send lock. What the socket is ready for is reported anew. */
static void ud_watch(struct ud_port *p)
{
	engine_watch(&p->source, p->link.fd, !atomic_load(&p->left_to_polls),
		     !list_empty(&p->waiting));
}

/* With the receive lock. */
static void ud_leave_to_polls(struct ud_port *p, bool leave)
{
	atomic_store(&p->left_to_polls, leave);
	lock_enter(&p->tx_lock);
	ud_watch(p);
	lock_leave(&p->tx_lock);
}

/* With the receive lock. A thread of the engine that is woken for each packet takes CPU time from a
 * thread that polls for it. */
static void ud_note_polls(struct ud_port *p)
{
	uint64_t now = clock_now_ns();
	bool loop = now - p->polled_at < UD_LOOP_NS;

	p->polled_at = now;
	if (!loop || atomic_load(&p->left_to_polls))
		return;
	ud_leave_to_polls(p, true);
	engine_set_timer(&p->again, now + UD_LEASE_NS);
}

/* A thread of the engine reads again when no loop of polls does. */
static void ud_again(struct eng_timer *timer)
{
	struct ud_port *p = container_of(timer, struct ud_port, again);

	lock_enter(&p->rx_lock);
	if (atomic_load(&p->left_to_polls)) {
		if (clock_now_ns() - p->polled_at >= UD_LEASE_NS)
			ud_leave_to_polls(p, false);
		else
			engine_set_timer(&p->again, p->polled_at + UD_LEASE_NS);
	}
	lock_leave(&p->rx_lock);
}

/* With the receive lock. The next polls are no loop yet. */
static void ud_end_loop(struct ud_port *p)
{
	p->polls = 0;
	p->polled_at = 0;
	if (atomic_load(&p->left_to_polls))
		ud_leave_to_polls(p, false);
}

void ud_port_poll(struct ud_port *p)
{
	if (!lock_try(&p->rx_lock))
		return;
	if (ud_receive(p) >= UD_BURST)
		ud_end_loop(p);
	else if (++p->polls % UD_POLLS == 0)
		ud_note_polls(p);
	lock_leave(&p->rx_lock);
}

void ud_port_report(struct ud_port *p)
{
	if (!atomic_load(&p->left_to_polls))
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
		ud_watch(p);
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

	while (turns-- > 0 && (end = ud_next_waiting(p)))
		end->writable(end);
	lock_enter(&p->tx_lock);
	ud_watch(p);
	lock_leave(&p->tx_lock);
}

/* --- the engine ------------------------------------------------------------------------------ */

static void ud_ready(struct eng_source *src, unsigned ready)
{
	struct ud_port *p = container_of(src, struct ud_port, source);
	bool more = ready & READY_READ;

	lock_enter(&p->rx_lock);
	for (int i = 0; more && i < UD_TURN_MAX; i++)
		more = ud_receive(p) == LINK_UDP_BATCH;
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
