/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/link_sockaddr.h"

#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>

struct link_addr link_addr_from(const struct sockaddr *sa)
{
	struct link_addr addr = {.family = LINK_NONE};

	if (sa->sa_family == AF_INET) {
		const struct sockaddr_in *sin = (const struct sockaddr_in *)sa;

		addr.family = LINK_IPV4;
		addr.port = ntohs(sin->sin_port);
		memcpy(addr.bytes, &sin->sin_addr, sizeof(sin->sin_addr));
	} else if (sa->sa_family == AF_INET6) {
		const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)sa;

		addr.family = LINK_IPV6;
		addr.port = ntohs(sin6->sin6_port);
		addr.scope = sin6->sin6_scope_id;
		memcpy(addr.bytes, &sin6->sin6_addr, sizeof(sin6->sin6_addr));
	}
	return addr;
}

socklen_t link_addr_to(const struct link_addr *addr, struct sockaddr_storage *ss)
{
	struct sockaddr_in *sin = (struct sockaddr_in *)ss;
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)ss;

	memset(ss, 0, sizeof(*ss));
	if (addr->family == LINK_IPV4) {
		sin->sin_family = AF_INET;
		sin->sin_port = htons(addr->port);
		memcpy(&sin->sin_addr, addr->bytes, sizeof(sin->sin_addr));
		return sizeof(*sin);
	}
	if (addr->family == LINK_IPV6) {
		sin6->sin6_family = AF_INET6;
		sin6->sin6_port = htons(addr->port);
		sin6->sin6_scope_id = addr->scope;
		memcpy(&sin6->sin6_addr, addr->bytes, sizeof(sin6->sin6_addr));
		return sizeof(*sin6);
	}
	return 0;
}

bool link_addr_parse(const char *text, size_t len, struct link_addr *addr)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM}, *info;
	char one[INET6_ADDRSTRLEN + IF_NAMESIZE + 1];

	if (len == 0 || len >= sizeof(one))
		return false;
	memcpy(one, text, len);
	one[len] = '\0';
	if (getaddrinfo(one, NULL, &hints, &info))
		return false;
	*addr = link_addr_from(info->ai_addr);
	freeaddrinfo(info);
	return true;
}
