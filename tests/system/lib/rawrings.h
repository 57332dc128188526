/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rawrings.h -- a raw peer that goes over to rings in shared memory, as doc/wire.md describes them.
 * It is the initiator: it writes ring 0 and reads ring 1. From then on all of rawpeer.h goes
 * through the rings, and the test may write whatever it likes to the memory.
 */
#ifndef SYSTEM_RAWRINGS_H
#define SYSTEM_RAWRINGS_H

#include <stdatomic.h>

#include "rawpeer.h"

/* Of one ring, in the first page. */
struct rawring_head {
	_Atomic uint64_t tail;
	_Atomic uint32_t reader_sleeps;
	uint8_t rest[52];
	_Atomic uint64_t head;
	_Atomic uint32_t writer_sleeps;
	uint8_t more[52];
};

struct rawrings {
	int fd;     /* of the Unix socket */
	int memory; /* its file */
	uint8_t *base;
	size_t len;
	uint64_t size; /* of a ring */
	struct rawring_head *ring[2];
	uint8_t *bytes[2];
	uint64_t written, read;
};

/* Dial, say HELLO, meet, and switch. 0 or -errno. */
int rawrings_connect(struct raw *r, struct rawrings *rings, const char *port);
void rawrings_close(struct raw *r);
/* The word that says so, and nothing else. */
void rawrings_give_up(struct raw *r);
/* A wake-up, which the other end may ignore. */
void rawrings_wake(struct raw *r);

int rawrings_send(struct raw *r, const void *bytes, size_t len);
int rawrings_recv(struct raw *r, void *bytes, size_t len, int timeout_ms);

#endif
