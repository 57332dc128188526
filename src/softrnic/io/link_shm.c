/* SPDX-License-Identifier: BSD-3-Clause */
/* link_shm.c -- rings in shared memory as a link: creates and ends it, and passes operations to the
 * link below (the TCP link that the rings replace). */
#include "softrnic/io/link_shm.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/ownfd.h"
#include "softrnic/io/engine.h"
#include "softrnic/io/link_shm_close.h"
#include "softrnic/io/link_shm_impl.h"
#include "softrnic/io/link_tcp.h"

static const struct link_ops link_shm;

/* --- creation and end ----------------------------------------------------------------------- */

struct link *link_shm_alloc(void)
{
	struct link_shm *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->link.ops = &link_shm;
	return &s->link;
}

void link_shm_free(struct link *l)
{
	if (l)
		free(link_shm_of(l));
}

void link_shm_init(struct link *l, struct link *below, struct eng_source *src, bool initiator,
		   const struct shm_memory *memory, int fd)
{
	struct link_shm *s = link_shm_of(l);

	s->below = below;
	s->src = src;
	s->trace = link_tcp_trace_of(below);
	s->fd = fd;
	s->watched = true;
	s->memory = *memory;
	shm_memory_ring(memory, initiator ? 0 : 1, &s->tx);
	shm_memory_ring(memory, initiator ? 1 : 0, &s->rx);
	s->given_up = shm_memory_given_up(memory, initiator ? 0 : 1);
	s->peer_given_up = shm_memory_given_up(memory, initiator ? 1 : 0);
}

bool link_is_shm(const struct link *l)
{
	return l && l->ops == &link_shm;
}

/* The descriptor is cleared before it is closed: a forked child closes all stored descriptors
 * (link_shm_forked()), so none of them may already be closed. */
void link_shm_close_socket(struct link_shm *s)
{
	int fd = s->fd;

	if (fd < 0)
		return;
	engine_remove_more(s->src, fd);
	s->fd = -1;
	shm_socket_close(fd);
}

void link_shm_undo(struct link **l)
{
	struct link_shm *s = link_shm_of(*l);

	*l = s->below;
	link_shm_close_socket(s);
	shm_memory_free(&s->memory);
	free(s);
}

/* Close the link below first: the peer treats the end of this link as the end of the connection. */
static void link_shm_close_as(struct link_shm *s, void (*below)(struct link *l))
{
	if (s->fd >= 0)
		engine_remove_more(s->src, s->fd);
	below(s->below);
	shm_socket_close(s->fd);
	shm_memory_free(&s->memory);
	free(s);
}

static void link_shm_close(struct link *l)
{
	struct link_shm *s = link_shm_of(l);

	link_shm_close_as(s, s->below->ops->close);
}

static void link_shm_reset(struct link *l)
{
	struct link_shm *s = link_shm_of(l);

	atomic_store(s->given_up,
		     /* the peer must see the word before the end of the link below */
		     SHM_GIVEN_UP);
	link_shm_close_as(s, s->below->ops->reset);
}

static void link_shm_forked(struct link *l)
{
	struct link_shm *s = link_shm_of(l);

	s->below->ops->forked(s->below);
	ownfd_close_marked(s->fd);
	shm_memory_forked(&s->memory);
	free(s);
}

/* --- switching ------------------------------------------------------------------------------ */

void link_shm_switch_tx(struct link *l)
{
	link_shm_of(l)->tx_on = true;
}

/* Receiving uses the ring from now on. The link below may have reported its end together with its
 * last bytes, so check for the end. */
void link_shm_switch_rx(struct link *l)
{
	struct link_shm *s = link_shm_of(l);

	s->rx_on = s->looks_below = true;
}

static void link_shm_look_for_end(struct link *l)
{
	struct link_shm *s = link_shm_of(l);

	s->looks_below |= s->rx_on;
}

const atomic_uint *link_shm_given_up(const struct link *l)
{
	return ((const struct link_shm *)l)->peer_given_up;
}

bool link_shm_receives(const struct link *l)
{
	return ((const struct link_shm *)l)->rx_on;
}

/* --- operations that use the link below ----------------------------------------------------- */

static void link_shm_watch_write(struct link *l, bool write)
{
	struct link_shm *s = link_shm_of(l);

	if (!s->tx_on)
		s->below->ops->watch_write(s->below, write);
	/* if tx_on is set, a send that found the ring full has already requested the report */
}

/* Bytes in the ring cannot be lost. The SWITCH message before them was sent over the link below. */
static bool link_shm_has_left(struct link *l)
{
	struct link_shm *s = link_shm_of(l);

	return s->below->ops->has_left(s->below);
}

static void link_shm_end_sending(struct link *l)
{
	struct link_shm *s = link_shm_of(l);

	atomic_store(s->given_up, SHM_STANDS);
	s->below->ops->end_sending(s->below);
}

/* Returns the error of the link below. If the peer has set SHM_STANDS, a reset by the peer counts
 * like a reset after its FIN, so the peer's bytes are still executed. */
static int link_shm_error(struct link *l)
{
	struct link_shm *s = link_shm_of(l);
	int err = s->below->ops->error(s->below);

	return err == -ECONNRESET && atomic_load(s->peer_given_up) == SHM_STANDS ? -EPIPE : err;
}

static bool link_shm_has_ended(const struct link *l)
{
	const struct link *below = ((const struct link_shm *)l)->below;

	return below->ops->has_ended(below);
}

/*
 * Returns 0: the peer is on this host, so it is reachable. The heartbeat checks whether the peer's
 * process is alive.
 */
static uint64_t link_shm_unacknowledged_ns(struct link *l)
{
	struct link_shm *s = link_shm_of(l);

	return s->tx_on ? 0 : s->below->ops->unacknowledged_ns(s->below);
}

static int link_shm_local(struct link *l, struct link_addr *addr)
{
	struct link_shm *s = link_shm_of(l);

	return s->below->ops->local(s->below, addr);
}

static int link_shm_remote(struct link *l, struct link_addr *addr)
{
	struct link_shm *s = link_shm_of(l);

	return s->below->ops->remote(s->below, addr);
}

static uint32_t link_shm_segment(struct link *l)
{
	struct link_shm *s = link_shm_of(l);

	return s->below->ops->segment(s->below);
}

/* Such a link is not chosen by addresses, so it has no row in the table of links. */
static const struct link_polling link_shm_polling = {
	.report_read = link_shm_report_read,
	.wait_begin = link_shm_wait_begin,
	.wait_end = link_shm_wait_end,
};

static const struct link_in_place link_shm_in_place = {
	.pending = link_shm_pending,
	.look = link_shm_look,
	.consume = link_shm_consume,
	.look_for_end = link_shm_look_for_end,
	.has_room = link_shm_has_room,
	.lend = link_shm_lend,
	.commit = link_shm_commit,
};

static const struct link_ops link_shm = {
	.name = "shm",
	.gathers_sends = true,
	.polling = &link_shm_polling,
	.in_place = &link_shm_in_place,
	.watch_write = link_shm_watch_write,
	.ready = link_shm_ready,
	.recv = link_shm_recv,
	.send = link_shm_send,
	.has_left = link_shm_has_left,
	.end_sending = link_shm_end_sending,
	.error = link_shm_error,
	.has_ended = link_shm_has_ended,
	.unacknowledged_ns = link_shm_unacknowledged_ns,
	.local = link_shm_local,
	.remote = link_shm_remote,
	.segment = link_shm_segment,
	.close = link_shm_close,
	.reset = link_shm_reset,
	.forked = link_shm_forked,
};
