/* SPDX-License-Identifier: BSD-3-Clause */
/* channel.c -- event channels: creation, waiting, and destruction while threads still wait. */
#include "interposer/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "softrnic/softrnic.h"

/*
 * rping and programs derived from it destroy a channel while one of their threads waits on the
 * channel, or is about to wait. With a kernel device such a thread stays in the kernel until the
 * process exits. Here the thread also waits for ever, and its channel is kept. For threads that are
 * only about to wait, the memory of a destroyed channel is kept until KEPT more channels are
 * destroyed.
 */
enum { KEPT = 64 };
static _Atomic(struct shim_channel *) kept[KEPT];
static atomic_uint kept_next;

#define CHANNEL_DESTROYED                                                                          \
	0x80000000u /* this bit of shim_channel.state; the other bits count the threads inside */

static bool channel_watch(int epfd, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN};

	return !epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev);
}

/* If rdma-core is present, watch both sources of events by one epoll descriptor. */
static bool channel_join(struct shim_channel *ch, const struct ops *rdma_core)
{
	int epfd = epoll_create1(EPOLL_CLOEXEC);

	ch->rdma_core = rdma_core->cm.create_event_channel();
	if (epfd >= 0 && ch->rdma_core && channel_watch(epfd, ch->softrnic->fd) &&
	    channel_watch(epfd, ch->rdma_core->fd)) {
		fcntl(ch->rdma_core->fd, F_SETFL, O_NONBLOCK);
		fcntl(ch->softrnic->fd, F_SETFL, O_NONBLOCK);
		ch->pub.fd = epfd;
		return true;
	}
	if (ch->rdma_core)
		rdma_core->cm.destroy_event_channel(ch->rdma_core);
	ch->rdma_core = NULL;
	if (epfd >= 0)
		close(epfd);
	return false;
}

struct shim_channel *shim_channel_new(void)
{
	struct shim_channel *ch = calloc(1, sizeof(*ch));

	if (!ch)
		return NULL;
	ch->softrnic = softrnic_create_event_channel();
	if (ch->softrnic) {
		ch->pub.fd = ch->softrnic->fd;
		if (!rdma_core_ops() || channel_join(ch, rdma_core_ops()))
			return ch;
		softrnic_destroy_event_channel(ch->softrnic);
	}
	free(ch);
	return NULL;
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct shim_channel *ch = shim_channel_new();

	return ch ? &ch->pub : NULL;
}

/*
 * Release a channel that no thread uses, and that no thread can begin to use. A thread that tries
 * to use it counts as a user until it sees that the channel is destroyed. Such a thread may then be
 * the last user, so two threads may call this function.
 */
static void channel_release(struct shim_channel *ch)
{
	struct shim_channel *oldest;

	if (atomic_exchange(&ch->released, true))
		return;
	if (ch->rdma_core) {
		rdma_core_ops()->cm.destroy_event_channel(ch->rdma_core);
		close(ch->pub.fd);
	}
	softrnic_destroy_event_channel(ch->softrnic);
	oldest = atomic_exchange(&kept[atomic_fetch_add(&kept_next, 1) % KEPT], ch);
	free(oldest);
}

void shim_channel_delete(struct shim_channel *ch)
{
	ch->blocking = !(fcntl(ch->pub.fd, F_GETFL) & O_NONBLOCK);
	if (atomic_fetch_or(&ch->state, CHANNEL_DESTROYED) == 0)
		channel_release(ch);
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	shim_channel_delete(shim_channel_of(channel));
}

/* Take the next event of either source. O_NONBLOCK of the descriptor decides whether the call
 * waits. */
static int channel_take(struct shim_channel *ch, const struct ops **ops, struct rdma_cm_event **ev)
{
	struct pollfd readable = {.fd = ch->pub.fd, .events = POLLIN};

	*ops = &softrnic_ops;
	if (!ch->rdma_core)
		return softrnic_get_cm_event(ch->softrnic, ev);
	for (;;) {
		if (!softrnic_get_cm_event(ch->softrnic, ev))
			return 0;
		if (!rdma_core_ops()->cm.get_cm_event(ch->rdma_core, ev)) {
			*ops = rdma_core_ops();
			return 0;
		}
		if (fcntl(ch->pub.fd, F_GETFL) & O_NONBLOCK)
			return REFUSE_NEG(EAGAIN);
		if (poll(&readable, 1, -1) < 0)
			return -1;
	}
}

static void channel_leave(void *arg)
{
	struct shim_channel *ch = arg;

	if (atomic_fetch_sub(&ch->state, 1) == (CHANNEL_DESTROYED | 1))
		channel_release(ch);
}

int shim_channel_next(struct shim_channel *ch, const struct ops **ops, struct rdma_cm_event **ev)
{
	bool destroyed = atomic_fetch_add(&ch->state, 1) & CHANNEL_DESTROYED, blocking;
	int ret = -1, err;

	pthread_cleanup_push(channel_leave, ch);
	if (!destroyed)
		ret = channel_take(ch, ops, ev);
	err = errno;
	destroyed = atomic_load(&ch->state) & CHANNEL_DESTROYED;
	blocking = destroyed && ch->blocking;
	pthread_cleanup_pop(1);
	if (ret && destroyed) {
		/* the thread can be cancelled here, as in a wait in the kernel */
		while (blocking)
			pause();
		return REFUSE_NEG(EBADF);
	}
	errno = err;
	return ret;
}
