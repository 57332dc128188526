/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * naive -- measures the simplest server: for each connection a thread receives a write, calls
 * pwrite() and fdatasync(), and answers. See ../README.md.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/die.h"
#include "lib/ends.h"
#include "lib/file.h"
#include "load.h"
#include "wire.h"

struct naive_request {
	uint64_t at, len;
};

struct naive_server {
	const struct bench_case *c;
	int file, sock;
};

static bool naive_recv(int sock, void *to, size_t len)
{
	return recv(sock, to, len, MSG_WAITALL) == (ssize_t)len;
}

static void *naive_serve(void *arg)
{
	struct naive_server *s = arg;
	struct naive_request req;
	char *buf = malloc(s->c->size), ok = 1;
	int on = 1;

	setsockopt(s->sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	while (buf && naive_recv(s->sock, &req, sizeof(req)) && req.len <= s->c->size &&
	       naive_recv(s->sock, buf, req.len)) {
		if (pwrite(s->file, buf, req.len, (off_t)req.at) != (ssize_t)req.len ||
		    fdatasync(s->file))
			die_errno("write the file");
		if (send(s->sock, &ok, 1, MSG_NOSIGNAL) != 1)
			break;
	}
	free(buf);
	close(s->sock);
	return NULL;
}

static int naive_listen(const struct bench_case *c, int fd)
{
	struct sockaddr_in sin = {.sin_family = AF_INET};
	socklen_t len = sizeof(sin);
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (inet_pton(AF_INET, c->addr, &sin.sin_addr) != 1)
		die("%s: not an IPv4 address", c->addr);
	if (sock < 0 || bind(sock, (struct sockaddr *)&sin, len) || listen(sock, 128) ||
	    getsockname(sock, (struct sockaddr *)&sin, &len))
		die_errno("listen");
	ends_put(fd, &sin.sin_port, sizeof(sin.sin_port));
	return sock;
}

static void naive_server(const struct bench_case *c, int fd, void *arg)
{
	int file = file_open(c->where, span_region(c)), sock = naive_listen(c, fd);
	struct naive_server *s = calloc(c->conns, sizeof(*s));
	pthread_t *threads = calloc(c->conns, sizeof(*threads));

	(void)arg;
	for (unsigned i = 0; s && threads && i < c->conns; i++) {
		s[i] = (struct naive_server){c, file, accept4(sock, NULL, NULL, SOCK_CLOEXEC)};
		if (s[i].sock < 0 || pthread_create(&threads[i], NULL, naive_serve, &s[i]))
			die_errno("serve a connection");
	}
	for (unsigned i = 0; threads && i < c->conns; i++)
		pthread_join(threads[i], NULL);
}

static void naive_start(struct load *l)
{
	static struct ends ends;
	in_port_t port;

	if (strcmp(l->c->where, "server") == 0)
		die("where=FOLDER names where the server has its file");
	l->own = &ends;
	ends_start(&ends, l->c, naive_server, NULL);
	ends_get(ends.fd, &port, sizeof(port));
	l->port = ntohs(port);
}

static void naive_stop(struct load *l)
{
	ends_finish(l->own);
}

static void naive_post(struct load_conn *lc, unsigned slot, uint64_t at)
{
	struct naive_request req = {at, lc->load->c->size};
	const struct iovec parts[] = {{&req, sizeof(req)}, {lc->load->payload, req.len}};

	(void)slot;
	wire_put(lc->wire, parts, 2);
}

static void naive_service(struct load_conn *lc, unsigned events)
{
	char answers[64];
	size_t n = events & EPOLLIN ? wire_get(lc->wire, answers, sizeof(answers)) : 0;

	wire_flush(lc->wire);
	while (n--)
		load_done_oldest(lc);
}

int main(int argc, char **argv)
{
	static const struct load_client client = {.who = "naive",
						  .start = naive_start,
						  .stop = naive_stop,
						  .has_wire = true,
						  .post = naive_post,
						  .service = naive_service};

	return load_main(&client, argc, argv);
}
