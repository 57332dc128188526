/* SPDX-License-Identifier: BSD-3-Clause */
#include "relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/cursor.h"

#define CHUNK        16384
#define IP_HDR       20
#define TCP_HDR      20
#define LINKTYPE_RAW 101

enum { FIN = 0x01, SYN = 0x02, PSH = 0x08, ACK = 0x10 };

/* One direction: who sends, and how far it has come. */
struct side {
	int fd;
	uint16_t port;
	uint32_t seq;
	bool open;
};

/* pcap's own fields are in the byte order of who writes them. */
static void write_native(FILE *f, const uint32_t *words, size_t n)
{
	fwrite(words, sizeof(*words), n, f);
}

static void write_file_header(FILE *f)
{
	const uint32_t words[] = {0xa1b2c3d4, 4u << 16 | 2, 0, 0, 65535, LINKTYPE_RAW};

	write_native(f, words, sizeof(words) / sizeof(words[0]));
}

static void write_segment(FILE *f, struct side *from, const struct side *to, uint8_t flags,
			  const void *data, size_t len)
{
	uint8_t hdr[IP_HDR + TCP_HDR];
	struct wcursor c = wcursor_init(hdr, sizeof(hdr));
	uint32_t total = (uint32_t)(sizeof(hdr) + len);
	struct timespec now;

	wcursor_be16(&c, 0x4500);
	wcursor_be16(&c, (uint16_t)total);
	wcursor_be32(&c, 0);
	wcursor_be32(&c, 64u << 24 | 6u << 16);
	wcursor_be32(&c, INADDR_LOOPBACK);
	wcursor_be32(&c, INADDR_LOOPBACK);
	wcursor_be16(&c, from->port);
	wcursor_be16(&c, to->port);
	wcursor_be32(&c, from->seq);
	wcursor_be32(&c, flags & ACK ? to->seq : 0);
	wcursor_be16(&c, (uint16_t)(TCP_HDR / 4 << 12 | flags));
	wcursor_be16(&c, 0xffff);
	wcursor_be32(&c, 0);
	clock_gettime(CLOCK_REALTIME, &now);
	write_native(f,
		     (uint32_t[]){(uint32_t)now.tv_sec, (uint32_t)now.tv_nsec / 1000, total, total},
		     4);
	fwrite(hdr, sizeof(hdr), 1, f);
	if (len)
		fwrite(data, len, 1, f);
	from->seq += (uint32_t)len + (flags & (SYN | FIN) ? 1 : 0);
}

static int send_all(int fd, const uint8_t *bytes, size_t len)
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

static void pass_on(FILE *f, struct side *from, struct side *to)
{
	uint8_t bytes[CHUNK];
	ssize_t n = recv(from->fd, bytes, sizeof(bytes), 0);

	if (n > 0) {
		write_segment(f, from, to, PSH | ACK, bytes, (size_t)n);
		send_all(to->fd, bytes, (size_t)n);
		return;
	}
	write_segment(f, from, to, FIN | ACK, NULL, 0);
	from->open = false;
	shutdown(to->fd, SHUT_WR);
}

static void handshake(FILE *f, struct side *a, struct side *b)
{
	write_segment(f, a, b, SYN, NULL, 0);
	write_segment(f, b, a, SYN | ACK, NULL, 0);
	write_segment(f, a, b, ACK, NULL, 0);
}

static void relay_one(struct relay *r, int in, int out, uint16_t client_port)
{
	struct side side[2] = {{in, client_port, 1000, true}, {out, r->to_port, 2000, true}};
	int one = 1;

	setsockopt(in, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(out, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	handshake(r->file, &side[0], &side[1]);
	while (side[0].open || side[1].open) {
		struct pollfd p[2];

		for (int i = 0; i < 2; i++)
			p[i] = (struct pollfd){side[i].open ? side[i].fd : -1, POLLIN, 0};
		if (poll(p, 2, 10000) <= 0)
			break;
		for (int i = 0; i < 2; i++)
			if (p[i].revents)
				pass_on(r->file, &side[i], &side[!i]);
	}
}

static int dial(uint16_t port)
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
		out = dial(r->to_port);
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

	r->to_port = (uint16_t)atoi(to_port);
	r->file = fopen(file, "we");
	r->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (!r->file || bind(r->listen_fd, (struct sockaddr *)&sin, len) ||
	    listen(r->listen_fd, 8) || getsockname(r->listen_fd, (struct sockaddr *)&sin, &len))
		return -errno;
	snprintf(r->port, sizeof(r->port), "%u", (unsigned)ntohs(sin.sin_port));
	write_file_header(r->file);
	return -pthread_create(&r->thread, NULL, relay_main, r);
}

void relay_stop(struct relay *r)
{
	/* On Linux this ends an accept() that waits. */
	shutdown(r->listen_fd, SHUT_RDWR);
	pthread_join(r->thread, NULL);
	close(r->listen_fd);
	fclose(r->file);
}
