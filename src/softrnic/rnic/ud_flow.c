/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/rnic/ud_flow.h"

#include <string.h>

static uint8_t flow_under_way(const struct ud_peer *peer)
{
	return (uint8_t)(peer->sent - peer->read);
}

static struct ud_peer *flow_place(struct ud_flows *f, const uint8_t gid[UD_GID_LEN], uint16_t port)
{
	uint32_t hash = port;

	for (int i = 0; i < UD_GID_LEN; i++)
		hash = hash * 31 + gid[i];
	return &f->peers[(hash ^ hash >> 16) % UD_PEERS];
}

static bool flow_is(const struct ud_peer *peer, const uint8_t gid[UD_GID_LEN], uint16_t port)
{
	return peer->port == port && !memcmp(peer->gid, gid, sizeof(peer->gid));
}

/*
 * Is the entry of this peer in use? The last packets of a burst ask for no credit, so a few packets
 * without a credit do not count. More of them count as lost after UD_PATIENCE_NS without a packet.
 */
static bool flow_is_used(const struct ud_peer *peer, uint64_t now)
{
	return !peer->silent && flow_under_way(peer) >= UD_ASK_EACH &&
	       now - peer->taken_at < UD_PATIENCE_NS;
}

/* Returns the entry of the packet's destination, or NULL if another peer uses this entry. */
static struct ud_peer *flow_to(struct ud_flows *f, const struct ud_packet *p, uint64_t now)
{
	struct ud_peer *peer = flow_place(f, p->path.to, p->port);

	if (flow_is(peer, p->path.to, p->port))
		return peer;
	if (flow_is_used(peer, now))
		return NULL;
	memcpy(peer->gid, p->path.to, sizeof(peer->gid));
	peer->port = p->port;
	peer->read = peer->sent;
	peer->window = UD_WINDOW;
	peer->silent = false;
	peer->refused_at = peer->waited_ns = 0;
	return peer;
}

/* Returns the time at which the wait of the present packet ends at the latest. */
static uint64_t flow_wait_until(const struct ud_peer *peer)
{
	uint64_t no_news = peer->taken_at + UD_PATIENCE_NS;
	uint64_t used_up = peer->refused_at + UD_PATIENCE_NS - peer->waited_ns;

	return no_news < used_up ? no_news : used_up;
}

static void flow_count(struct ud_peer *peer, uint64_t now)
{
	peer->waited_ns += peer->refused_at ? now - peer->refused_at : 0;
	peer->refused_at = 0;
	if (peer->waited_ns > UD_PATIENCE_NS)
		peer->waited_ns = UD_PATIENCE_NS;
	peer->taken_at = now;
	peer->waited_ns -=
		peer->waited_ns < UD_PATIENCE_SHARE_NS ? peer->waited_ns : UD_PATIENCE_SHARE_NS;
}

static bool flow_has_room(struct ud_flows *f, struct ud_peer *peer, uint64_t now)
{
	if (flow_under_way(peer) < peer->window)
		return true;
	if (!peer->silent && !peer->refused_at)
		peer->refused_at = now;
	if (!peer->silent && now < flow_wait_until(peer))
		return false;
	f->silences += !peer->silent;
	peer->silent = true;
	peer->read = peer->sent; /* count the packets under way as lost */
	return true;
}

bool ud_flows_take(struct ud_flows *f, struct ud_packet *p, uint64_t now)
{
	struct ud_peer *peer = flow_to(f, p, now);

	p->asks = false;
	p->serial = 0;
	if (!peer)
		return true;
	if (!flow_has_room(f, peer, now)) {
		f->wait_until = flow_wait_until(peer);
		return false;
	}
	p->serial = ++peer->sent;
	p->asks = flow_under_way(peer) >= peer->window || p->serial % UD_ASK_EACH == 0;
	flow_count(peer, now);
	return true;
}

void ud_flows_give_back(struct ud_flows *f, const struct ud_packet *p)
{
	struct ud_peer *peer = flow_place(f, p->path.to, p->port);

	if (flow_is(peer, p->path.to, p->port) && flow_under_way(peer) && peer->sent == p->serial)
		peer->sent--;
}

bool ud_flows_on_credit(struct ud_flows *f, const struct ud_packet *p, uint8_t serial,
			uint32_t window)
{
	struct ud_peer *peer = flow_place(f, p->path.from, p->port);
	uint8_t news = (uint8_t)(serial - peer->read);

	if (!flow_is(peer, p->path.from, p->port))
		return false;
	peer->silent = false;
	if (!news || news > flow_under_way(peer))
		return false; /* the credit is old or forged */
	peer->read = serial;
	peer->window = window > UD_WINDOW_MAX ? UD_WINDOW_MAX : (uint8_t)window;
	if (!window)
		peer->window = 1;
	return true;
}
