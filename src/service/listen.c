/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/listen.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Returns 0 or an errno. */
static int listen_try(const struct addrinfo *info)
{
	int one = 1, rc = 0;
	int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return errno;
	/* A restarted server must not fail because of its former connections in TIME_WAIT. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, info->ai_addr, info->ai_addrlen) || listen(fd, 1))
		rc = errno;
	close(fd);
	return rc;
}

int listen_check(const struct address *addr, struct error *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *list;
	int rc = getaddrinfo(addr->host, addr->port, &hints, &list);
	char text[ADDRESS_TEXT];

	if (rc)
		return error_set(err, ERROR_LOCAL, 0, "no such address '%s' to listen on: %s",
				 addr->host, gai_strerror(rc));
	rc = listen_try(list);
	freeaddrinfo(list);
	return rc ? error_set(err, ERROR_LOCAL, rc,
			      "cannot listen on %s: %s; choose another address or port",
			      address_show(addr, text), strerror(rc))
		  : 0;
}
