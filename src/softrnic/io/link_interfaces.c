/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/link_interfaces.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "softrnic/io/link_sockaddr.h"

unsigned link_interfaces(struct link_interface *list, unsigned max)
{
	struct ifaddrs *all, *it;
	unsigned n = 0;

	if (getifaddrs(&all)) {
		LOG_WARNING_LIMITED("the addresses of this host cannot be read: %s",
				    strerror(errno));
		return 0;
	}
	for (it = all; it && n < max; it = it->ifa_next) {
		if (!it->ifa_addr || !(it->ifa_flags & IFF_UP))
			continue;
		list[n].addr = link_addr_from(it->ifa_addr);
		list[n].index = if_nametoindex(it->ifa_name);
		n += list[n].addr.family != LINK_NONE;
	}
	freeifaddrs(all);
	return n;
}

static bool interfaces_parse_one(const char *text, size_t len, struct link_addr *addr)
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

/* Of the interface that has the address. */
static uint32_t interfaces_index_of(const struct link_addr *addr)
{
	struct link_interface list[64];
	unsigned n = link_interfaces(list, 64);

	for (unsigned i = 0; i < n; i++) {
		if (list[i].addr.family == addr->family && list[i].addr.scope == addr->scope &&
		    !memcmp(list[i].addr.bytes, addr->bytes, sizeof(addr->bytes)))
			return list[i].index;
	}
	return 0;
}

unsigned link_interfaces_parse(const char *text, struct link_interface *list, unsigned max)
{
	unsigned n = 0;

	while (n < max) {
		size_t len = strcspn(text, ",");

		if (!interfaces_parse_one(text, len, &list[n].addr))
			return 0;
		list[n].index = interfaces_index_of(&list[n].addr);
		n++;
		if (!text[len])
			break;
		text += len + 1;
	}
	return n;
}

#define ROUTE_PORT 9 /* discard: any port will do, as nothing is sent */

static int route_look_up(int fd, const struct link_addr *from, const struct link_addr *to,
			 struct link_addr *source)
{
	struct link_addr target = *to;
	struct sockaddr_storage ss;
	socklen_t len = link_addr_to(from, &ss);

	if (len && bind(fd, (struct sockaddr *)&ss, len))
		return -errno;
	target.port = ROUTE_PORT;
	len = link_addr_to(&target, &ss);
	if (connect(fd, (struct sockaddr *)&ss, len))
		return -errno;
	len = sizeof(ss);
	if (getsockname(fd, (struct sockaddr *)&ss, &len))
		return -errno;
	if (source) {
		*source = link_addr_from((struct sockaddr *)&ss);
		source->port = 0;
	}
	return 0;
}

int link_route(const struct link_addr *from, const struct link_addr *to, struct link_addr *source)
{
	int domain = to->family == LINK_IPV4 ? AF_INET : AF_INET6;
	int fd, ret;

	if (to->family == LINK_NONE || (from->family != LINK_NONE && from->family != to->family))
		return -ENETUNREACH;
	fd = socket(domain, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return errno == EAFNOSUPPORT ? -ENETUNREACH : -errno;
	ret = route_look_up(fd, from, to, source);
	close(fd);
	return ret;
}
