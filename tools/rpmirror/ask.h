/* SPDX-License-Identifier: BSD-3-Clause */
/* ask.h -- sends requests to rpmirrord (mirrord/REQUESTS.md). */
#ifndef RPMIRROR_ASK_H
#define RPMIRROR_ASK_H

#include <stdint.h>

#include "args.h"
#include "out.h"

#define ASK_PACKET (64u << 10)

/* A connection to the daemon. One time limit holds for all calls on a connection together. */
struct ask {
	int fd;
	uint64_t deadline;
	const char *socket;
};

int ask_open(struct ask *a, const struct args *args, struct failure *f);
void ask_close(struct ask *a);
/* Send a request, and free it. */
int ask_send(struct ask *a, json_t *request, struct failure *f);
/* Receive the next packet. *answer belongs to the caller. A packet with an error becomes the
 * failure. */
int ask_next(struct ask *a, json_t **answer, struct failure *f);

/* Send one request and receive its answer. Adds "timeout_ms" to the request, and frees the
 * request; *answer belongs to the caller. */
int ask_once(const struct args *args, json_t *request, json_t **answer, struct failure *f);

/* Get the daemon's state of a set (NULL: of all sets). *answer is the whole answer. */
int ask_status(const struct args *args, const char *set, json_t **answer, struct failure *f);
/* Get the name of the daemon's only set, for commands without a set. The array set has
 * MIRROR_SET_MAX + 1 bytes. */
int ask_only_set(const struct args *args, char *set, struct failure *f);

#endif
