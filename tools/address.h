/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * address.h -- HOST[:PORT] on a command line, and what the operating system says about it.
 */
#ifndef TOOL_ADDRESS_H
#define TOOL_ADDRESS_H

#include <stdbool.h>

struct address {
	char host[256];
	char port[8];
};

/* HOST, HOST:PORT, [IPv6], [IPv6]:PORT or a bare IPv6 literal. False with *why set. */
bool address_parse(const char *text, struct address *out, const char **why);
/* "host:port", with brackets around an IPv6 literal. Valid until the next call. */
const char *address_show(const struct address *addr);
/* The numeric addresses of a host name, at most max. 0, or CLI_REACH with the line printed. */
int address_resolve(const struct address *addr, struct address *found, int max, int *count);
/* Is the address ours and the port free? 0 or CLI_FILE, line printed. */
int address_probe_listen(const struct address *addr);

#endif
