/* SPDX-License-Identifier: BSD-3-Clause */
#include "relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHUNK 16384

/* One direction of a connection, named after its sender. */
struct side {
	int fd;
	bool open;
};

static int relay_send_all(int fd, const uint8_t *bytes, size_t len)
{
	while (len) {
		ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);

		if (n < 0)
			return -errno;
		bytes += n;
		len -= (size_t)n;
	}
	return 0;
}

static void relay_pass_on(struct capture *capture, struct side side[2], enum flow_side from)
{
	int to = side[!from].fd;
	uint8_t bytes[CHUNK];
	ssize_t n = recv(side[from].fd, bytes, sizeof(bytes), 0);

	if (n > 0) {
		capture_data(capture, from, bytes, (size_t)n);
		relay_send_all(to, bytes, (size_t)n);
		return;
	}
	capture_fin(capture, from);
	side[from].open = false;
	shutdown(to, SHUT_WR);
}

static void relay_one(struct relay *r, int in, int out, uint16_t client_port)
{
	struct side side[2] = {{in, true}, {out, true}};
	int one = 1;

	setsockopt(in, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(out, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	capture_begin(&r->capture, (uint32_t[]){INADDR_LOOPBACK, INADDR_LOOPBACK},
		      (uint16_t[]){client_port, r->to_port});
	while (side[FLOW_US].open || side[FLOW_PEER].open) {
		struct pollfd p[2];

		for (int i = 0; i < 2; i++)
			p[i] = (struct pollfd){side[i].open ? side[i].fd : -1, POLLIN, 0};
		if (poll(p, 2, 10000) <= 0)
			break;
		for (enum flow_side i = FLOW_US; i <= FLOW_PEER; i++)
			if (p[i].revents)
				relay_pass_on(&r->capture, side, i);
	}
}

static int relay_dial(uint16_t port)
{
	struct sockaddr_in sin = {.sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&sin, sizeof(sin))) {
		close(fd);
		return -1;
	}
	return fd;
}

static void *relay_main(void *arg)
{
	struct relay *r = arg;

	for (;;) {
		struct sockaddr_in from;
		socklen_t len = sizeof(from);
		int in = accept4(r->listen_fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC), out;

		if (in < 0)
			return NULL;
		out = relay_dial(r->to_port);
		if (out >= 0)
			relay_one(r, in, out, ntohs(from.sin_port));
		close(in);
		close(out);
	}
}

int relay_start(struct relay *r, const char *to_port, const char *file)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(sin);
	int ret;

	r->to_port = (uint16_t)atoi(to_port);
	r->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(r->listen_fd, (struct sockaddr *)&sin, len) || listen(r->listen_fd, 8) ||
	    getsockname(r->listen_fd, (struct sockaddr *)&sin, &len))
		return -errno;
	snprintf(r->port, sizeof(r->port), "%u", (unsigned)ntohs(sin.sin_port));
	ret = capture_open(&r->capture, file);
	if (ret)
		return ret;
	return -pthread_create(&r->thread, NULL, relay_main, r);
}

int relay_stop(struct relay *r)
{
	/* On Linux this makes a waiting accept() return. */
	shutdown(r->listen_fd, SHUT_RDWR);
	pthread_join(r->thread, NULL);
	close(r->listen_fd);
	return capture_close(&r->capture);
}
