/* SPDX-License-Identifier: BSD-3-Clause */
#include "held.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "system/lib/check.h"

#define HELD_CONNS 128
#define HELD_ROOM  (4u << 20) /* limit of the bytes that are kept for a connection */
#define HELD_LOOK  5          /* ms */

struct held_conn {
	int client, server; /* -1: this socket is closed */
	bool is_held;
	uint64_t passed; /* bytes that were passed to the server */
	size_t have;     /* number of bytes that are kept */
	uint8_t *waiting;
};

struct held {
	pthread_t thread;
	pthread_mutex_t lock;
	bool stopping;
	int listener;
	uint16_t port, to;
	uint64_t hold_after; /* hold a connection after this many bytes; 0: never */
	unsigned count, cut;
	struct held_conn conns[HELD_CONNS];
};

static int held_dial(uint16_t port)
{
	struct sockaddr_in addr = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				   .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		close(fd);
		return -1;
	}
	return fd;
}

static void held_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* The server is on this host, so its socket accepts all bytes in one call. */
static bool held_pass(int fd, const uint8_t *data, size_t len)
{
	while (len) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		data += n;
		len -= (size_t)n;
	}
	return true;
}

static void held_accept(struct held *h)
{
	int client = accept4(h->listener, NULL, NULL, SOCK_CLOEXEC);
	int server = client >= 0 ? held_dial(h->to) : -1;

	if (server < 0 || h->count == HELD_CONNS) {
		held_close(&client);
		held_close(&server);
		return;
	}
	h->conns[h->count++] = (struct held_conn){.client = client, .server = server};
}

static void held_hold_all(struct held *h)
{
	h->hold_after = 0;
	for (unsigned i = 0; i < h->count; i++)
		h->conns[i].is_held = h->conns[i].client >= 0 && h->conns[i].server >= 0;
}

static void held_keep(struct held_conn *c, const uint8_t *data, size_t len)
{
	if (!c->waiting)
		c->waiting = malloc(HELD_ROOM);
	if (!c->waiting || len > HELD_ROOM - c->have)
		return;
	memcpy(c->waiting + c->have, data, len);
	c->have += len;
}

static void held_from_client(struct held *h, struct held_conn *c)
{
	uint8_t data[65536];
	ssize_t n = recv(c->client, data, sizeof(data), MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		held_close(&c->client);
		if (!c->is_held)
			held_close(&c->server);
		return;
	}
	if (c->is_held) {
		held_keep(c, data, (size_t)n);
		return;
	}
	c->passed += (uint64_t)n;
	if (!held_pass(c->server, data, (size_t)n))
		held_close(&c->server);
	if (h->hold_after && c->passed >= h->hold_after)
		held_hold_all(h);
}

static void held_from_server(struct held *h, struct held_conn *c)
{
	uint8_t data[65536];
	ssize_t n = recv(c->server, data, sizeof(data), MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		h->cut += c->is_held;
		held_close(&c->server);
		held_close(&c->client);
	} else if (!c->is_held && c->client >= 0 && !held_pass(c->client, data, (size_t)n)) {
		held_close(&c->client);
	}
}

static void held_turn(struct held *h)
{
	struct pollfd fds[1 + 2 * HELD_CONNS];
	unsigned count = h->count;

	fds[0] = (struct pollfd){.fd = h->listener, .events = POLLIN};
	for (unsigned i = 0; i < count; i++) {
		fds[1 + 2 * i] = (struct pollfd){.fd = h->conns[i].client, .events = POLLIN};
		fds[2 + 2 * i] = (struct pollfd){.fd = h->conns[i].server, .events = POLLIN};
	}
	pthread_mutex_unlock(&h->lock);
	poll(fds, 1 + 2 * count, HELD_LOOK);
	pthread_mutex_lock(&h->lock);
	for (unsigned i = 0; i < count; i++) {
		struct held_conn *c = &h->conns[i];

		if (c->client >= 0 && fds[1 + 2 * i].revents)
			held_from_client(h, c);
		if (c->server >= 0 && fds[2 + 2 * i].revents)
			held_from_server(h, c);
	}
	if (fds[0].revents)
		held_accept(h);
}

static void *held_run(void *arg)
{
	struct held *h = arg;

	pthread_mutex_lock(&h->lock);
	while (!h->stopping)
		held_turn(h);
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

struct held *held_new(void)
{
	struct sockaddr_in addr = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(addr);
	struct held *h = calloc(1, sizeof(*h));

	assert_non_null(h);
	pthread_mutex_init(&h->lock, NULL);
	h->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (bind(h->listener, (struct sockaddr *)&addr, sizeof(addr)) ||
	    getsockname(h->listener, (struct sockaddr *)&addr, &len) || listen(h->listener, 64))
		fail_msg("there is no free port");
	h->port = ntohs(addr.sin_port);
	assert_int_equal(pthread_create(&h->thread, NULL, held_run, h), 0);
	return h;
}

void held_delete(struct held *h)
{
	if (!h)
		return;
	pthread_mutex_lock(&h->lock);
	h->stopping = true;
	pthread_mutex_unlock(&h->lock);
	pthread_join(h->thread, NULL);
	for (unsigned i = 0; i < h->count; i++) {
		held_close(&h->conns[i].client);
		held_close(&h->conns[i].server);
		free(h->conns[i].waiting);
	}
	close(h->listener);
	free(h);
}

uint16_t held_port(const struct held *h)
{
	return h->port;
}

void held_lead_to(struct held *h, uint16_t port)
{
	pthread_mutex_lock(&h->lock);
	h->to = port;
	pthread_mutex_unlock(&h->lock);
}

void held_hold(struct held *h)
{
	pthread_mutex_lock(&h->lock);
	held_hold_all(h);
	pthread_mutex_unlock(&h->lock);
}

void held_hold_after(struct held *h, uint64_t bytes)
{
	pthread_mutex_lock(&h->lock);
	h->hold_after = bytes;
	pthread_mutex_unlock(&h->lock);
}

uint64_t held_bytes(struct held *h)
{
	uint64_t bytes = 0;

	pthread_mutex_lock(&h->lock);
	for (unsigned i = 0; i < h->count; i++)
		bytes += h->conns[i].is_held ? h->conns[i].have : 0;
	pthread_mutex_unlock(&h->lock);
	return bytes;
}

unsigned held_cut(struct held *h)
{
	unsigned cut;

	pthread_mutex_lock(&h->lock);
	cut = h->cut;
	pthread_mutex_unlock(&h->lock);
	return cut;
}

void held_release(struct held *h)
{
	pthread_mutex_lock(&h->lock);
	for (unsigned i = 0; i < h->count; i++) {
		struct held_conn *c = &h->conns[i];

		if (c->is_held && c->server >= 0 && !held_pass(c->server, c->waiting, c->have))
			held_close(&c->server);
		c->is_held = false;
		c->have = 0;
	}
	pthread_mutex_unlock(&h->lock);
}
