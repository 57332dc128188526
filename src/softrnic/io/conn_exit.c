/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_exit.c -- before the process ends or becomes another program, links take what was posted.
 *
 * What waits for the doorbell may be with this thread, with a thread of the engine that has found
 * it and has not sent it yet, or be sent by the engine alone (conn_may_touch()). Whoever has it
 * holds the connection's lock meanwhile, so each connection is looked at with its lock.
 */
#include <unistd.h>

#include "softrnic/io/conn_parts.h"

#define EXIT_MS      200u /* for all connections: a file system that hangs keeps no process alive */
#define EXIT_LOOK_US 50u

/* Also before anything is sent: the link takes bytes, and there are some. */
static bool conn_has_unsent(const struct conn *c)
{
	struct stream_update u;

	if (!c->link || !c->writable || c->dialing || stream_state(c->stream) != STREAM_LIVE)
		return false;
	stream_look(c->stream, &u);
	return u.todo & STREAM_DO_SEND;
}

/* And has it left? The kernel sends the rest of a process that has ended, but not behind a reset,
 * and a reset is what the end is while bytes of the peer's are unread. */
static bool conn_has_left(const struct conn *c)
{
	return !c->link || !c->link->ops->has_left || c->dialing ||
	       stream_state(c->stream) != STREAM_LIVE || c->link->ops->has_left(c->link);
}

/* Has the link what was posted, as far as it takes it? here: or else it gets it now. If not, the
 * lock is left without the work that others asked for meanwhile: that is the engine's then. */
static bool conn_is_sent(struct conn *c, bool here)
{
	bool sent;

	if (!conn_try_enter(c))
		return false;
	if (here && conn_has_unsent(c)) {
		conn_rung(c);
		conn_settle(c);
	}
	sent = !conn_has_unsent(c) && conn_has_left(c);
	if (here) {
		conn_leave(c);
		return sent;
	}
	lock_leave(&c->lock);
	if (atomic_load(&c->want))
		conn_again(c);
	return sent;
}

void conns_send_posted(bool here)
{
	unsigned looks = EXIT_MS * 1000 / EXIT_LOOK_US;
	struct conn *c = NULL;

	while ((c = conns_next(c)))
		for (; !conn_is_sent(c, here) && looks > 0; looks--)
			usleep(EXIT_LOOK_US);
}
