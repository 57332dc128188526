/* SPDX-License-Identifier: BSD-3-Clause */
/* link_udp.h -- a UDP socket that many queue pairs of datagrams share. Any thread may send, one at
 * a time; likewise any thread may receive. No function waits. */
#ifndef IO_LINK_UDP_H
#define IO_LINK_UDP_H

#include <stdbool.h>
#include <stdint.h>

#include "softrnic/io/link_addr.h"
#include "softrnic/proto/ud.h"

#define LINK_UDP_BATCH     32 /* packets of one system call */
#define LINK_UDP_HOP_LIMIT 64 /* default hop limit */

struct link_udp {
	int fd;
	uint16_t port;
	bool ipv4;       /* the socket has no IPv6 addresses */
	uint32_t window; /* packets of one sender that fit besides others */
};

/* Open the socket at this address and port, or, with LINK_NONE, at the port of all addresses.
 * Returns 0 or -errno. */
int link_udp_open(const struct link_addr *at, struct link_udp *u);
void link_udp_close(struct link_udp *u);
/* Send at most LINK_UDP_BATCH packets. Returns the number of sent packets, at least one, or
 * -EAGAIN. A packet that the host cannot send counts as sent, like one that is lost on its way. */
int link_udp_send(struct link_udp *u, const struct ud_packet *packets, int n);
/* Receive packets; each one's `bytes` and `len` are its room. Returns their number; -EAGAIN: none.
 * A longer packet is cut off. */
int link_udp_recv(struct link_udp *u, struct ud_packet *packets, int n);

#endif
