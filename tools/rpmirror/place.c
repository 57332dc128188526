/* SPDX-License-Identifier: BSD-3-Clause */
#include "place.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>

#include "../numbers.h"
#include "mirror/register/value.h"

static bool place_copy(char *to, size_t size, const char *from, size_t len)
{
	if (!len || len >= size)
		return false;
	memcpy(to, from, len);
	to[len] = '\0';
	return true;
}

/* Parse HOST[:PORT]. A HOST that contains colons is in brackets. */
static bool place_parse_host(char *text, struct mirror_member *m)
{
	char *port = NULL, *end;
	uint64_t number = PLACE_PORT;

	if (text[0] == '[') {
		end = strchr(++text, ']');
		if (!end || (end[1] && end[1] != ':'))
			return false;
		port = end[1] ? end + 2 : NULL;
		*end = '\0';
	} else {
		port = strchr(text, ':');
		if (port)
			*port++ = '\0';
	}
	if (port && !number_parse(port, 1, UINT16_MAX, &number))
		return false;
	m->port = (uint16_t)number;
	return place_copy(m->host, sizeof(m->host), text, strlen(text));
}

bool place_parse(const char *text, struct mirror_member *m, const char **why)
{
	const char *equal = strchr(text, '='), *path = equal ? strstr(equal, ":/") : NULL;
	char host[MIRROR_HOST_MAX + 16];

	*why = "it is NAME=HOST:PATH, and PATH begins with '/'";
	if (!path)
		return false;
	*why = "the name has letters, digits and ._- only, at most 31";
	if (!place_copy(m->name, sizeof(m->name), text, (size_t)(equal - text)) ||
	    !value_is_name(m->name, MIRROR_NAME_MAX))
		return false;
	*why = "the host is HOST or HOST:PORT, an IPv6 address in brackets";
	if (!place_copy(host, sizeof(host), equal + 1, (size_t)(path - equal - 1)) ||
	    !place_parse_host(host, m))
		return false;
	*why = "the path is too long";
	return place_copy(m->path, sizeof(m->path), path + 1, strlen(path + 1));
}

static bool place_is_same(const struct sockaddr *a, const struct sockaddr *b)
{
	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;

	if (!b || a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	return a->sa_family == AF_INET6 && !memcmp(&a6->sin6_addr, &b6->sin6_addr, 16);
}

/* All addresses of 127.0.0.0/8 are this machine, although the system lists only one of them. */
static bool place_is_loopback(const struct sockaddr *a)
{
	const struct sockaddr_in *a4 = (const void *)a;

	return a->sa_family == AF_INET && ntohl(a4->sin_addr.s_addr) >> 24 == 127;
}

bool place_is_here(const char *host)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
	struct ifaddrs *own = NULL;
	bool is_here = false;

	if (!getaddrinfo(host, NULL, &hints, &found) && !getifaddrs(&own))
		for (const struct addrinfo *a = found; a; a = a->ai_next) {
			is_here |= place_is_loopback(a->ai_addr);
			for (const struct ifaddrs *i = own; i; i = i->ifa_next)
				is_here |= place_is_same(a->ai_addr, i->ifa_addr);
		}
	if (found)
		freeaddrinfo(found);
	if (own)
		freeifaddrs(own);
	return is_here;
}
