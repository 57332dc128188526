/* SPDX-License-Identifier: BSD-3-Clause */
/* wire.h -- a TCP connection that never blocks; what the kernel does not take yet waits here. */
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
/* In their order, after what waits. */
void wire_put(struct wire *w, const struct iovec *parts, int count);
/* Send what waits. */
void wire_flush(struct wire *w);
/* Bytes that have come, or 0: none yet. The end of the connection ends the program. */
size_t wire_get(struct wire *w, void *to, size_t len);
/* Events to wait for. */
unsigned wire_wants(const struct wire *w);

#endif
