/* SPDX-License-Identifier: BSD-3-Clause */
/* link_addr.h -- the address of one end of a link. All bytes of the struct are set, so that
 * addresses can be compared by memcmp(). */
#ifndef IO_LINK_ADDR_H
#define IO_LINK_ADDR_H

#include <stdbool.h>
#include <stdint.h>

enum link_family { LINK_NONE, LINK_IPV4, LINK_IPV6 };

struct link_addr {
	/* in network order; an IPv4 address takes the first 4 bytes, the others are zero */
	uint8_t bytes[16];
	/* interface of an IPv6 address that is valid on one interface only; else 0 */
	uint32_t scope;
	uint16_t port;
	uint16_t family; /* enum link_family; LINK_NONE: no address */
};

/* Is this an IPv4 address in IPv6's form, such as ::ffff:192.0.2.1? */
bool link_addr_is_mapped(const struct link_addr *addr);
/* Are both addresses of the same host, that is, equal or both loopback? */
bool link_addr_same_host(const struct link_addr *a, const struct link_addr *b);

/* Convert to the 16 bytes of RoCE's form. An IPv4 address is mapped to IPv6. */
void link_addr_to_gid(const struct link_addr *addr, uint8_t gid[16]);

#endif
