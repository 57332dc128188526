/* SPDX-License-Identifier: BSD-3-Clause */
/* link_interfaces.h -- the addresses of this host's network interfaces, and routes from them. */
#ifndef IO_LINK_INTERFACES_H
#define IO_LINK_INTERFACES_H

#include "softrnic/io/link_addr.h"

struct link_interface {
	struct link_addr addr; /* without a port */
	uint32_t index;        /* the interface's index; 0: unknown */
};

/* List at most `max` addresses of all interfaces that are up, in the kernel's order. Returns their
 * number. If the kernel lists none, this is logged and 0 is returned. */
unsigned link_interfaces(struct link_interface *list, unsigned max);
/* Returns the row with this address, or NULL if none of the n rows has it. */
const struct link_interface *link_interfaces_find(const struct link_interface *list, unsigned n,
						  const struct link_addr *addr);
/* Parse addresses separated by commas, by link_addr_parse(). Returns their number, at most `max`,
 * or 0 if one of them is invalid. */
unsigned link_interfaces_parse(const char *text, struct link_interface *list, unsigned max);
/*
 * Is there a route from one address (LINK_NONE: any) to the other? Returns 0, or -errno:
 * ENETUNREACH, EADDRNOTAVAIL. *source (`source` may be NULL) is the source address of packets on
 * this route. No packet is sent.
 */
int link_route(const struct link_addr *from, const struct link_addr *to, struct link_addr *source);

#endif
