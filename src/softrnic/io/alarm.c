/* SPDX-License-Identifier: BSD-3-Clause */
/* alarm.c -- implements an alarm by a timerfd(2). A deadline of the engine (struct eng_timer) would
 * not suffice: after such a deadline is moved to a later time, the leader still wakes at the former
 * time. */
#include "softrnic/io/alarm.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ownfd.h"
#include "softrnic/io/policy.h"

uint64_t alarm_pace(const struct alarm *a, enum policy_use use)
{
	return policy_pace(use, atomic_load_explicit(&a->cost_ns, memory_order_relaxed));
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
	uint64_t cost;

	if (!alarm_open(a) || timerfd_settime(a->fd, 0, &when, NULL))
		return false;
	cost = atomic_load_explicit(&a->cost_ns, memory_order_relaxed);
	atomic_store_explicit(&a->cost_ns, policy_cost(cost, clock_now_ns() - now, ns),
			      memory_order_relaxed);
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
