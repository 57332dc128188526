/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/link_self.h"

#include <errno.h>
#include <stdlib.h>

#include "softrnic/io/engine.h"
#include "softrnic/io/link.h"

#define SELF_RING (256u << 10) /* as many bytes as a queue pair builds in one call */

struct link_self {
	struct link link;
	struct eng_source *src;
	/* this end has closed its sending direction, which is also its receiving direction */
	bool ended;
	bool full; /* the last send found the ring full */
	size_t head, len;
	uint8_t ring[SELF_RING];
};

static const struct link_ops link_self;

struct link *link_self_new(struct eng_source *src)
{
	struct link_self *s = malloc(sizeof(*s));

	if (!s)
		return NULL;
	s->link.ops = &link_self;
	s->src = src;
	s->ended = s->full = false;
	s->head = s->len = 0;
	return &s->link;
}

static struct link_self *link_self_of(struct link *l)
{
	return (struct link_self *)l;
}

/* --- bytes ---------------------------------------------------------------------------------- */

/* Length of the contiguous part of the ring that begins at `at`, at most max. */
static size_t link_self_piece(size_t at, size_t max)
{
	size_t piece = SELF_RING - at;

	return piece < max ? piece : max;
}

static ssize_t link_self_recv(struct link *l, struct iovec *iov, int n)
{
	struct link_self *s = link_self_of(l);
	ssize_t got;

	if (s->len == 0)
		return s->ended ? 0 : -EAGAIN;
	got = link_iov_put(iov, n, s->ring + s->head, link_self_piece(s->head, s->len));
	if (got <= 0)
		return got ? got : -EFAULT;
	s->head = (s->head + (size_t)got) % SELF_RING;
	s->len -= (size_t)got;
	link_iov_shorten(iov, n, (size_t)got);
	if (s->full)
		s->src->ready(s->src, READY_WRITE);
	s->full = false;
	return got;
}

static ssize_t link_self_send(struct link *l, struct iovec *iov, int n)
{
	struct link_self *s = link_self_of(l);
	size_t tail = (s->head + s->len) % SELF_RING;
	size_t room = link_self_piece(tail, SELF_RING - s->len);
	ssize_t taken;

	s->full = room == 0;
	if (s->full)
		return -EAGAIN;
	taken = link_iov_get(iov, n, s->ring + tail, room);
	if (taken < 0)
		return taken;
	s->len += (size_t)taken;
	link_iov_shorten(iov, n, (size_t)taken);
	s->src->ready(s->src, READY_READ);
	return taken;
}

static bool link_self_has_left(struct link *l)
{
	return link_self_of(l)->len == 0;
}

static void link_self_end_sending(struct link *l)
{
	struct link_self *s = link_self_of(l);

	s->ended = true;
	s->src->ready(s->src, READY_READ);
}

/* --- state ---------------------------------------------------------------------------------- */

static void link_self_watch_write(struct link *l, bool write)
{
	struct link_self *s = link_self_of(l);

	if (write && s->len < SELF_RING)
		s->src->ready(s->src, READY_WRITE);
}

static unsigned link_self_ready(struct link *l, unsigned polled)
{
	return polled;
}

static int link_self_error(struct link *l)
{
	return 0;
}

static bool link_self_has_ended(const struct link *l)
{
	return ((const struct link_self *)l)->ended;
}

static uint64_t link_self_unacknowledged_ns(struct link *l)
{
	return 0;
}

static int link_self_address(struct link *l, struct link_addr *addr)
{
	*addr = (struct link_addr){.family = LINK_NONE};
	return 0;
}

static uint32_t link_self_segment(struct link *l)
{
	return SELF_RING;
}

static void link_self_close(struct link *l)
{
	free(link_self_of(l));
}

static const struct link_ops link_self = {
	.name = "self",
	.watch_write = link_self_watch_write,
	.ready = link_self_ready,
	.recv = link_self_recv,
	.send = link_self_send,
	.has_left = link_self_has_left,
	.end_sending = link_self_end_sending,
	.error = link_self_error,
	.has_ended = link_self_has_ended,
	.unacknowledged_ns = link_self_unacknowledged_ns,
	.local = link_self_address,
	.remote = link_self_address,
	.segment = link_self_segment,
	.close = link_self_close,
	.reset = link_self_close,
	.forked = link_self_close,
};
