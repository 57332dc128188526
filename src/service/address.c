/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/address.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Returns true for an IPv6 address with or without a scope, as in fe80::1%eth0. */
static bool address_is_ipv6(const char *text)
{
	char literal[INET6_ADDRSTRLEN];
	size_t len = strcspn(text, "%");
	struct in6_addr in6;

	if (len >= sizeof(literal))
		return false;
	memcpy(literal, text, len);
	literal[len] = '\0';
	return inet_pton(AF_INET6, literal, &in6) == 1;
}

bool address_is_numeric(const char *host)
{
	struct in_addr in;

	return inet_pton(AF_INET, host, &in) == 1 || address_is_ipv6(host);
}

/* Returns 0 if the port is not valid. */
static uint16_t address_port_number(const char *text)
{
	char buf[1024], *end;
	struct servent entry, *found = NULL;
	unsigned long port;

	if (isdigit((unsigned char)text[0])) {
		port = strtoul(text, &end, 10);
		return *end || port > 65535 ? 0 : (uint16_t)port;
	}
	if (getservbyname_r(text, "tcp", &entry, buf, sizeof(buf), &found) || !found)
		return 0;
	return ntohs((uint16_t)found->s_port);
}

static const char *address_set_port(struct address *out, const char *text)
{
	uint16_t port = address_port_number(text);

	if (!port)
		return "the port is not a number from 1 to 65535, nor the name of a service";
	snprintf(out->port, sizeof(out->port), "%u", (unsigned)port);
	return NULL;
}

static const char *address_set_host(struct address *out, const char *text, size_t len)
{
	if (len == 0)
		return "the host name is empty";
	if (len >= sizeof(out->host))
		return "the host name is too long";
	memcpy(out->host, text, len);
	out->host[len] = '\0';
	return NULL;
}

static const char *address_parse_bracketed(const char *text, struct address *out)
{
	const char *end = strchr(text, ']');

	if (!end || (end[1] && end[1] != ':') ||
	    address_set_host(out, text + 1, (size_t)(end - text - 1)) ||
	    !address_is_ipv6(out->host))
		return "an IPv6 address in brackets looks like [::1] or [::1]:7204";
	return end[1] ? address_set_port(out, end + 2) : NULL;
}

/* Returns NULL, or the text of the error. */
static const char *address_parse_any(const char *text, struct address *out)
{
	const char *colon = strrchr(text, ':'), *why;

	if (text[0] == '[')
		return address_parse_bracketed(text, out);
	if (!colon || address_is_ipv6(text))
		return address_set_host(out, text, strlen(text));
	why = address_set_host(out, text, (size_t)(colon - text));
	return why ? why : address_set_port(out, colon + 1);
}

int address_parse(const char *text, const char *default_port, struct address *out,
		  struct error *err)
{
	struct address addr;
	const char *why;

	snprintf(addr.port, sizeof(addr.port), "%s", default_port);
	why = address_parse_any(text, &addr);
	if (why)
		return error_set(err, ERROR_ARGUMENT, 0, "'%s': %s", text, why);
	*out = addr;
	return 0;
}

int address_parse_listen(const char *text, const char *default_port, struct address *out,
			 struct error *err)
{
	int rc = address_parse(text, default_port, out, err);
	char host[ADDRESS_TEXT];
	struct address addr;
	size_t len = strlen(text);

	/* Try the whole text first: "::0" is an address. */
	if (!rc || len < 3 || len >= sizeof(host) || strcmp(text + len - 2, ":0") != 0)
		return rc;
	memcpy(host, text, len - 2);
	host[len - 2] = '\0';
	if (address_parse(host, "0", &addr, NULL) || strcmp(addr.port, "0") != 0)
		return rc;
	*out = addr;
	return 0;
}

char *address_show(const struct address *addr, char text[ADDRESS_TEXT])
{
	const char *fmt = strchr(addr->host, ':') ? "[%s]:%s" : "%s:%s";

	snprintf(text, ADDRESS_TEXT, fmt, addr->host, addr->port);
	return text;
}

static bool address_is_loopback_ipv4(const struct in_addr *in)
{
	return ntohl(in->s_addr) >> 24 == IN_LOOPBACKNET;
}

/* Returns true if a resolved socket address is this machine's loopback. */
static bool address_is_loopback_socket(const struct sockaddr *sa)
{
	const struct in6_addr *in6 = &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
	struct in_addr in;

	if (sa->sa_family == AF_INET)
		return address_is_loopback_ipv4(
			&((const struct sockaddr_in *)(const void *)sa)->sin_addr);
	if (sa->sa_family != AF_INET6)
		return false;
	memcpy(&in, &in6->s6_addr[12], sizeof(in));
	return IN6_IS_ADDR_LOOPBACK(in6) ||
	       (IN6_IS_ADDR_V4MAPPED(in6) && address_is_loopback_ipv4(&in));
}

bool address_is_loopback(const struct address *addr)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list, *info;
	bool all = true;

	if (getaddrinfo(addr->host, addr->port, &hints, &list))
		return false;
	for (info = list; info; info = info->ai_next)
		all = all && address_is_loopback_socket(info->ai_addr);
	freeaddrinfo(list);
	return all;
}

int address_resolve(const struct address *addr, struct address *found, int max, int *count,
		    struct error *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list, *info;
	int rc = getaddrinfo(addr->host, addr->port, &hints, &list);

	if (rc)
		return error_set(err, ERROR_UNREACHED, 0, "no such host '%s': %s", addr->host,
				 gai_strerror(rc));
	*count = 0;
	for (info = list; info && *count < max; info = info->ai_next) {
		found[*count] = *addr;
		if (!getnameinfo(info->ai_addr, info->ai_addrlen, found[*count].host,
				 sizeof(addr->host), NULL, 0, NI_NUMERICHOST))
			(*count)++;
	}
	freeaddrinfo(list);
	return *count ? 0
		      : error_set(err, ERROR_UNREACHED, 0, "host '%s' has no address", addr->host);
}
