/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/link_addr.h"

#include <string.h>

static const uint8_t link_addr_prefix[12] = {[10] = 0xff, [11] = 0xff};

bool link_addr_is_mapped(const struct link_addr *addr)
{
	return addr->family == LINK_IPV6 &&
	       !memcmp(addr->bytes, link_addr_prefix, sizeof(link_addr_prefix));
}

void link_addr_to_gid(const struct link_addr *addr, uint8_t gid[16])
{
	if (addr->family != LINK_IPV4) {
		memcpy(gid, addr->bytes, 16);
		return;
	}
	memcpy(gid, link_addr_prefix, sizeof(link_addr_prefix));
	memcpy(gid + sizeof(link_addr_prefix), addr->bytes, 4);
}

static bool link_addr_is_loopback(const struct link_addr *addr)
{
	static const uint8_t v6[16] = {[15] = 1};

	if (addr->family == LINK_IPV4)
		return addr->bytes[0] == 127;
	return addr->family == LINK_IPV6 && !memcmp(addr->bytes, v6, sizeof(v6));
}

/* When a host connects to one of its own addresses, the kernel uses an address of the same host as
 * source. */
bool link_addr_same_host(const struct link_addr *a, const struct link_addr *b)
{
	if (a->family != b->family || a->family == LINK_NONE)
		return false;
	return (link_addr_is_loopback(a) && link_addr_is_loopback(b)) ||
	       !memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}
