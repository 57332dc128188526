/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * door.h -- who may come in now. Connections from addresses that keep reaching for memory that is
 * not theirs (penalty.h) wait at the door of a listener, accepted but not listened to, until
 * their time has come. Thread-safe.
 */
#ifndef ENGINE_DOOR_H
#define ENGINE_DOOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/list.h"

/* Held back at one listener; above it the one that waits longest is closed. */
#define DOOR_MAX 256

struct door {
	struct list held;
	unsigned n_held;
};

void door_init(struct door *d);
/* Close whatever waits. */
void door_fini(struct door *d);

/* True: it has to wait until then, and the descriptor is the door's now. */
bool door_hold(struct door *d, int fd, const struct sockaddr_storage *peer, uint64_t now,
	       uint64_t *until);
/* One whose time has come, or -1; then *next is when to ask again (CLOCK_NEVER: nobody waits). */
int door_next(struct door *d, uint64_t now, uint64_t *next);

/* The peer reached for memory that is not its own. From any thread. */
void door_blame(const struct sockaddr_storage *peer, uint64_t now);

void doors_atfork_prepare(void);
void doors_atfork_release(void);

#endif
