/* SPDX-License-Identifier: BSD-3-Clause */
/* wire.h -- a TCP connection that never blocks: it keeps the bytes that the kernel does not accept
 * yet. */
#ifndef BENCH_DURABLE_WIRE_H
#define BENCH_DURABLE_WIRE_H

#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

struct wire {
	int fd;
	char *out; /* bytes that are not sent yet */
	size_t begin, end, room;
};

struct wire *wire_open(const char *addr, unsigned short port);
void wire_close(struct wire *w);
/* Send the parts in their order, after the bytes that already wait. */
void wire_put(struct wire *w, const struct iovec *parts, int count);
/* Send the waiting bytes. */
void wire_flush(struct wire *w);
/* Returns how many bytes were received; 0: none yet. If the connection has ended, the program
 * ends. */
size_t wire_get(struct wire *w, void *to, size_t len);
/* Returns the events to wait for. */
unsigned wire_wants(const struct wire *w);

#endif
