/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ud_flow.h -- how many packets one port may send to another before that has read them.
 *
 * UDP gives a sender no back pressure: what does not fit into the receiver's socket is lost, and
 * with the kernel's default about 46 packets of 4 KiB fit. So the packets between two ports have
 * serial numbers, and some of them ask for a credit: a packet with the number up to which the
 * receiving port has read, and with its window: how many packets may be under way.
 *
 * A credit may be lost or forged, and a peer may send none. So a packet waits for at most
 * UD_PATIENCE_NS; then those before it count as lost, and the peer as silent: nothing waits for it
 * until it sends a credit again.
 *
 * A peer could send each credit just before that, and packets to other peers wait behind those to it.
 * So the waits for a peer are added up, each packet that leaves takes UD_PATIENCE_SHARE_NS off the
 * sum, and the peer is silent as soon as the sum is UD_PATIENCE_NS. In the long run no packet delays
 * the others for longer than that share.
 *
 * Pure: no clock and no lock. The caller has the time, and one lock for all calls with a table.
 */
#ifndef RNIC_UD_FLOW_H
#define RNIC_UD_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "softrnic/proto/ud.h"

#define UD_WINDOW      16  /* of a peer that has sent no credit yet */
#define UD_WINDOW_MAX  127 /* half of the serial numbers */
#define UD_ASK_EACH    8   /* one of so many asks: if a credit is lost, the next one has its news */
#define UD_PATIENCE_NS 1000000000ull /* a thread on a busy host gets the CPU at least once */
/* Half a second for each UD_WINDOW packets: longer than the way there and back takes. */
#define UD_PATIENCE_SHARE_NS (UD_PATIENCE_NS / 32)
#define UD_PEERS             64

/* Another port. */
struct ud_peer {
	uint8_t gid[UD_GID_LEN];
	uint16_t port;
	uint8_t sent, read; /* serial numbers of the last ones; they wrap around */
	uint8_t window;
	bool silent;         /* it has not sent a credit for what filled the window */
	uint64_t taken_at;   /* when the last packet was */
	uint64_t refused_at; /* since when a packet waits; 0: none does */
	uint64_t waited_ns;  /* the sum of the waits, less what packets took off it */
};

/* All peers of a port. Of two that have the same place, the one that is used keeps it. */
struct ud_flows {
	struct ud_peer peers[UD_PEERS];
	unsigned silences;   /* how often a peer became silent */
	uint64_t wait_until; /* of the packet that ud_flows_take() refused last */
};

/* May the packet leave? Then it has its serial number, and counts as under way. */
bool ud_flows_take(struct ud_flows *f, struct ud_packet *p, uint64_t now);
/* The packet that was the last one to be taken for its peer has not left. */
void ud_flows_give_back(struct ud_flows *f, const struct ud_packet *p);
/* A credit with that serial number and window has come by the packet. True: it made room. */
bool ud_flows_on_credit(struct ud_flows *f, const struct ud_packet *p, uint8_t serial,
			uint32_t window);

#endif
