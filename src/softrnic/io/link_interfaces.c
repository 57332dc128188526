/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/link_interfaces.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "softrnic/io/link_sockaddr.h"

#define INTERFACES_MAX 64

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

const struct link_interface *link_interfaces_find(const struct link_interface *list, unsigned n,
						  const struct link_addr *addr)
{
	for (unsigned i = 0; i < n; i++) {
		if (list[i].addr.family == addr->family && list[i].addr.scope == addr->scope &&
		    !memcmp(list[i].addr.bytes, addr->bytes, sizeof(addr->bytes)))
			return &list[i];
	}
	return NULL;
}

unsigned link_interfaces_parse(const char *text, struct link_interface *list, unsigned max)
{
	struct link_interface all[INTERFACES_MAX];
	unsigned count = link_interfaces(all, INTERFACES_MAX), n = 0;

	while (n < max) {
		const struct link_interface *found;
		size_t len = strcspn(text, ",");

		if (!link_addr_parse(text, len, &list[n].addr))
			return 0;
		found = link_interfaces_find(all, count, &list[n].addr);
		list[n].index = found ? found->index : 0;
		n++;
		if (!text[len])
			break;
		text += len + 1;
	}
	return n;
}

#define ROUTE_PORT 9 /* the discard port; any port would do, because nothing is sent */

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
