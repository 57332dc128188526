/* SPDX-License-Identifier: BSD-3-Clause */
#include "regions/target.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Returns true for an IPv6 address with or without a scope, as in fe80::1%eth0. */
static bool target_is_ipv6(const char *text)
{
	char literal[INET6_ADDRSTRLEN];
	struct in6_addr in6;

	snprintf(literal, sizeof(literal), "%.*s", (int)strcspn(text, "%"), text);
	return inet_pton(AF_INET6, literal, &in6) == 1;
}

/* Returns the length of the host, which ends at a colon or at the end of the text. An IPv6 address
 * contains colons, and may be enclosed in brackets. */
static size_t target_host_len(const char *text)
{
	const char *bracket = text[0] == '[' ? strchr(text, ']') : NULL;

	if (bracket)
		return (size_t)(bracket + 1 - text);
	return target_is_ipv6(text) ? strlen(text) : strcspn(text, ":");
}

/* Returns the length of ":PORT" at the beginning of text, or 0 if text does not begin with a
 * port. */
static size_t target_port_len(const char *text)
{
	size_t digits = text[0] == ':' ? strspn(text + 1, "0123456789") : 0;

	return digits && (!text[1 + digits] || text[1 + digits] == ':') ? 1 + digits : 0;
}

int target_parse(const char *text, struct target *target, struct error *err)
{
	char address[ADDRESS_TEXT + 16];
	size_t len = target_host_len(text);
	const char *region;
	int rc;

	target->region[0] = '\0';
	len += target_port_len(text + len);
	if (text[len] && text[len] != ':')
		len = strlen(text); /* not a valid address; the parser reports the reason */
	snprintf(address, sizeof(address), "%.*s", (int)len, text);
	rc = address_parse(address, TARGET_PORT, &target->server, err);
	if (rc || !text[len])
		return rc;
	region = text + len + 1;
	if (!region[0] || strlen(region) > HELLO_NAME_MAX)
		return error_set(err, ERROR_ARGUMENT, EINVAL,
				 "'%s' is not a region's name of 1 to %d characters", region,
				 HELLO_NAME_MAX);
	strcpy(target->region, region);
	return 0;
}
