/* SPDX-License-Identifier: BSD-3-Clause */
/* datagram_net.c -- the ports of both hosts, and the network between them. */
#include <errno.h>
#include <string.h>

#include "datagram.h"

#define BATCH          32
#define FULL_NS        5000 /* after this time a full socket accepts packets again */
#define FORGED_LEN_MAX 120

static struct ud_packet batch[BATCH];
static uint8_t batch_bytes[BATCH][UD_DATAGRAM_MAX];

/* --- under way ------------------------------------------------------------------------------ */

static struct dg_port *net_find_port(struct datagrams *d, const uint8_t gid[UD_GID_LEN],
				     uint16_t number)
{
	for (int h = 0; h < 2; h++) {
		for (unsigned i = 0; i < d->plan.ports; i++) {
			struct dg_port *p = &d->host[h].port[i];

			if (p->number == number && !memcmp(d->host[h].gid, gid, UD_GID_LEN))
				return p;
		}
	}
	return NULL;
}

static struct dg_flight *net_new(struct datagrams *d)
{
	for (int i = 0; i < DG_FLIGHTS; i++) {
		if (!d->flight[i].used)
			return &d->flight[i];
	}
	return NULL;
}

static void net_free(struct dg_flight *f)
{
	if (f->counted)
		((struct dg_port *)f->from)->under_way[f->to->index]--;
	f->used = f->counted = false;
}

static struct dg_flight *net_carry(struct datagrams *d, const struct dg_port *from,
				   struct dg_port *to, const struct ud_packet *p)
{
	struct dg_flight *f = net_new(d);
	uint64_t delay = d->plan.latency_ns;

	if (!f)
		return NULL;
	*f = (struct dg_flight){.used = true, .packet = *p, .from = from, .to = to};
	f->packet.bytes = f->bytes;
	f->packet.port = from ? from->number : p->port;
	memcpy(f->bytes, p->bytes, p->len);
	if (d->plan.jitter_ns)
		delay += prng_below(dg_rng(d), d->plan.jitter_ns);
	dg_at(d, delay, EV_ARRIVE, 0, (uint64_t)(f - d->flight));
	return f;
}

/* A packet leaves a port. The network loses it, or delivers it once or twice. */
static void net_launch(struct datagrams *d, struct dg_port *from, const struct ud_packet *p,
		       bool counted)
{
	struct dg_port *to = net_find_port(d, p->path.to, p->port);
	struct dg_flight *f = NULL;

	if (to && !prng_chance(dg_rng(d), d->plan.loss))
		f = net_carry(d, from, to, p);
	if (!f) {
		datagram_seen.lost++;
		return;
	}
	f->counted = counted;
	if (counted)
		from->under_way[to->index]++;
	if (!prng_chance(dg_rng(d), d->plan.doubles))
		return;
	(void)net_carry(d, from, to, p);
	datagram_seen.doubled++;
}

/* --- sent ----------------------------------------------------------------------------------- */

/* Check the window rule, in runs whose network keeps order and whose credits are correct and in
 * time. */
static void net_check_window(struct datagrams *d, struct dg_qp *q)
{
	const struct dg_port *p = q->port;
	unsigned most = d->plan.socket > UD_WINDOW ? d->plan.socket : UD_WINDOW;

	if (d->plan.jitter_ns || d->plan.forged || p->flows.silences)
		return;
	for (unsigned i = 0; i < 2 * DG_PORTS; i++) {
		if (p->under_way[i] > most)
			dg_violate(d, q, "more packets are under way than the receiver's window");
	}
}

static void net_launch_messages(struct datagrams *d, struct dg_qp *q, int n)
{
	for (int i = 0; i < n; i++) {
		const struct ud_packet *p = &batch[i];
		struct dg_msg *m = &q->msg[q->left];

		dg_check_packet(d, q, m, p);
		m->left = true;
		q->left++;
		datagram_seen.sent++;
		net_launch(d, q->port, p, p->asks || p->serial);
	}
	net_check_window(d, q);
}

/* Returns the number of packets that the socket accepts. */
static int net_socket_takes(struct datagrams *d, int n)
{
	return prng_chance(dg_rng(d), 90) ? n : (int)prng_below(dg_rng(d), (uint64_t)n + 1);
}

static void net_hold(struct datagrams *d, struct dg_qp *q)
{
	uint64_t until = q->port->flows.wait_until, now = d->world->now;

	datagram_seen.held += !q->held;
	if (!q->held)
		q->held_order = d->holds++;
	q->held = true;
	if (q->port->patience_at && q->port->patience_at <= until)
		return;
	q->port->patience_at = until > now ? until : now + 1;
	dg_at(d, q->port->patience_at - now, EV_TIME, q->port->index, 0);
}

static void net_wait(struct datagrams *d, struct dg_qp *q)
{
	q->waits = true;
	datagram_seen.socket_full++;
	dg_at(d, FULL_NS, EV_RESUME, q->port->index, 0);
}

/* Broken on purpose: send without credits. */
static void net_ignore_windows(struct ud_flows *f)
{
	for (int i = 0; i < UD_PEERS; i++)
		f->peers[i].read = f->peers[i].sent;
}

static int net_gather(struct datagrams *d, struct dg_qp *q)
{
	for (int i = 0; i < BATCH; i++)
		batch[i].bytes = batch_bytes[i];
	if (prng_chance(dg_rng(d), 30))
		ud_qp_stage(q->qp);
	if (d->plan.mode == SIM_NO_WINDOW)
		net_ignore_windows(&q->port->flows);
	return ud_qp_gather(q->qp, &q->port->flows, d->world->now, batch,
			    (int)prng_between(dg_rng(d), 1, BATCH));
}

/* Returns false if no more packets can be sent now. */
static bool net_send_batch(struct datagrams *d, struct dg_qp *q)
{
	int n = net_gather(d, q), taken;

	if (n == -EAGAIN)
		net_hold(d, q);
	if (n <= 0)
		return false;
	taken = net_socket_takes(d, n);
	for (int i = n; i-- > taken;)
		ud_flows_give_back(&q->port->flows, &batch[i]);
	net_launch_messages(d, q, taken);
	ud_qp_sent(q->qp, d->plan.mode == SIM_EARLY_SENT ? n : taken);
	if (taken == 0)
		net_wait(d, q);
	return taken > 0;
}

/* Poll first: failed requests are no longer in the send queue, and their completions name them. */
void dg_send(struct datagrams *d, struct dg_qp *q)
{
	dg_poll_sends(d, q);
	while (!d->world->violated && net_send_batch(d, q))
		;
}

/* --- sent later ----------------------------------------------------------------------------- */

static struct dg_qp *net_next_held(struct dg_port *p, uint64_t before)
{
	struct dg_qp *next = NULL;

	for (int i = 0; i < DG_QPS; i++) {
		struct dg_qp *q = &p->host->qp[i];

		if (q->port == p && q->held && q->held_order < before &&
		    (!next || q->held_order < next->held_order))
			next = q;
	}
	return next;
}

static void net_resume_held(struct datagrams *d, struct dg_port *p)
{
	uint64_t before = d->holds;
	struct dg_qp *q;

	while ((q = net_next_held(p, before))) {
		q->held = false;
		dg_send(d, q);
	}
}

void dg_on_time(struct datagrams *d, struct dg_port *p, bool writable)
{
	if (!writable) {
		p->patience_at = 0;
		net_resume_held(d, p);
		return;
	}
	for (int i = 0; i < DG_QPS; i++) {
		struct dg_qp *q = &p->host->qp[i];

		if (q->port == p && q->waits) {
			q->waits = false;
			dg_send(d, q);
		}
	}
}

/* --- received ------------------------------------------------------------------------------- */

static void net_read_later(struct datagrams *d, struct dg_port *p)
{
	uint64_t delay = prng_below(dg_rng(d), d->plan.read_ns), now = d->world->now;

	if (p->read_due || p->waiting == 0)
		return;
	if (p->paused_until > now + delay)
		delay = p->paused_until - now;
	p->read_due = true;
	dg_at(d, delay, EV_PUMP, p->index, 0);
}

/* Credits are small, so the socket always has room for them. */
static void net_take_credit(struct datagrams *d, struct dg_flight *f, const struct ud_header *h)
{
	bool made_room = ud_flows_on_credit(&f->to->flows, &f->packet, h->serial, h->qkey);

	datagram_seen.credits++;
	net_free(f);
	if (made_room)
		net_resume_held(d, f->to);
}

static bool net_is_from(const struct dg_flight *f, const struct ud_header *h)
{
	return f->packet.port == ud_port_of(h->from_qpn);
}

void dg_on_arrival(struct datagrams *d, struct dg_flight *f)
{
	struct dg_port *p = f->to;
	struct ud_header h;

	if (!ud_header_decode(f->packet.bytes, f->packet.len, &h) && h.opcode == UD_CREDIT &&
	    ud_port_of(h.to_qpn) == p->number && net_is_from(f, &h)) {
		net_take_credit(d, f, &h);
		return;
	}
	if (p->waiting == d->plan.socket) {
		datagram_seen.overflows++;
		if (dg_is_lossless(d))
			dg_violate(d, NULL, "a socket overflows although its sender counts");
		net_free(f);
		return;
	}
	p->socket[p->waiting++] = f;
	net_read_later(d, p);
}

static void net_send_credit(struct datagrams *d, struct dg_port *p, const struct ud_packet *asking,
			    const struct ud_header *h)
{
	struct ud_header credit = {.opcode = UD_CREDIT,
				   .serial = h->serial,
				   .qkey = d->plan.socket,
				   .from_qpn = h->to_qpn,
				   .to_qpn = h->from_qpn};
	uint8_t bytes[UD_HEADER_LEN];
	struct ud_packet c = {
		.path = asking->path, .port = asking->port, .bytes = bytes, .len = UD_HEADER_LEN};

	memcpy(c.path.from, asking->path.to, UD_GID_LEN);
	memcpy(c.path.to, asking->path.from, UD_GID_LEN);
	(void)ud_header_encode(bytes, sizeof(bytes), &credit);
	net_launch(d, p, &c, false);
}

static struct dg_qp *net_find_qp(struct dg_port *p, uint32_t qpn)
{
	for (int i = 0; i < DG_QPS; i++) {
		struct dg_qp *q = &p->host->qp[i];

		if (q->port == p && (q->qpn & 0xff) == (qpn & 0xff))
			return q;
	}
	return NULL;
}

static void net_deliver(struct datagrams *d, struct dg_port *p, struct dg_flight *f)
{
	struct ud_header h;
	struct dg_qp *q;

	if (ud_header_decode(f->packet.bytes, f->packet.len, &h)) {
		datagram_seen.malformed++;
		return;
	}
	if (ud_port_of(h.to_qpn) != p->number || !net_is_from(f, &h)) {
		datagram_seen.wrong_ports++;
		return;
	}
	if (h.asks)
		net_send_credit(d, p, &f->packet, &h);
	q = net_find_qp(p, h.to_qpn);
	if (q)
		dg_receive(d, q, &h, &f->packet, !f->from);
}

void dg_on_read(struct datagrams *d, struct dg_port *p)
{
	unsigned n = p->waiting < BATCH ? p->waiting : BATCH;

	p->read_due = false;
	for (unsigned i = 0; i < n && !d->world->violated; i++) {
		net_deliver(d, p, p->socket[i]);
		net_free(p->socket[i]);
	}
	memmove(p->socket, p->socket + n, (p->waiting - n) * sizeof(p->socket[0]));
	p->waiting -= n;
	net_read_later(d, p);
}

/* --- a stranger ----------------------------------------------------------------------------- */

/* Most forged packets name real queue pairs, and half of them contain the right Q_Key. */
static struct ud_header forge_header(struct datagrams *d)
{
	struct prng *rng = dg_rng(d);
	const struct dg_host *h = &d->host[prng_below(rng, 2)];
	const struct dg_qp *from = &d->host[1 - h->index].qp[prng_below(rng, DG_QPS)];
	const struct dg_qp *to = &h->qp[prng_below(rng, DG_QPS)];

	return (struct ud_header){
		.opcode = (enum ud_opcode)prng_below(rng, 3),
		.solicited = prng_chance(rng, 20),
		.asks = prng_chance(rng, 30),
		.serial = (uint8_t)prng_next(rng),
		.from_qpn = prng_chance(rng, 80) ? from->qpn : (uint32_t)prng_below(rng, 1u << 24),
		.to_qpn = prng_chance(rng, 80) ? to->qpn : (uint32_t)prng_below(rng, 1u << 24),
		.qkey = prng_chance(rng, 50) ? to->qkey : (uint32_t)prng_next(rng),
	};
}

void dg_forge(struct datagrams *d)
{
	struct prng *rng = dg_rng(d);
	struct dg_host *h = &d->host[prng_below(rng, 2)];
	struct ud_header header = forge_header(d);
	uint8_t bytes[UD_HEADER_LEN + FORGED_LEN_MAX];
	struct ud_packet p = {.bytes = bytes, .len = prng_below(rng, sizeof(bytes) + 1)};

	p.port = prng_chance(rng, 80) ? ud_port_of(header.from_qpn) : 999;
	memcpy(p.path.from, d->host[1 - h->index].gid, UD_GID_LEN);
	memcpy(p.path.to, h->gid, UD_GID_LEN);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)prng_next(rng);
	if (header.opcode == UD_CREDIT)
		p.len = UD_HEADER_LEN;
	if (p.len >= UD_HEADER_LEN)
		(void)ud_header_encode(bytes, UD_HEADER_LEN, &header);
	if (p.len > 0 && prng_chance(rng, 20))
		bytes[prng_below(rng, p.len)] ^= (uint8_t)(1u << prng_below(rng, 8));
	datagram_seen.forged +=
		net_carry(d, NULL, &h->port[prng_below(rng, d->plan.ports)], &p) != NULL;
}
