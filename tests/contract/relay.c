/* SPDX-License-Identifier: BSD-3-Clause */
#include "relay.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ends.h"

/* RFC 5044 s7.1.1: key, flags, revision, length of the private data. */
#define START_HEADER 20
/* RFC 5044 s4: length, ULPDU, padding to 4 bytes, CRC field. */
#define FPDU_LEN(ulpdu) (((size_t)(ulpdu) + 2 + 3) / 4 * 4 + 4)

#define SLOW_PIECE 8192

static struct sockaddr_in relay_loopback(uint16_t port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons(port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int relay_tcp_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	return fd;
}

static void relay_keep(struct relay *r, enum relay_way way, const uint8_t *bytes, size_t len)
{
	struct relay_way_state *w = &r->way[way];

	pthread_mutex_lock(&r->lock);
	if (w->len + len > w->room) {
		w->room = 2 * (w->len + len);
		w->seen = realloc(w->seen, w->room);
	}
	if (w->seen) {
		memcpy(w->seen + w->len, bytes, len);
		w->len += len;
	}
	w->pieces++;
	pthread_mutex_unlock(&r->lock);
}

/* Returns false if that side has closed. */
static bool relay_pass(struct relay *r, enum relay_way way)
{
	int from = way == RELAY_TO_SERVER ? r->to_client : r->to_server;
	int to = way == RELAY_TO_SERVER ? r->to_server : r->to_client;
	size_t slow = way == RELAY_TO_SERVER ? r->slow : 0;
	uint8_t buf[65536];
	ssize_t n = recv(from, buf, slow ? SLOW_PIECE : sizeof(buf), 0);

	if (n <= 0) {
		shutdown(to, SHUT_WR);
		return false;
	}
	if (slow)
		usleep((useconds_t)((size_t)n * 1000000 / slow));
	relay_keep(r, way, buf, (size_t)n);
	for (ssize_t sent = 0, one; sent < n; sent += one) {
		one = send(to, buf + sent, (size_t)(n - sent), MSG_NOSIGNAL);
		if (one <= 0)
			return false;
	}
	return true;
}

static void *relay_main(void *arg)
{
	struct relay *r = arg;
	bool open[RELAY_WAYS] = {true, true};

	r->to_client = accept(r->listener, NULL, NULL);
	while (open[RELAY_TO_SERVER] || open[RELAY_TO_CLIENT]) {
		struct pollfd pfd[RELAY_WAYS] = {
			{.fd = open[RELAY_TO_SERVER] ? r->to_client : -1, .events = POLLIN},
			{.fd = open[RELAY_TO_CLIENT] ? r->to_server : -1, .events = POLLIN},
		};

		poll(pfd, RELAY_WAYS, -1);
		for (int way = 0; way < RELAY_WAYS; way++)
			if (pfd[way].revents)
				open[way] = relay_pass(r, (enum relay_way)way);
	}
	return NULL;
}

void relay_start_slow(struct relay *r, const char *server_port, size_t bytes_per_s)
{
	struct sockaddr_in sin = relay_loopback(0),
			   srv = relay_loopback((uint16_t)atoi(server_port));
	socklen_t len = sizeof(sin);
	int small = SLOW_PIECE;

	memset(r, 0, sizeof(*r));
	r->slow = bytes_per_s;
	pthread_mutex_init(&r->lock, NULL);
	r->listener = relay_tcp_socket();
	if (bytes_per_s) /* limit the buffer of the accepted socket, too */
		setsockopt(r->listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	assert_int_equal(bind(r->listener, (struct sockaddr *)&sin, len), 0);
	assert_int_equal(listen(r->listener, 1), 0);
	assert_int_equal(getsockname(r->listener, (struct sockaddr *)&sin, &len), 0);
	snprintf(r->port, sizeof(r->port), "%u", (unsigned)ntohs(sin.sin_port));
	r->to_server = relay_tcp_socket();
	assert_int_equal(connect(r->to_server, (struct sockaddr *)&srv, sizeof(srv)), 0);
	assert_int_equal(pthread_create(&r->thread, NULL, relay_main, r), 0);
}

void relay_start(struct relay *r, const char *server_port)
{
	relay_start_slow(r, server_port, 0);
}

void relay_join(struct relay *r)
{
	pthread_join(r->thread, NULL);
	close(r->listener);
	close(r->to_client);
	close(r->to_server);
	for (int way = 0; way < RELAY_WAYS; way++)
		free(r->way[way].seen);
	pthread_mutex_destroy(&r->lock);
}

static unsigned relay_count_fpdus(const uint8_t *p, size_t len)
{
	size_t at = START_HEADER;
	unsigned n = 0;

	if (len < at)
		return 0;
	at += (size_t)p[18] << 8 | p[19];
	while (at + 2 <= len) {
		at += FPDU_LEN(p[at] << 8 | p[at + 1]);
		n += at <= len;
	}
	return n;
}

static size_t relay_seen_bytes(struct relay *r)
{
	size_t n;

	pthread_mutex_lock(&r->lock);
	n = r->way[RELAY_TO_SERVER].len + r->way[RELAY_TO_CLIENT].len;
	pthread_mutex_unlock(&r->lock);
	return n;
}

void relay_count(struct relay *r, enum relay_way way, struct relay_count *count)
{
	size_t before;

	do {
		before = relay_seen_bytes(r);
		ends_sleep_ms(20);
	} while (relay_seen_bytes(r) != before);
	pthread_mutex_lock(&r->lock);
	count->bytes = r->way[way].len;
	count->pieces = r->way[way].pieces;
	count->fpdus = relay_count_fpdus(r->way[way].seen, r->way[way].len);
	pthread_mutex_unlock(&r->lock);
}

bool relay_saw(struct relay *r, enum relay_way way, const void *bytes, size_t len)
{
	bool found;

	pthread_mutex_lock(&r->lock);
	found = memmem(r->way[way].seen, r->way[way].len, bytes, len) != NULL;
	pthread_mutex_unlock(&r->lock);
	return found;
}
