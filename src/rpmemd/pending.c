/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmemd/pending.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/poll.h"

static void pending_free(struct pending *pending)
{
	close(pending->fd);
	free(pending);
}

void pendings_remove(struct arrivals *pendings, struct pending *pending)
{
	arrivals_remove(pendings, &pending->arrival);
	pending_free(pending);
}

void pendings_remove_all(struct arrivals *pendings)
{
	struct list *it, *next;

	list_for_each_safe (it, next, &pendings->list)
		pendings_remove(pendings, container_of(it, struct pending, arrival.node));
}

static void pendings_make_room(struct arrivals *pendings, const char *addr, unsigned max)
{
	struct arrival *one;

	while ((one = arrivals_surplus(pendings, addr, max))) {
		LOG_WARNING_LIMITED(
			"too many connections have not proved the secret yet: the oldest, from %s, "
			"is closed",
			one->addr);
		pendings_remove(pendings, container_of(one, struct pending, arrival));
	}
}

void pendings_add(struct arrivals *pendings, unsigned max, int fd, const char *addr)
{
	struct pending *pending = malloc(sizeof(*pending));
	struct error err;

	if (!pending) {
		LOG_ERROR_LIMITED("a connection cannot be served: out of memory");
		close(fd);
		return;
	}
	pendings_make_room(pendings, addr, max);
	pending->fd = fd;
	snprintf(pending->addr, sizeof(pending->addr), "%s", addr);
	pending->arrival = (struct arrival){.state = ARRIVAL_PENDING,
					    .addr = pending->addr,
					    .deadline = poll_deadline(DIRECT_PROOF_MS)};
	wire_stream_init(&pending->stream, fd, fd);
	if (!direct_greet(&pending->stream, &pending->exchange, &err)) {
		arrivals_add(pendings, &pending->arrival);
		return;
	}
	LOG_WARNING_LIMITED("%s: %s", addr, err.text);
	pending_free(pending);
}

int pendings_check_time(struct arrivals *pendings)
{
	struct arrival *one;
	uint64_t nearest;

	while ((one = arrivals_overdue(pendings, clock_now_ns(), &nearest))) {
		LOG_WARNING_LIMITED("%s has not proved the secret in time", one->addr);
		pendings_remove(pendings, container_of(one, struct pending, arrival));
	}
	return nearest == UINT64_MAX ? -1 : poll_ms_left(nearest);
}
