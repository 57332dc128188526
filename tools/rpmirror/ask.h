/* SPDX-License-Identifier: BSD-3-Clause */
/* ask.h -- requests to rpmirrord (mirrord/REQUESTS.md). */
#ifndef RPMIRROR_ASK_H
#define RPMIRROR_ASK_H

#include <stdint.h>

#include "args.h"
#include "out.h"

#define ASK_PACKET (64u << 10)

/* A connection; the time limit is for all of its calls together. */
struct ask {
	int fd;
	uint64_t deadline;
	const char *socket;
};

int ask_open(struct ask *a, const struct args *args, struct failure *f);
void ask_close(struct ask *a);
/* request is freed. */
int ask_send(struct ask *a, json_t *request, struct failure *f);
/* The next packet: *answer is the caller's. A packet that is an error becomes the failure. */
int ask_next(struct ask *a, json_t **answer, struct failure *f);

/* One request and its answer; request is freed, *answer the caller's. "timeout_ms" is added. */
int ask_once(const struct args *args, json_t *request, json_t **answer, struct failure *f);

/* The state of a set (NULL: of all) as the daemon has it; the whole answer. */
int ask_status(const struct args *args, const char *set, json_t **answer, struct failure *f);
/* The daemon's only set, for commands without one; set: MIRROR_SET_MAX + 1 bytes. */
int ask_only_set(const struct args *args, char *set, struct failure *f);

#endif
