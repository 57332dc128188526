/* SPDX-License-Identifier: BSD-3-Clause */
/* event.c -- event channels of faces, and their events. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "interposer/face.h"
#include "softrnic/softrnic.h"

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
 * rping, and others of its descent, destroy a channel while a thread of theirs waits there, or is
 * about to. So the channel itself is never freed, and what it holds only if nobody is inside.
 */
void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	struct face_chan *ch = face_chan_of(channel);

	atomic_store(&ch->dead, true);
	if (atomic_load(&ch->users))
		return;
	if (ch->hard) {
		hard_words()->cm.destroy_event_channel(ch->hard);
		close(ch->pub.fd);
	}
	softrnic_destroy_event_channel(ch->soft);
}

/* The next event of either source, as the descriptor's O_NONBLOCK says. */
static int chan_next(struct face_chan *ch, const struct words **w, struct rdma_cm_event **ev)
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

/* In a synchronous id's life each request has a channel of its own, as rdma_get_request(3) wants.
 */
static struct face *request_face(struct face *listener, struct rdma_cm_id *inner)
{
	struct face *f = face_new_passive(listener, inner);

	if (f && listener->own_chan && rdma_migrate_id(&f->pub, NULL)) {
		face_free(f);
		return NULL;
	}
	return f;
}

static int event_dress(struct face_event *e)
{
	struct rdma_cm_event *ev = e->inner;
	struct face *f;

	e->pub = *ev;
	if (ev->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		struct face *listener = ev->listen_id->context;

		f = request_face(listener, ev->id);
		e->pub.listen_id = &listener->pub;
	} else {
		f = ev->id->context;
	}
	if (!f)
		return -1;
	e->pub.id = &f->pub;
	face_sync(f);
	f->ended = f->ended || ev->event == RDMA_CM_EVENT_DISCONNECTED;
	return 0;
}

/* For want of memory here: as if the request had never come. */
static void request_refuse(const struct words *w, struct rdma_cm_event *ev)
{
	struct rdma_cm_id *id = ev->event == RDMA_CM_EVENT_CONNECT_REQUEST ? ev->id : NULL;

	w->cm.ack_cm_event(ev);
	if (id)
		w->cm.destroy_id(id);
}

static int chan_use(struct face_chan *ch, const struct words **w, struct rdma_cm_event **ev)
{
	int ret = -1;

	atomic_fetch_add(&ch->users, 1);
	if (atomic_load(&ch->dead))
		errno = EBADF;
	else
		ret = chan_next(ch, w, ev);
	atomic_fetch_sub(&ch->users, 1);
	return ret;
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	struct face_event *e = calloc(1, sizeof(*e));

	if (!e)
		return -1;
	if (chan_use(face_chan_of(channel), &e->words, &e->inner)) {
		free(e);
		return -1;
	}
	if (event_dress(e)) {
		request_refuse(e->words, e->inner);
		free(e);
		return REFUSE_NEG(ENOMEM);
	}
	*event = &e->pub;
	return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	struct face_event *e = (struct face_event *)event;
	int ret;

	if (!event)
		return REFUSE_NEG(EINVAL);
	ret = e->words->cm.ack_cm_event(e->inner);
	free(e);
	return ret;
}

int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	struct face *f = face_of(id);
	WORDS_SCOPE w = f->words;
	struct rdma_event_channel *to = channel ? channel : rdma_create_event_channel();
	struct face_chan *ch = to ? face_chan_of(to) : NULL;

	if (!ch)
		return -1;
	if (f->own_chan && id->event) {
		rdma_ack_cm_event(id->event);
		id->event = NULL;
	}
	if (w->cm.migrate_id(f->inner, w->hard ? ch->hard : ch->soft)) {
		if (!channel)
			rdma_destroy_event_channel(to);
		return -1;
	}
	if (f->own_chan)
		rdma_destroy_event_channel(&f->own_chan->pub);
	f->own_chan = channel ? NULL : ch;
	id->channel = to;
	return 0;
}

int face_complete(struct face *f, int ret)
{
	struct rdma_cm_id *id = &f->pub;
	int status;

	if (ret || !f->own_chan)
		return ret;
	if (id->event) {
		rdma_ack_cm_event(id->event);
		id->event = NULL;
	}
	if (rdma_get_cm_event(id->channel, &id->event))
		return -1;
	status = id->event->status;
	if (!status)
		return 0;
	if (id->event->event == RDMA_CM_EVENT_REJECTED)
		return REFUSE_NEG(ECONNREFUSED);
	return REFUSE_NEG(status < 0 ? -status : status);
}
