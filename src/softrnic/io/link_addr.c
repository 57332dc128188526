/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/link_addr.h"

#include <string.h>

bool link_addr_is_mapped(const struct link_addr *addr)
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return addr->family == LINK_IPV6 && !memcmp(addr->bytes, prefix, sizeof(prefix));
}

static bool link_addr_is_loopback(const struct link_addr *addr)
{
	static const uint8_t v6[16] = {[15] = 1};

	if (addr->family == LINK_IPV4)
		return addr->bytes[0] == 127;
	return addr->family == LINK_IPV6 && !memcmp(addr->bytes, v6, sizeof(v6));
}

/* The kernel answers a connection to one of the host's own addresses from that address. */
bool link_addr_same_host(const struct link_addr *a, const struct link_addr *b)
{
	if (a->family != b->family || a->family == LINK_NONE)
		return false;
	return (link_addr_is_loopback(a) && link_addr_is_loopback(b)) ||
	       !memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}
