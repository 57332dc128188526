/* SPDX-License-Identifier: BSD-3-Clause */
/* wire.h -- a TCP connection that never blocks. Bytes that the kernel does not accept yet wait
 * here. */
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
/* Send the parts in their order, after the bytes that already wait. */
void wire_put(struct wire *w, const struct iovec *parts, int count);
/* Send the waiting bytes. */
void wire_flush(struct wire *w);
/* Returns the number of received bytes; 0: none yet. Ends the program if the connection ends. */
size_t wire_get(struct wire *w, void *to, size_t len);
/* Events to wait for. */
unsigned wire_wants(const struct wire *w);

#endif
