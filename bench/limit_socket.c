/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes a TCP connection between the two ends. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/die.h"
#include "lib/ends.h"
#include "limit_impl.h"

static struct sockaddr_in limit_socket_address(const struct bench_case *c)
{
	struct sockaddr_in sin = {.sin_family = AF_INET};

	if (inet_pton(AF_INET, c->addr, &sin.sin_addr) != 1)
		die("%s: not an IPv4 address", c->addr);
	return sin;
}

static int limit_socket_new(void)
{
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (sock < 0)
		die_errno("socket");
	return sock;
}

static int limit_socket_ready(int sock)
{
	int on = 1;

	if (setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
		die_errno("TCP_NODELAY");
	return sock;
}

int limit_socket_accept(const struct bench_case *c, int fd)
{
	struct sockaddr_in sin = limit_socket_address(c);
	socklen_t len = sizeof(sin);
	int listener = limit_socket_new(), sock;

	if (bind(listener, (struct sockaddr *)&sin, sizeof(sin)) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&sin, &len))
		die_errno("listen");
	ends_put(fd, &sin.sin_port, sizeof(sin.sin_port));
	sock = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (sock < 0)
		die_errno("accept");
	close(listener);
	return limit_socket_ready(sock);
}

int limit_socket_connect(const struct bench_case *c, int fd)
{
	struct sockaddr_in sin = limit_socket_address(c);
	int sock = limit_socket_new();

	ends_get(fd, &sin.sin_port, sizeof(sin.sin_port));
	if (connect(sock, (struct sockaddr *)&sin, sizeof(sin)))
		die_errno("connect");
	return limit_socket_ready(sock);
}

bool limit_socket_recv(int sock, char *buf, size_t len, bool poll)
{
	while (len) {
		ssize_t n = recv(sock, buf, len, poll ? MSG_DONTWAIT : 0);

		if (n == 0)
			return false;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			die_errno("recv");
		if (n > 0) {
			buf += n;
			len -= (size_t)n;
		}
	}
	return true;
}

void limit_socket_send(int sock, const char *buf, size_t len)
{
	while (len) {
		ssize_t n = send(sock, buf, len, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			die_errno("send");
		if (n > 0) {
			buf += n;
			len -= (size_t)n;
		}
	}
}
