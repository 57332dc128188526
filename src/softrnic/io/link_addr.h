/* SPDX-License-Identifier: BSD-3-Clause */
/* link_addr.h -- the address of one end of a link. Compared with memcmp(): all bytes are set. */
#ifndef IO_LINK_ADDR_H
#define IO_LINK_ADDR_H

#include <stdbool.h>
#include <stdint.h>

enum link_family { LINK_NONE, LINK_IPV4, LINK_IPV6 };

struct link_addr {
	uint8_t bytes[16]; /* in network order; IPv4: the first 4, the others are zero */
	uint32_t scope;    /* of an IPv6 address that is valid on one interface only; else 0 */
	uint16_t port;
	uint16_t family; /* enum link_family; LINK_NONE: no address */
};

/* An IPv4 address in IPv6's form, ::ffff:192.0.2.1. */
bool link_addr_is_mapped(const struct link_addr *addr);
/* Are both addresses of the same host: equal, or both loopback? */
bool link_addr_same_host(const struct link_addr *a, const struct link_addr *b);

/* The address in RoCE's form, 16 bytes: an IPv4 address is mapped to IPv6. */
void link_addr_to_gid(const struct link_addr *addr, uint8_t gid[16]);

#endif
