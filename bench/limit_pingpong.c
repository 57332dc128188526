/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures a round trip over one TCP connection, with `size` bytes to the target and `back` bytes
 * back: the lower bound of all round trips.
 */
#include <sys/socket.h>

#include "lib/clock.h"
#include "lib/ends.h"
#include "lib/result.h"
#include "limit_impl.h"

static void limit_pingpong_target(const struct bench_case *c, int fd, void *arg)
{
	char *in = limit_buffer(c->size), *out = limit_buffer(c->back);
	int sock = limit_socket_accept(c, fd);

	while (limit_socket_recv(sock, in, c->size, c->tgt_polls))
		limit_socket_send(sock, out, c->back);
}

static uint64_t limit_pingpong_for(const struct bench_case *c, int sock, uint64_t ns,
				   struct samples *s)
{
	char *out = limit_buffer(c->size), *in = limit_buffer(c->back);
	uint64_t begin = clock_now_ns(), then = begin, now = begin;

	samples_clear(s);
	while (now - begin < ns) {
		limit_socket_send(sock, out, c->size);
		if (!limit_socket_recv(sock, in, c->back, c->ini_polls))
			break;
		now = clock_now_ns();
		samples_add(s, now - then);
		then = now;
	}
	return now - begin;
}

void limit_pingpong(const struct bench_case *c)
{
	struct samples *s = samples_new();
	struct result r = {0};
	struct ends e;
	int sock;

	ends_start(&e, c, limit_pingpong_target, NULL);
	sock = limit_socket_connect(c, e.fd);
	limit_pingpong_for(c, sock, case_warmup_ns(c), s);
	r.ns = limit_pingpong_for(c, sock, case_ns(c), s);
	r.count = s->total;
	shutdown(sock, SHUT_WR);
	ends_finish(&e);
	result_print(c, &r, s);
	samples_delete(s);
}
