/* SPDX-License-Identifier: BSD-3-Clause */
/* link_udp.h -- a UDP socket that many queue pairs for datagrams share. Any thread may send, but
 * only one at a time. Any thread may receive, also only one at a time. No function waits. */
#ifndef IO_LINK_UDP_H
#define IO_LINK_UDP_H

#include <stdbool.h>
#include <stdint.h>

#include "softrnic/io/link_addr.h"
#include "softrnic/proto/ud.h"

#define LINK_UDP_BATCH     32 /* greatest number of packets in one system call */
#define LINK_UDP_HOP_LIMIT 64 /* default hop limit */

struct link_udp {
	int fd;
	uint16_t port;
	bool ipv4; /* the socket has no IPv6 addresses */
	/* number of one sender's packets for which half of the receive buffer has room; the other
	 * half is for other senders */
	uint32_t window;
};

/* Open the socket at this address and port. If the family is LINK_NONE, open it at this port of all
 * addresses. Returns 0 or -errno. */
int link_udp_open(const struct link_addr *at, struct link_udp *u);
void link_udp_close(struct link_udp *u);
/* Send at most LINK_UDP_BATCH packets. Returns the number of sent packets, at least one, or
 * -EAGAIN. A packet that this host cannot send counts as sent, as if it were lost on its way. */
int link_udp_send(struct link_udp *u, const struct ud_packet *packets, int n);
/* Receive packets. `bytes` and `len` of each packet are the memory for it. Returns the number of
 * packets, or -EAGAIN if there are none. A packet that is longer than its memory is cut off. */
int link_udp_recv(struct link_udp *u, struct ud_packet *packets, int n);

#endif
