/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rawrings.h -- a raw peer that moves to rings in shared memory, as doc/wire.md describes them. The
 * peer is the initiator: it writes ring 0 and reads ring 1. After the move all functions of
 * rawpeer.h use the rings, and the test can write any bytes to the shared memory.
 */
#ifndef SYSTEM_RAWRINGS_H
#define SYSTEM_RAWRINGS_H

#include <stdatomic.h>

#include "rawpeer.h"

/* The head of one ring, in the first page. */
struct rawring_head {
	_Atomic uint64_t tail;
	_Atomic uint32_t reader_sleeps;
	uint8_t rest[52];
	_Atomic uint64_t head;
	_Atomic uint32_t writer_sleeps;
	uint8_t more[52];
};

struct rawrings {
	int fd;     /* descriptor of the Unix socket */
	int memory; /* descriptor of the memory file */
	uint8_t *base;
	size_t len;
	uint64_t size; /* size of each ring */
	struct rawring_head *ring[2];
	uint8_t *bytes[2];
	uint64_t written, read;
};

/* Connect, send a HELLO, set up the rings, and switch to them. Returns 0 or -errno. */
int rawrings_connect(struct raw *r, struct rawrings *rings, const char *port);
void rawrings_close(struct raw *r);
/* Only set the word "given up". */
void rawrings_give_up(struct raw *r);
/* Send a wake-up, which the other end is allowed to ignore. */
void rawrings_wake(struct raw *r);

int rawrings_send(struct raw *r, const void *bytes, size_t len);
int rawrings_recv(struct raw *r, void *bytes, size_t len, int timeout_ms);

#endif
