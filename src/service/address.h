/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * address.h -- parses the address of a server, and resolves it to numeric addresses.
 *
 * Thread-safe.
 */
#ifndef SERVICE_ADDRESS_H
#define SERVICE_ADDRESS_H

#include <stdbool.h>

#include "base/error.h"

#define ADDRESS_TEXT 272

struct address {
	char host[256];
	char port[8]; /* a number */
};

/*
 * Parse HOST, HOST:PORT, [IPv6], [IPv6]:PORT or a bare IPv6 literal. PORT is a number from 1 to
 * 65535 or the name of a TCP service (services(5)); without a PORT, default_port is used. Returns 0
 * or ERROR_ARGUMENT.
 */
int address_parse(const char *text, const char *default_port, struct address *out,
		  struct error *err);
/* Like address_parse(), for a server, which may use port 0: any free port. */
int address_parse_listen(const char *text, const char *default_port, struct address *out,
			 struct error *err);
/* Write "host:port" to text, with brackets around an IPv6 literal, and return text. */
char *address_show(const struct address *addr, char text[ADDRESS_TEXT]);
/* Returns true if host is an IPv4 address, or an IPv6 address with or without a scope. */
bool address_is_numeric(const char *host);
/* Returns true if all numeric addresses of addr lead to this machine only. */
bool address_is_loopback(const struct address *addr);
/*
 * Find the numeric addresses of the host, at most max, in the order of preference. ERROR_UNREACHED:
 * there is no address.
 */
int address_resolve(const struct address *addr, struct address *found, int max, int *count,
		    struct error *err);

#endif
