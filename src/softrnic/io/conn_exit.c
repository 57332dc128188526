/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_exit.c -- sends all posted requests before the process exits or becomes another program.
 *
 * This thread or a thread of the engine sends deferred requests; for some connections only the
 * engine is allowed to send (conn_may_touch()). The sending thread holds the connection's lock, so
 * each connection is checked with its lock.
 *
 * In exit() the FIN is the last step, and the following end of the connection is not reported to
 * the program. The reason is that threads of the program still run, although some programs and
 * libraries have already freed the data that these threads use at the end of a connection. A
 * library that ends its connections later, in its own destructor, gets reports again
 * (conn_end_quiet()).
 */
#include <unistd.h>

#include "softrnic/io/conn_parts.h"

/* time limit for all connections together; a hanging file system must not keep the process alive */
#define EXIT_MS      200u
#define EXIT_LOOK_US 50u

/* Is the connection in full operation, or on its way to an orderly end? */
static bool conn_is_open(const struct conn *c)
{
	return c->link && !c->dialing &&
	       (stream_state(c->stream) == STREAM_LIVE ||
		stream_state(c->stream) == STREAM_DRAINING);
}

/*
 * Does the link take bytes, and does the stream have bytes to send? Returns true also if nothing
 * was sent yet.
 */
static bool conn_has_unsent(const struct conn *c)
{
	struct stream_update u;

	if (!conn_is_open(c) || !c->writable)
		return false;
	stream_look(c->stream, &u);
	return u.todo & STREAM_DO_SEND;
}

/* Have the sent bytes left this host? The kernel continues to send bytes after the process has
 * exited, unless the socket is reset. A reset happens if bytes of the peer are unread. */
static bool conn_has_left(const struct conn *c)
{
	return !conn_is_open(c) || c->link->ops->has_left(c->link);
}

/* Send the FIN after all bytes, because after a reset without a FIN the peer drops the bytes that
 * it has not read. Returns false if the FIN was already sent. */
static bool conn_end_here(struct conn *c)
{
	if (!conn_is_open(c) || c->outlives)
		return false;
	c->outlives = true;
	c->link->ops->end_sending(c->link);
	return true;
}

/* Release the lock. Other threads may have set bits of `want` meanwhile. The engine does that work,
 * because this thread may be in a signal handler. */
static void conn_leave_to_others(struct conn *c)
{
	lock_leave(&c->lock);
	if (atomic_load(&c->want))
		conn_again(c);
}

/* Has the link taken all posted bytes that it can take? If `here` is true, this thread may send
 * them. */
static bool conn_is_sent(struct conn *c, bool here)
{
	if (here && conn_has_unsent(c)) {
		conn_rung(c);
		conn_settle(c);
	}
	return !conn_has_unsent(c) && conn_has_left(c);
}

/* One step that is taken for each connection. is_done() is called with the lock until it returns
 * true, or until the time is over (`last` is true then). leave() releases the lock. */
struct exit_step {
	bool (*is_done)(struct conn *c, bool last);
	void (*leave)(struct conn *c);
};

static void conn_leave_alone(struct conn *c)
{
	lock_leave(&c->lock);
}

static bool conn_sends_here(struct conn *c, bool last)
{
	return conn_is_sent(c, true);
}

/* The first call sends the FIN and returns false. The next call checks whether the peer has
 * received the FIN. */
static bool conn_ends_elsewhere(struct conn *c, bool last)
{
	if (!conn_is_sent(c, false) && !last)
		return false;
	return !conn_end_here(c);
}

static bool conn_ends_quietly(struct conn *c, bool last)
{
	c->quiet |= conn_end_here(c);
	return true;
}

/* Has the FIN arrived? If a reset overtook the FIN, the peer would drop the bytes that it has not
 * read. */
static bool conn_has_arrived(struct conn *c, bool last)
{
	return conn_has_left(c);
}

/* The steps of exit(): FINs are sent after all connections have sent their bytes. */
static const struct exit_step send_here = {conn_sends_here, conn_leave};
static const struct exit_step end_quietly = {conn_ends_quietly, conn_leave_alone};
static const struct exit_step wait_for_arrival = {conn_has_arrived, conn_leave_alone};
/* The step of execve(). Because execve() may fail, the connections must stay usable. */
static const struct exit_step end_elsewhere = {conn_ends_elsewhere, conn_leave_to_others};

void conn_end_quiet(struct conn *c)
{
	if (!c->quiet)
		return;
	c->quiet = false;
	/* events that came during the quiet state were not handled */
	c->readable = c->hangup = true;
	conn_again(c);
}

static bool conn_take_step(struct conn *c, const struct exit_step *step, bool last)
{
	bool done;

	if (!conn_try_enter(c))
		return false;
	done = step->is_done(c, last);
	step->leave(c);
	return done;
}

static void conns_each(const struct exit_step *step, unsigned *looks)
{
	struct conn *c = NULL;

	while ((c = conns_next(c)))
		for (; !conn_take_step(c, step, *looks == 0) && *looks > 0; --*looks)
			usleep(EXIT_LOOK_US);
}

void conns_send_posted(bool here)
{
	unsigned looks = EXIT_MS * 1000 / EXIT_LOOK_US;

	if (!here) {
		conns_each(&end_elsewhere, &looks);
		return;
	}
	conns_each(&send_here, &looks);
	conns_each(&end_quietly, &looks);
	conns_each(&wait_for_arrival, &looks);
}
