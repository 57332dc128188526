/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmemd/sockets.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SOCKETS_BACKLOG 128

/* Store the port that the system has chosen. */
static void sockets_take_port(int fd, struct address *at)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	char port[NI_MAXSERV];

	if (!getsockname(fd, (struct sockaddr *)&sa, &len) &&
	    !getnameinfo((struct sockaddr *)&sa, len, NULL, 0, port, sizeof(port), NI_NUMERICSERV))
		snprintf(at->port, sizeof(at->port), "%.7s", port);
}

/* Returns -1 with errno on failure. */
static int sockets_open(const struct addrinfo *ai)
{
	int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), yes = 1;
	int error;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	/* the socket accepts IPv6 only: IPv4 gets a separate socket */
	if (ai->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes));
	if (!bind(fd, ai->ai_addr, ai->ai_addrlen) && !listen(fd, SOCKETS_BACKLOG))
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

static int sockets_add(struct address *at, const struct address *numeric, int *fd,
		       struct error *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				 .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
	char text[ADDRESS_TEXT];
	struct addrinfo *ai;
	int rc = getaddrinfo(numeric->host, at->port, &hints, &ai);

	if (rc)
		return error_set(err, ERROR_LOCAL, EINVAL, "cannot listen at %s: %s",
				 address_show(numeric, text), gai_strerror(rc));
	*fd = sockets_open(ai);
	freeaddrinfo(ai);
	if (*fd < 0)
		return error_set(err, ERROR_LOCAL, errno, "cannot listen at %s: %s",
				 address_show(at, text), strerror(errno));
	sockets_take_port(*fd, at);
	return 0;
}

int sockets_listen(struct address *at, int fds[SOCKETS_MAX], unsigned *count, struct error *err)
{
	struct address found[SOCKETS_MAX];
	int n = 0, rc = address_resolve(at, found, SOCKETS_MAX, &n, err);

	*count = 0;
	for (int i = 0; i < n && !rc; i++) {
		rc = sockets_add(at, &found[i], &fds[*count], err);
		if (!rc)
			(*count)++;
	}
	while (rc && *count)
		close(fds[--*count]);
	return rc;
}
