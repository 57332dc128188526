/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_short.c -- the short way of short messages through a link in memory.
 *
 * In full operation most rounds of work are one of two: what was posted goes into the link, or what
 * has come is parsed where it lies, and answers to it go into the link. These are done here without
 * an update of the stream; whatever else is due, or goes wrong, is found and done by the general
 * way behind it (conn_perform()), as if it had come there at once.
 */
#include "softrnic/io/conn_parts.h"

/* Nothing of the connection, its link or its stream asks for more than that. */
static bool conn_is_short(struct conn *c)
{
	return c->link->ops->in_place && c->writable &&
	       !(c->may_meet | c->unfinished | c->hangup | c->abandoned) && !c->meet && !c->reset &&
	       !conn_can_stall(c) && !atomic_load_explicit(&c->waiters, memory_order_seq_cst) &&
	       stream_is_short(c->stream);
}

static void conn_put_short(struct conn *c, const struct link_ops *ops)
{
	void *to;
	size_t room = ops->in_place->lend(c->link, &to), len;

	if (room == 0)
		return;
	len = stream_tx_put(c->stream, to, room);
	if (len > 0)
		ops->in_place->commit(c->link, len);
	stream_tx_put_end(c->stream, len);
	c->tx_turn.moved += len;
}

bool conn_send_short(struct conn *c)
{
	if (!c->link || !conn_is_short(c))
		return false;
	conn_rung(c);
	conn_put_short(c, c->link->ops);
	return stream_is_calm(c->stream);
}

/* What has come is taken off the link behind the answer, which the peer waits for. */
bool conn_poll_short(struct conn *c)
{
	const struct link_ops *ops = c->link->ops;
	struct stream_update u;
	const void *bytes;
	ssize_t len;
	size_t taken;

	if (!conn_is_short(c))
		return false;
	len = ops->in_place->look(c->link, &bytes);
	if (len <= 0)
		return false;
	taken = stream_rx_short(c->stream, bytes, (size_t)len);
	if (taken == 0)
		return false;
	c->rx_turn = (struct conn_turn){.moved = taken};
	c->tx_turn = (struct conn_turn){0};
	conn_rung(c);
	conn_put_short(c, ops);
	ops->in_place->consume(c->link, taken);
	c->readable = ops->in_place->pending(c->link, 1);
	if (c->readable || !stream_is_calm(c->stream)) {
		stream_rx_settle(c->stream, &u);
		conn_perform_and_read(c, &u);
	}
	return true;
}
