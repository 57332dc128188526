/* SPDX-License-Identifier: BSD-3-Clause */
/* poller.c -- waits for descriptors by epoll(7). */
#include "softrnic/io/poller.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/ownfd.h"

#define POLLER_MAX_MS 60000

void poller_close(struct poller *p)
{
	ownfd_close_marked(p->epfd);
	ownfd_close_marked(p->wakefd);
	*p = (struct poller){.epfd = -1, .wakefd = -1};
}

int poller_open(struct poller *p)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = POLLER_WAKEUP};

	p->epfd = ownfd_mark(epoll_create1(EPOLL_CLOEXEC));
	p->wakefd = ownfd_event(EFD_NONBLOCK);
	if (p->epfd < 0 || p->wakefd < 0 || epoll_ctl(p->epfd, EPOLL_CTL_ADD, p->wakefd, &ev))
		return -errno;
	return 0;
}

static int poller_ctl(struct poller *p, int op, int fd, uint64_t data, bool read, bool write)
{
	struct epoll_event ev = {
		.events = EPOLLRDHUP | EPOLLET | (read ? EPOLLIN : 0) | (write ? EPOLLOUT : 0),
		.data.u64 = data,
	};

	return epoll_ctl(p->epfd, op, fd, &ev) ? -errno : 0;
}

int poller_add(struct poller *p, int fd, uint64_t data, bool write)
{
	return poller_ctl(p, EPOLL_CTL_ADD, fd, data, true, write);
}

int poller_change(struct poller *p, int fd, uint64_t data, bool read, bool write)
{
	return poller_ctl(p, EPOLL_CTL_MOD, fd, data, read, write);
}

void poller_remove(struct poller *p, int fd)
{
	epoll_ctl(p->epfd, EPOLL_CTL_DEL, fd, NULL);
}

int poller_watch(struct poller *p, struct poller *watched, uint64_t data, bool report)
{
	struct epoll_event ev = {.events = report ? EPOLLIN | EPOLLONESHOT : 0, .data.u64 = data};
	int op = watched->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	if (epoll_ctl(p->epfd, op, watched->epfd, &ev))
		return -errno;
	watched->watched = true;
	return 0;
}

static unsigned poller_ready(uint32_t events)
{
	unsigned ready = 0;

	if (events == EPOLLIN) /* the usual case */
		return READY_READ;
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		ready |= READY_READ;
	if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		ready |= READY_HANGUP;
	if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
		ready |= READY_WRITE;
	return ready;
}

/* If the deadline is closer than this, wait for it with nanosecond precision. */
#define POLLER_EXACT_NS (5 * NSEC_PER_MS)

static int poller_timeout_ms(uint64_t until, uint64_t now)
{
	uint64_t ms;

	if (until == CLOCK_NEVER)
		return -1;
	if (until <= now)
		return 0;
	ms = (until - now + NSEC_PER_MS - 1) / NSEC_PER_MS;
	return ms > POLLER_MAX_MS ? POLLER_MAX_MS : (int)ms;
}

static int poller_epoll(struct poller *p, struct epoll_event *got, uint64_t until, uint64_t now)
{
	struct timespec ts;
	int n;

	if (until <= now || until - now >= POLLER_EXACT_NS)
		return epoll_wait(p->epfd, got, POLLER_BATCH, poller_timeout_ms(until, now));
	ts = (struct timespec){.tv_nsec = (long)(until - now)};
	n = epoll_pwait2(p->epfd, got, POLLER_BATCH, &ts, NULL);
	if (n < 0 && errno == ENOSYS) /* the kernel is older than Linux 5.11 */
		n = epoll_wait(p->epfd, got, POLLER_BATCH, poller_timeout_ms(until, now));
	return n;
}

/*
 * Called when the application has closed the descriptor of the poller, for example by closefrom(3).
 * No event arrives any more, and the number may belong to another file. From now on neither sources
 * nor timers are served, because a timer's callback might send bytes to a wrong file.
 */
static void poller_end(void)
{
	LOG_ERROR(
		"the application has closed descriptors of librpma: its connections no longer make "
		"progress");
	for (;;)
		pause();
}

/* Wait for events. Returns their number. A wake-up counts as an event without a source. */
int poller_wait(struct poller *p, struct poller_event *evs, uint64_t until, uint64_t now)
{
	struct epoll_event got[POLLER_BATCH];
	int n = poller_epoll(p, got, until, now);

	if ((n < 0 && errno != EINTR) || (!n && until > now && !ownfd_is_marked(p->epfd)))
		poller_end();
	for (int i = 0; i < n; i++) {
		evs[i].data = got[i].data.u64;
		evs[i].ready = poller_ready(got[i].events);
		if (evs[i].data == POLLER_WAKEUP && !ownfd_clear(p->wakefd))
			LOG_DEBUG("woken by another's wake-up");
	}
	return n > 0 ? n : 0;
}

void poller_wake(struct poller *p)
{
	if (p->wakefd >= 0 && !ownfd_wake(p->wakefd))
		LOG_DEBUG("a wake-up is pending already");
}
