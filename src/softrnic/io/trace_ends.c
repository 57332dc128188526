/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/trace_ends.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

static bool is_v4(const struct sockaddr_storage *ss)
{
	return ss->ss_family == AF_INET ||
	       IN6_IS_ADDR_V4MAPPED(&((const struct sockaddr_in6 *)ss)->sin6_addr);
}

/* What a socket of both families calls ::ffff:192.0.2.1 is IPv4 on the wire. */
static void fill_end(struct tcpip_end *end, const struct sockaddr_storage *ss)
{
	const struct sockaddr_in *sin = (const struct sockaddr_in *)ss;
	const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)ss;

	memset(end, 0, sizeof(*end));
	end->port = ntohs(sin->sin_port); /* in the same place in both */
	if (ss->ss_family == AF_INET)
		memcpy(end->addr, &sin->sin_addr, 4);
	else if (is_v4(ss))
		memcpy(end->addr, sin6->sin6_addr.s6_addr + 12, 4);
	else
		memcpy(end->addr, &sin6->sin6_addr, 16);
}

int trace_ends(struct flow *f, int fd)
{
	struct sockaddr_storage us = {0}, peer = {0};
	socklen_t us_len = sizeof(us), peer_len = sizeof(peer);

	if (getsockname(fd, (struct sockaddr *)&us, &us_len) ||
	    getpeername(fd, (struct sockaddr *)&peer, &peer_len))
		return -errno;
	f->v6 = !is_v4(&us);
	fill_end(&f->end[FLOW_US], &us);
	fill_end(&f->end[FLOW_PEER], &peer);
	return 0;
}

/* FNV-1a */
static uint64_t hash_end(uint64_t h, const struct tcpip_end *end)
{
	for (size_t i = 0; i < sizeof(end->addr); i++)
		h = (h ^ end->addr[i]) * 0x100000001b3ull;
	return (h ^ end->port) * 0x100000001b3ull;
}

uint64_t trace_key(const struct flow *f, enum flow_side initiator)
{
	uint64_t h = hash_end(0xcbf29ce484222325ull, &f->end[initiator]);

	return hash_end(h, &f->end[initiator == FLOW_US ? FLOW_PEER : FLOW_US]);
}
