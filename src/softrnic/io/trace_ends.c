/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/trace_impl.h"

#include <string.h>

static bool trace_is_v4(const struct link_addr *addr)
{
	return addr->family == LINK_IPV4 || link_addr_is_mapped(addr);
}

/* Convert an address. A socket for both families shows an IPv4 address as ::ffff:192.0.2.1; on the
 * wire it is IPv4. */
static void trace_fill_end(struct tcpip_end *end, const struct link_addr *addr)
{
	memset(end, 0, sizeof(*end));
	end->port = addr->port;
	if (link_addr_is_mapped(addr))
		memcpy(end->addr, addr->bytes + 12, 4);
	else
		memcpy(end->addr, addr->bytes, trace_is_v4(addr) ? 4 : 16);
}

void trace_ends(struct flow *f, const struct link_addr *us, const struct link_addr *peer)
{
	f->v6 = !trace_is_v4(us);
	trace_fill_end(&f->end[FLOW_US], us);
	trace_fill_end(&f->end[FLOW_PEER], peer);
}

/* The hash function is FNV-1a. */
static uint64_t trace_hash_end(uint64_t h, const struct tcpip_end *end)
{
	for (size_t i = 0; i < sizeof(end->addr); i++)
		h = (h ^ end->addr[i]) * 0x100000001b3ull;
	return (h ^ end->port) * 0x100000001b3ull;
}

uint64_t trace_key(const struct flow *f, enum flow_side initiator)
{
	uint64_t h = trace_hash_end(0xcbf29ce484222325ull, &f->end[initiator]);

	return trace_hash_end(h, &f->end[initiator == FLOW_US ? FLOW_PEER : FLOW_US]);
}
