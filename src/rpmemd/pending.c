/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmemd/pending.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/poll.h"

void pendings_remove(struct pendings *p, struct pending *pending)
{
	struct pending **at = &p->first;

	while (*at != pending)
		at = &(*at)->next;
	*at = pending->next;
	close(pending->fd);
	free(pending);
}

void pendings_remove_all(struct pendings *p)
{
	while (p->first)
		pendings_remove(p, p->first);
}

/* Of one address, or of any; *count is how many there are. */
static struct pending *pendings_oldest(const struct pendings *p, const char *addr, unsigned *count)
{
	struct pending *oldest = NULL;

	*count = 0;
	for (struct pending *pending = p->first; pending; pending = pending->next) {
		if (addr && strcmp(addr, pending->addr) != 0)
			continue;
		oldest = pending;
		(*count)++;
	}
	return oldest;
}

static void pendings_limit(struct pendings *p, const char *addr, unsigned limit)
{
	unsigned count;
	struct pending *oldest = pendings_oldest(p, addr, &count);

	if (count < limit)
		return;
	LOG_WARNING_LIMITED("too many connections that have proved nothing: the oldest, from %s, "
			    "is closed",
			    oldest->addr);
	pendings_remove(p, oldest);
}

void pendings_add(struct pendings *p, int fd, const char *addr)
{
	struct pending *pending = malloc(sizeof(*pending));
	struct error err;

	if (!pending) {
		LOG_ERROR_LIMITED("a connection cannot be served: out of memory");
		close(fd);
		return;
	}
	pendings_limit(p, addr, p->max > 4 ? p->max / 4 : 1);
	pendings_limit(p, NULL, p->max);
	pending->fd = fd;
	pending->deadline = poll_deadline(DIRECT_PROOF_MS);
	snprintf(pending->addr, sizeof(pending->addr), "%s", addr);
	wire_stream_init(&pending->stream, fd, fd);
	pending->next = p->first;
	p->first = pending;
	if (direct_greet(&pending->stream, &pending->exchange, &err)) {
		LOG_WARNING_LIMITED("%s: %s", addr, err.text);
		pendings_remove(p, pending);
	}
}

int pendings_check_time(struct pendings *p)
{
	unsigned count;
	struct pending *oldest = pendings_oldest(p, NULL, &count);

	while (oldest && !poll_ms_left(oldest->deadline)) {
		LOG_WARNING_LIMITED("%s has proved nothing in time", oldest->addr);
		pendings_remove(p, oldest);
		oldest = pendings_oldest(p, NULL, &count);
	}
	return oldest ? poll_ms_left(oldest->deadline) : -1;
}
