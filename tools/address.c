/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "address.h"
#include "cli.h"

/* With or without a scope, as in fe80::1%eth0. */
static bool is_ipv6(const char *text)
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

static bool set_port(struct address *out, const char *text, const char **why)
{
	uint64_t port;

	if (!cli_parse_number(text, 1, 65535, &port)) {
		*why = "the port is not a number from 1 to 65535";
		return false;
	}
	snprintf(out->port, sizeof(out->port), "%u", (unsigned)port);
	return true;
}

static bool set_host(struct address *out, const char *text, size_t len, const char **why)
{
	if (len == 0 || len >= sizeof(out->host)) {
		*why = len ? "the host name is too long" : "the host name is empty";
		return false;
	}
	memcpy(out->host, text, len);
	out->host[len] = '\0';
	return true;
}

static bool parse_bracketed(const char *text, struct address *out, const char **why)
{
	const char *end = strchr(text, ']');

	*why = "an IPv6 address in brackets looks like [::1] or [::1]:7204";
	if (!end || (end[1] && end[1] != ':'))
		return false;
	if (!set_host(out, text + 1, (size_t)(end - text - 1), why) || !is_ipv6(out->host))
		return false;
	return !end[1] || set_port(out, end + 2, why);
}

bool address_parse(const char *text, struct address *out, const char **why)
{
	const char *colon = strrchr(text, ':');

	snprintf(out->port, sizeof(out->port), "%s", CLI_DEFAULT_PORT);
	if (text[0] == '[')
		return parse_bracketed(text, out, why);
	if (!colon || is_ipv6(text))
		return set_host(out, text, strlen(text), why);
	return set_host(out, text, (size_t)(colon - text), why) && set_port(out, colon + 1, why);
}

const char *address_show(const struct address *addr)
{
	static char shown[sizeof(addr->host) + sizeof(addr->port) + 4];
	const char *fmt = strchr(addr->host, ':') ? "[%s]:%s" : "%s:%s";

	snprintf(shown, sizeof(shown), fmt, addr->host, addr->port);
	return shown;
}

static int lookup(const struct address *addr, int flags, struct addrinfo **list)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags};

	return getaddrinfo(addr->host, addr->port, &hints, list);
}

int address_resolve(const struct address *addr, struct address *found, int max, int *count)
{
	struct addrinfo *list, *info;
	int rc = lookup(addr, 0, &list);

	if (rc)
		return cli_fail(CLI_REACH, "no such host '%s': %s", addr->host, gai_strerror(rc));
	*count = 0;
	for (info = list; info && *count < max; info = info->ai_next) {
		found[*count] = *addr;
		if (!getnameinfo(info->ai_addr, info->ai_addrlen, found[*count].host,
				 sizeof(addr->host), NULL, 0, NI_NUMERICHOST))
			(*count)++;
	}
	freeaddrinfo(list);
	return *count ? CLI_OK : cli_fail(CLI_REACH, "host '%s' has no address", addr->host);
}

static int try_to_bind(const struct addrinfo *info)
{
	int one = 1, err = 0;
	int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return errno;
	/* A server that has just been restarted must not fail on its own TIME_WAIT. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, info->ai_addr, info->ai_addrlen) || listen(fd, 1))
		err = errno;
	close(fd);
	return err;
}

int address_probe_listen(const struct address *addr)
{
	struct addrinfo *list;
	int rc = lookup(addr, AI_PASSIVE, &list);

	if (rc)
		return cli_fail(CLI_FILE, "no such address '%s' to listen on: %s", addr->host,
				gai_strerror(rc));
	rc = try_to_bind(list);
	freeaddrinfo(list);
	return rc ? cli_fail(CLI_FILE, "cannot listen on %s: %s; choose another --addr or --port",
			     address_show(addr), strerror(rc))
		  : CLI_OK;
}
