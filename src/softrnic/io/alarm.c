/* SPDX-License-Identifier: BSD-3-Clause */
/* alarm.c -- by timerfd(2): what the engine waits for
 * itself cannot be put off without waking it. */
#include "softrnic/io/alarm.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ownfd.h"

#define ALARM_NEAR_NS (1 * NSEC_PER_MS)  /* one further away says nothing about the cost */
#define ALARM_COST_NS (16 * NSEC_PER_US) /* more is the scheduler's */

uint64_t alarm_pace(const struct alarm *a, uint64_t ns)
{
	uint64_t least = ALARM_SHARE * atomic_load_explicit(&a->cost_ns, memory_order_relaxed);

	return ns > least ? ns : least;
}

/* It is cheap as well while another timer is to expire before it: so a cheap one counts little. */
static void alarm_note_cost(struct alarm *a, uint64_t ns)
{
	uint64_t cost = atomic_load_explicit(&a->cost_ns, memory_order_relaxed);
	uint64_t weight = ns > cost ? 8 : 64;

	if (ns > ALARM_COST_NS)
		ns = ALARM_COST_NS;
	atomic_store_explicit(&a->cost_ns, ((weight - 1) * cost + ns) / weight,
			      memory_order_relaxed);
}

bool alarm_open(struct alarm *a)
{
	int fd;

	if (a->fd >= 0)
		return true;
	fd = ownfd_mark(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
	if (fd < 0)
		return false;
	if (engine_add(&a->source, fd, false)) {
		close(fd);
		return false;
	}
	a->fd = fd;
	return true;
}

bool alarm_set(struct alarm *a, uint64_t now, uint64_t ns)
{
	struct itimerspec when = {.it_value.tv_nsec = (long)ns};

	if (!alarm_open(a) || timerfd_settime(a->fd, 0, &when, NULL))
		return false;
	if (ns <= ALARM_NEAR_NS)
		alarm_note_cost(a, clock_now_ns() - now);
	atomic_store_explicit(&a->due, now + ns, memory_order_relaxed);
	return true;
}

void alarm_has_expired(struct alarm *a)
{
	atomic_store_explicit(&a->due, 0, memory_order_relaxed);
}

void alarm_forked(struct alarm *a)
{
	ownfd_close_marked(a->fd);
	a->fd = -1;
	alarm_has_expired(a);
}

void alarm_freed(struct eng_source *src)
{
}
