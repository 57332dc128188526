/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/event.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "mirror/errmsg.h"
#include "mirror/restore.h"
#include "mirror/set.h"

int events_init(struct events *e)
{
	*e = (struct events){.fd = ownfd_event(EFD_NONBLOCK)};
	if (e->fd < 0)
		return errmsg_fail(RPMIRROR_E_PROVIDER, "cannot make an eventfd: %s",
				   strerror(errno));
	return 0;
}

void events_fini(struct events *e)
{
	if (e->fd >= 0)
		close(e->fd);
	e->fd = -1;
}

/* Put an event into the queue for the application. */
static void events_offer(struct events *e, const struct rpmirror_event *event)
{
	if (e->count == EVENTS_MAX) {
		e->missed++;
		return;
	}
	e->ring[(e->first + e->count) % EVENTS_MAX] = *event;
	if (!e->count++)
		ownfd_wake(e->fd);
}

void events_add(struct events *e, enum rpmirror_event_type type, uint32_t member, uint64_t value,
		const char *fmt, ...)
{
	struct rpmirror_event event = {.size = sizeof(event),
				       .type = type,
				       .member = member,
				       .value = value,
				       .time_ms = clock_read_ns(CLOCK_REALTIME) / NSEC_PER_MS};
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(event.text, sizeof(event.text), fmt, ap);
	va_end(ap);
	events_offer(e, &event);
	/* If the queue is full, drop the oldest event: the next report gets the newest events. */
	e->unreported[(e->unreported_first + e->unreported_count) % EVENTS_UNREPORTED] = event;
	if (e->unreported_count < EVENTS_UNREPORTED)
		e->unreported_count++;
	else
		e->unreported_first = (e->unreported_first + 1) % EVENTS_UNREPORTED;
}

bool events_take_unreported(struct events *e, struct rpmirror_event *event)
{
	if (!e->unreported_count)
		return false;
	*event = e->unreported[e->unreported_first];
	e->unreported_first = (e->unreported_first + 1) % EVENTS_UNREPORTED;
	e->unreported_count--;
	return true;
}

/* Take the oldest event. Returns false if there is no event. */
static bool events_take(struct events *e, struct rpmirror_event *event)
{
	if (!e->count && e->missed) {
		uint64_t missed = e->missed;

		e->missed = 0;
		events_add(e, RPMIRROR_EVENT_MISSED, UINT32_MAX, missed,
			   "%llu events were dropped, because the program did not take them",
			   (unsigned long long)missed);
	}
	if (!e->count)
		return false;
	*event = e->ring[e->first];
	e->first = (e->first + 1) % EVENTS_MAX;
	if (!--e->count && !e->missed)
		ownfd_clear(e->fd);
	return true;
}

static int event_refuse(const struct rpmirror *m)
{
	return errmsg_fail(RPMIRROR_E_NOSUPP,
			   "set %s is mapped read-only, and such a mapping has no events: "
			   "rpmirror_get_state() returns the age of its content",
			   m->set);
}

int rpmirror_get_fd(struct rpmirror *m, int *fd)
{
	if (!set_is_usable(m) || !fd)
		return errmsg_fail(RPMIRROR_E_INVAL, "rpmirror_get_fd: not this process's set, or "
						     "no output");
	if (!m->has_thread)
		return event_refuse(m);
	*fd = m->events.fd;
	return 0;
}

int rpmirror_next_event(struct rpmirror *m, struct rpmirror_event *ev)
{
	struct rpmirror_event event;
	bool taken;

	if (!set_is_usable(m) || !ev || ev->size < sizeof(ev->size))
		return errmsg_fail(RPMIRROR_E_INVAL, "rpmirror_next_event: not this process's set, "
						     "or no output with its size");
	if (!m->has_thread)
		return event_refuse(m);
	pthread_mutex_lock(&m->lock);
	if (m->restore)
		restore_collect(m);
	taken = events_take(&m->events, &event);
	pthread_mutex_unlock(&m->lock);
	if (!taken)
		return RPMIRROR_E_NO_EVENT;
	set_answer(ev, &event, sizeof(event));
	return 0;
}
