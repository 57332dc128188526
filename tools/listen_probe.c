/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli.h"
#include "listen_probe.h"

static int lookup(const struct address *addr, int flags, struct addrinfo **list)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags};

	return getaddrinfo(addr->host, addr->port, &hints, list);
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
	char text[ADDRESS_TEXT];
	struct addrinfo *list;
	int rc = lookup(addr, AI_PASSIVE, &list);

	if (rc)
		return cli_fail(CLI_FILE, "no such address '%s' to listen on: %s", addr->host,
				gai_strerror(rc));
	rc = try_to_bind(list);
	freeaddrinfo(list);
	return rc ? cli_fail(CLI_FILE, "cannot listen on %s: %s; choose another --addr or --port",
			     address_show(addr, text), strerror(rc))
		  : CLI_OK;
}
