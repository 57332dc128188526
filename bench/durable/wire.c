/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/die.h"

struct wire *wire_open(const char *addr, unsigned short port)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct wire *w = calloc(1, sizeof(*w));
	int on = 1;

	if (!w || inet_pton(AF_INET, addr, &sin.sin_addr) != 1)
		die("%s: not an IPv4 address", addr);
	w->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (w->fd < 0 || connect(w->fd, (struct sockaddr *)&sin, sizeof(sin)))
		die_errno("connect");
	if (setsockopt(w->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) ||
	    fcntl(w->fd, F_SETFL, O_NONBLOCK))
		die_errno("set up the connection");
	return w;
}

void wire_close(struct wire *w)
{
	close(w->fd);
	free(w->out);
	free(w);
}

static void wire_keep(struct wire *w, const char *data, size_t len)
{
	if (w->begin == w->end)
		w->begin = w->end = 0;
	if (w->end + len > w->room) {
		w->room = 2 * (w->end + len);
		w->out = realloc(w->out, w->room);
		if (!w->out)
			die_errno("memory");
	}
	memcpy(w->out + w->end, data, len);
	w->end += len;
}

/* Returns how many bytes the kernel has accepted. */
static size_t wire_send(struct wire *w, const struct iovec *parts, int count)
{
	struct msghdr msg = {.msg_iov = (struct iovec *)parts, .msg_iovlen = (size_t)count};
	ssize_t n = sendmsg(w->fd, &msg, MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN && errno != EINTR)
		die_errno("send");
	return n < 0 ? 0 : (size_t)n;
}

void wire_flush(struct wire *w)
{
	struct iovec rest = {w->out + w->begin, w->end - w->begin};

	if (rest.iov_len)
		w->begin += wire_send(w, &rest, 1);
}

void wire_put(struct wire *w, const struct iovec *parts, int count)
{
	size_t sent = w->begin == w->end ? wire_send(w, parts, count) : 0;

	for (int i = 0; i < count; i++) {
		size_t skip = sent < parts[i].iov_len ? sent : parts[i].iov_len;

		sent -= skip;
		if (skip < parts[i].iov_len)
			wire_keep(w, (char *)parts[i].iov_base + skip, parts[i].iov_len - skip);
	}
}

size_t wire_get(struct wire *w, void *to, size_t len)
{
	ssize_t n = recv(w->fd, to, len, 0);

	if (n < 0 && errno != EAGAIN && errno != EINTR)
		die_errno("recv");
	if (n == 0)
		die("the server has closed the connection");
	return n < 0 ? 0 : (size_t)n;
}

unsigned wire_wants(const struct wire *w)
{
	return EPOLLIN | (w->begin < w->end ? EPOLLOUT : 0);
}
