/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_udp.h -- a UDP socket that many queue pairs of datagrams share. Any thread may send, one at a
 * time; likewise receive. Nothing here waits.
 */
#ifndef IO_LINK_UDP_H
#define IO_LINK_UDP_H

#include <stdbool.h>
#include <stdint.h>

#include "softrnic/io/link_addr.h"
#include "softrnic/proto/ud.h"

#define LINK_UDP_BATCH     32 /* packets of one system call */
#define LINK_UDP_HOP_LIMIT 64 /* where none is given */

struct link_udp {
	int fd;
	uint16_t port;
	bool ipv4;       /* the socket has no IPv6 addresses */
	uint32_t window; /* packets of one sender for which there is room besides others */
};

/* At this address and port, or, with LINK_NONE, at that port of all addresses. 0 or -errno. */
int link_udp_open(const struct link_addr *at, struct link_udp *u);
void link_udp_close(struct link_udp *u);
/*
 * At most LINK_UDP_BATCH packets: how many were taken, which is at least one, or -EAGAIN. A packet
 * that the host cannot send counts as taken, as one that is lost on its way.
 */
int link_udp_send(struct link_udp *u, const struct ud_packet *packets, int n);
/* How many have come; `bytes` and `len` of each are where it goes, and how much fits. -EAGAIN: none.
 * One that is longer is cut off. */
int link_udp_recv(struct link_udp *u, struct ud_packet *packets, int n);

#endif
