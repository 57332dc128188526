/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures the transfer of chunks of `size` bytes in one direction over one TCP connection; each
 * end makes one call for a chunk.
 */
#include <sys/socket.h>

#include "lib/clock.h"
#include "lib/ends.h"
#include "lib/result.h"
#include "limit_impl.h"

#define STREAM_END 1

/* Receive into the same memory until the initiator closes its side, and then confirm the end. */
static void limit_stream_target(const struct bench_case *c, int fd, void *arg)
{
	char *in = limit_buffer(c->size), done = STREAM_END;
	int sock = limit_socket_accept(c, fd);

	while (limit_socket_recv(sock, in, c->size, c->tgt_polls))
		;
	limit_socket_send(sock, &done, 1);
}

static uint64_t limit_stream_for(int sock, const char *out, size_t size, uint64_t ns,
				 uint64_t *chunks)
{
	uint64_t begin = clock_now_ns(), now = begin;

	for (*chunks = 0; now - begin < ns; ++*chunks) {
		limit_socket_send(sock, out, size);
		now = clock_now_ns();
	}
	return begin;
}

void limit_stream(const struct bench_case *c)
{
	char *out = limit_buffer(c->size), done;
	struct result r = {0};
	struct ends e;
	uint64_t begin;
	int sock;

	ends_start(&e, c, limit_stream_target, NULL);
	sock = limit_socket_connect(c, e.fd);
	limit_stream_for(sock, out, c->size, case_warmup_ns(c), &r.count);
	begin = limit_stream_for(sock, out, c->size, case_ns(c), &r.count);
	shutdown(sock, SHUT_WR);
	limit_socket_recv(sock, &done, 1, false);
	r.ns = clock_now_ns() - begin;
	r.bytes = r.count * c->size;
	ends_finish(&e);
	result_print(c, &r, NULL);
}
