/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs the daemon's loop: waits for descriptors, and does periodic work. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "mirrord/connections.h"
#include "mirrord/requests.h"
#include "service/manager.h"
#include "service/peer.h"

#define LOOP_TICK_MS 1000 /* longest time that the loop waits */

int loop_watch(struct daemon *d, struct watch *w, int fd, void (*on_ready)(struct watch *w),
	       void *owner)
{
	*w = (struct watch){.fd = fd, .on_ready = on_ready, .owner = owner};
	if (!peer_watch(d->epoll_fd, fd, w))
		return 0;
	w->fd = -1;
	return -errno;
}

void loop_unwatch(struct daemon *d, struct watch *w)
{
	if (w->fd >= 0 && w->on_ready)
		epoll_ctl(d->epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
	w->fd = -1;
}

static int loop_wait_ms(struct daemon *d)
{
	uint64_t now = clock_boot_ms(), deadline;
	int ms, wait = LOOP_TICK_MS;

	for (unsigned i = 0; i < d->conf->set_count; i++) {
		ms = set_tick(&d->sets[i], now);
		wait = ms < wait ? ms : wait;
	}
	ms = requests_tick(d, now);
	if (ms >= 0 && ms < wait)
		wait = ms;
	deadline = inbounds_deadline(d, now);
	if (deadline != UINT64_MAX && deadline < now + (uint64_t)wait)
		wait = deadline > now ? (int)(deadline - now) : 0;
	return wait;
}

/*
 * Report to the service manager. READY is sent after the first attempt to open each set: a set
 * whose medium is absent must not keep other sets from being served. The status text shows such a
 * set.
 */
static void loop_report(struct daemon *d)
{
	static const char fmt[] = "at %s, %u of %u sets have their copies open";
	unsigned open = 0;
	char at[ADDRESS_TEXT];

	for (unsigned i = 0; i < d->conf->set_count; i++)
		open += d->sets[i].is_open;
	if (d->is_ready && open == d->reported_open)
		return;
	address_show(&d->listen, at);
	(d->is_ready ? manager_status : manager_ready)(fmt, at, open, d->conf->set_count);
	d->is_ready = true;
	d->reported_open = open;
}

void loop_run(struct daemon *d)
{
	while (!d->is_ending) {
		struct epoll_event ev;
		int n, wait_ms = loop_wait_ms(d);

		loop_report(d);
		/* Take one event at a time, because its handler may end the object of another
		 * event. */
		n = epoll_wait(d->epoll_fd, &ev, 1, wait_ms);
		if (n > 0)
			((struct watch *)ev.data.ptr)->on_ready(ev.data.ptr);
		else if (n < 0 && errno != EINTR)
			LOG_ERROR_LIMITED("epoll: %s", strerror(errno));
	}
}
