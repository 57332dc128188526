/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmem/target.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpmem/errmsg.h"

#define TARGET_SCHEME "rpma://"

/* Copy len bytes and append a NUL. Returns false if dst, which has `size` bytes, is too small. */
static bool target_copy(char *dst, size_t size, const char *text, size_t len)
{
	if (len >= size)
		return false;
	memcpy(dst, text, len);
	dst[len] = '\0';
	return true;
}

static bool target_port_is_valid(const char *port)
{
	char *end;
	unsigned long n;

	if (!isdigit((unsigned char)port[0]) || strlen(port) > 5)
		return false;
	n = strtoul(port, &end, 10);
	return !*end && n >= 1 && n <= 65535;
}

/* Parse "host", "host:port", "[v6]", "[v6]:port", or an IPv6 address, which has at least two
 * colons. */
static const char *target_parse_host(const char *text, struct target *t)
{
	const char *end, *port = NULL;
	bool fits;

	if (text[0] == '[') {
		end = strchr(text, ']');
		if (!end || (end[1] && end[1] != ':'))
			return "an address in brackets looks like [::1] or [::1]:22";
		port = end[1] ? end + 2 : NULL;
		fits = target_copy(t->host, sizeof(t->host), text + 1, (size_t)(end - text - 1));
	} else {
		end = strchr(text, ':');
		if (end && strchr(end + 1, ':'))
			end = NULL;
		port = end ? end + 1 : NULL;
		fits = target_copy(t->host, sizeof(t->host), text,
				   end ? (size_t)(end - text) : strlen(text));
	}
	if (!fits)
		return "the host is too long";
	if (!t->host[0])
		return "the host is empty";
	if (text[0] == '[' && !address_is_numeric(t->host))
		return "brackets hold a numeric address, as in [::1]:22";
	if (port && !target_port_is_valid(port))
		return "the port is not a number from 1 to 65535";
	if (port)
		snprintf(t->port, sizeof(t->port), "%s", port);
	return NULL;
}

/*
 * ssh would treat a leading '-' as an option. ssh_config(5) may put the user and the host into
 * another command (%r, %h), in which the forbidden characters have a meaning for the shell.
 */
static const char *target_judge_word(const char *word)
{
	if (word[0] == '-')
		return "a user or a host begins with '-'";
	for (const char *c = word; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f || strchr("'`\"$\\;&<>|(){}", *c))
			return "a user or a host has a character that a shell would understand";
	return NULL;
}

/* Returns NULL, or the text of the error. The host begins after the last '@', as ssh parses it. */
static const char *target_parse_ssh(const char *text, struct target *t)
{
	const char *at = strrchr(text, '@'), *why;

	if (at) {
		if (at == text)
			return "the user is empty";
		if (!target_copy(t->user, sizeof(t->user), text, (size_t)(at - text)))
			return "the user is too long";
		text = at + 1;
	}
	why = target_parse_host(text, t);
	/* Check the host here, without brackets and user, as ssh gets it. */
	if (!why)
		why = target_judge_word(t->user);
	return why ? why : target_judge_word(t->host);
}

static int target_parse_direct(const char *text, struct target *t)
{
	struct address addr;
	struct error err;

	if (address_parse(text, TARGET_DIRECT_PORT, &addr, &err))
		return errmsg_fail(EINVAL, "invalid target " TARGET_SCHEME "%s: %s", text,
				   err.text);
	t->direct = true;
	snprintf(t->host, sizeof(t->host), "%s", addr.host);
	snprintf(t->port, sizeof(t->port), "%s", addr.port);
	return 0;
}

int target_parse(const char *text, struct target *target)
{
	const char *why;

	memset(target, 0, sizeof(*target));
	if (!text)
		return errmsg_fail(EINVAL, "the target is NULL");
	if (!strncmp(text, TARGET_SCHEME, strlen(TARGET_SCHEME)))
		return target_parse_direct(text + strlen(TARGET_SCHEME), target);
	why = target_parse_ssh(text, target);
	return why ? errmsg_fail(EINVAL, "invalid target '%s': %s", text, why) : 0;
}

int target_resolve(const char *host, const char *port, struct address *found, int max)
{
	struct address addr;
	int count = 0;

	snprintf(addr.host, sizeof(addr.host), "%s", host);
	snprintf(addr.port, sizeof(addr.port), "%s", port);
	return address_resolve(&addr, found, max, &count, NULL) ? 0 : count;
}
