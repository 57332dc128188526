/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ud_flow.h -- limits the packets that one port sends to another port before the other port has
 * read them.
 *
 * UDP does not slow down a sender: packets that do not fit into the receiver's socket are lost, and
 * with the kernel's default only about 46 packets of 4 KiB fit. So the packets between two ports
 * have serial numbers, and some of them ask for a credit. A credit is a packet that states the
 * serial number up to which the receiving port has read, and the port's window, which is the
 * greatest number of packets that may be under way.
 *
 * A credit can be lost or forged, and a peer can fail to send one. So a packet waits for at most
 * UD_PATIENCE_NS. After this time the packets under way count as lost, and the peer as silent: no
 * packet waits for a silent peer until it sends a credit again.
 *
 * A hostile peer could send each credit just before this limit, and all packets to other peers
 * would wait as well. So the waiting times for a peer are added up. Each packet that is sent to it
 * reduces the sum by UD_PATIENCE_SHARE_NS. As soon as the sum reaches UD_PATIENCE_NS, the peer
 * counts as silent. In the long run no packet delays other packets for longer than
 * UD_PATIENCE_SHARE_NS.
 *
 * Pure: no clock and no lock. The caller passes the time, and holds one lock for all calls with the
 * same table.
 */
#ifndef RNIC_UD_FLOW_H
#define RNIC_UD_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "softrnic/proto/ud.h"

#define UD_WINDOW     16  /* window of a peer that has sent no credit yet */
#define UD_WINDOW_MAX 127 /* half of the range of serial numbers */
/* every 8th packet asks for a credit; if a credit is lost, the next one replaces it */
#define UD_ASK_EACH 8
/* long enough that a waiting thread on a busy host gets the CPU at least once */
#define UD_PATIENCE_NS 1000000000ull
/* Half a second for each UD_WINDOW packets, which is longer than a round trip. */
#define UD_PATIENCE_SHARE_NS (UD_PATIENCE_NS / 32)
#define UD_PEERS             64

/* Another port, to which this port has sent packets. */
struct ud_peer {
	uint8_t gid[UD_GID_LEN];
	uint16_t port;
	/* serial numbers of the last packet sent, and of the last one read; they wrap around */
	uint8_t sent, read;
	uint8_t window;
	bool silent;         /* a full window of packets got no credit in time */
	uint64_t taken_at;   /* time of the last packet */
	uint64_t refused_at; /* time since which a packet waits; 0: no packet waits */
	/* sum of the waiting times, less UD_PATIENCE_SHARE_NS for each packet */
	uint64_t waited_ns;
};

/* All peers of a port, in a hash table without chains. If two peers have the same entry, the peer
 * that uses the entry now keeps it. */
struct ud_flows {
	struct ud_peer peers[UD_PEERS];
	unsigned silences; /* number of times that a peer became silent */
	/* time until which the packet that ud_flows_take() refused last must wait */
	uint64_t wait_until;
};

/*
 * Returns true if the packet may be sent. It then has its serial number, and counts as under way.
 */
bool ud_flows_take(struct ud_flows *f, struct ud_packet *p, uint64_t now);
/* Take back the serial number of the packet that was last taken for its peer, because this packet
 * was not sent. */
void ud_flows_give_back(struct ud_flows *f, const struct ud_packet *p);
/* Called when a credit with this serial number and window has arrived in the packet p. Returns true
 * if more packets may be sent now. */
bool ud_flows_on_credit(struct ud_flows *f, const struct ud_packet *p, uint8_t serial,
			uint32_t window);

#endif
