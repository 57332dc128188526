/* SPDX-License-Identifier: BSD-3-Clause */
/* link_interfaces.h -- the addresses of this host's network interfaces, and routes from them. */
#ifndef IO_LINK_INTERFACES_H
#define IO_LINK_INTERFACES_H

#include "softrnic/io/link_addr.h"

struct link_interface {
	struct link_addr addr; /* without a port */
	uint32_t index;        /* the interface's index; 0: unknown */
};

/* List the addresses of all interfaces that are up, in the kernel's order, at most `max`. Returns
 * their number; 0, which is logged, if the kernel lists none. */
unsigned link_interfaces(struct link_interface *list, unsigned max);
/* The row with this address; NULL: none of the n rows has it. */
const struct link_interface *link_interfaces_find(const struct link_interface *list, unsigned n,
						  const struct link_addr *addr);
/* Parse addresses between commas (link_addr_parse()). Returns their number, at most `max`; 0 if one
 * of them is invalid. */
unsigned link_interfaces_parse(const char *text, struct link_interface *list, unsigned max);
/*
 * Is there a route from one address (LINK_NONE: any) to the other? Returns 0, or -errno:
 * ENETUNREACH, EADDRNOTAVAIL. *source (may be NULL): the source address of its packets. No packet
 * is sent.
 */
int link_route(const struct link_addr *from, const struct link_addr *to, struct link_addr *source);

#endif
