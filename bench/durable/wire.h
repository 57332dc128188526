/* SPDX-License-Identifier: BSD-3-Clause */
/* wire.h -- a TCP connection that never blocks. Bytes that the kernel does not take wait here. */
#ifndef BENCH_DURABLE_WIRE_H
#define BENCH_DURABLE_WIRE_H

#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

struct wire {
	int fd;
	char *out; /* not sent yet */
	size_t begin, end, room;
};

struct wire *wire_open(const char *addr, unsigned short port);
void wire_close(struct wire *w);
/* Send the parts in their order, after the bytes that wait. */
void wire_put(struct wire *w, const struct iovec *parts, int count);
/* Send the bytes that wait. */
void wire_flush(struct wire *w);
/* The number of bytes that have come; 0: none yet. If the connection ends, so does the program. */
size_t wire_get(struct wire *w, void *to, size_t len);
/* Events to wait for. */
unsigned wire_wants(const struct wire *w);

#endif
