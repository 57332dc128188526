/* SPDX-License-Identifier: BSD-3-Clause */
/* chan.c -- event channels of faces: made, waited on, and outlived by those who wait. */
#include "interposer/chan.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "softrnic/softrnic.h"

/*
 * rping, and others of its descent, destroy a channel while a thread of theirs waits there or is
 * about to. With a kernel's device that thread stays in the kernel until the process ends; so it
 * does here, and what it waits on stays for it. Of those about to wait, the memory of a channel
 * outlives it by so many others.
 */
enum { KEPT = 64 };
static _Atomic(struct face_chan *) kept[KEPT];
static atomic_uint kept_next;

#define DEAD 0x80000000u /* in face_chan.state; the rest counts the threads inside */

static bool epoll_watch(int epfd, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN};

	return !epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev);
}

/* With hardware there are two sources of events behind one descriptor. */
static bool chan_join(struct face_chan *ch, const struct words *hard)
{
	int epfd = epoll_create1(EPOLL_CLOEXEC);

	ch->hard = hard->cm.create_event_channel();
	if (epfd >= 0 && ch->hard && epoll_watch(epfd, ch->soft->fd) &&
	    epoll_watch(epfd, ch->hard->fd)) {
		fcntl(ch->hard->fd, F_SETFL, O_NONBLOCK);
		fcntl(ch->soft->fd, F_SETFL, O_NONBLOCK);
		ch->pub.fd = epfd;
		return true;
	}
	if (ch->hard)
		hard->cm.destroy_event_channel(ch->hard);
	ch->hard = NULL;
	if (epfd >= 0)
		close(epfd);
	return false;
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct face_chan *ch = calloc(1, sizeof(*ch));

	if (!ch)
		return NULL;
	ch->soft = softrnic_create_event_channel();
	if (ch->soft) {
		ch->pub.fd = ch->soft->fd;
		if (!hard_words() || chan_join(ch, hard_words()))
			return &ch->pub;
		softrnic_destroy_event_channel(ch->soft);
	}
	free(ch);
	return NULL;
}

/*
 * Nobody is inside and nobody gets in any more; but whoever knocks is counted for a moment, and
 * finds when leaving that it was the last.
 */
static void chan_release(struct face_chan *ch)
{
	struct face_chan *oldest;

	if (atomic_exchange(&ch->released, true))
		return;
	if (ch->hard) {
		hard_words()->cm.destroy_event_channel(ch->hard);
		close(ch->pub.fd);
	}
	softrnic_destroy_event_channel(ch->soft);
	oldest = atomic_exchange(&kept[atomic_fetch_add(&kept_next, 1) % KEPT], ch);
	free(oldest);
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	struct face_chan *ch = face_chan_of(channel);

	ch->blocking = !(fcntl(ch->pub.fd, F_GETFL) & O_NONBLOCK);
	if (atomic_fetch_or(&ch->state, DEAD) == 0)
		chan_release(ch);
}

/* The next event of either source, as the descriptor's O_NONBLOCK says. */
static int chan_take(struct face_chan *ch, const struct words **w, struct rdma_cm_event **ev)
{
	struct pollfd readable = {.fd = ch->pub.fd, .events = POLLIN};

	*w = &soft_words;
	if (!ch->hard)
		return softrnic_get_cm_event(ch->soft, ev);
	for (;;) {
		if (!softrnic_get_cm_event(ch->soft, ev))
			return 0;
		if (!hard_words()->cm.get_cm_event(ch->hard, ev)) {
			*w = hard_words();
			return 0;
		}
		if (fcntl(ch->pub.fd, F_GETFL) & O_NONBLOCK)
			return REFUSE_NEG(EAGAIN);
		if (poll(&readable, 1, -1) < 0)
			return -1;
	}
}

/* Like a thread in the kernel, it still can be cancelled. */
static int chan_is_gone(bool blocking)
{
	while (blocking)
		pause();
	return REFUSE_NEG(EBADF);
}

static void chan_leave(void *arg)
{
	struct face_chan *ch = arg;

	if (atomic_fetch_sub(&ch->state, 1) == (DEAD | 1))
		chan_release(ch);
}

int face_chan_next(struct face_chan *ch, const struct words **w, struct rdma_cm_event **ev)
{
	bool dead = atomic_fetch_add(&ch->state, 1) & DEAD, blocking;
	int ret = -1, err;

	pthread_cleanup_push(chan_leave, ch);
	if (!dead)
		ret = chan_take(ch, w, ev);
	err = errno;
	dead = atomic_load(&ch->state) & DEAD;
	blocking = dead && ch->blocking;
	pthread_cleanup_pop(1);
	if (ret && dead)
		return chan_is_gone(blocking);
	errno = err;
	return ret;
}
