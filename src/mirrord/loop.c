/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop: descriptors and time. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "mirrord/connections.h"
#include "mirrord/requests.h"
#include "service/peer.h"

#define LOOP_TICK_MS 1000 /* longest wait */

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

void loop_run(struct daemon *d)
{
	while (!d->is_ending) {
		struct epoll_event ev;
		/* Take one event at a time, as its handler may end the object of another event. */
		int n = epoll_wait(d->epoll_fd, &ev, 1, loop_wait_ms(d));
		struct watch *w = ev.data.ptr;

		if (n > 0)
			w->on_ready(w);
		else if (n < 0 && errno != EINTR)
			LOG_ERROR_LIMITED("epoll: %s", strerror(errno));
	}
}
