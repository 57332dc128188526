/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_exit.c -- before the process ends or becomes another program, links take all posted
 * requests.
 *
 * This thread or a thread of the engine sends deferred requests; for some connections only the
 * engine may send (conn_may_touch()). The sending thread holds the connection's lock, so each
 * connection is checked with its lock.
 *
 * In exit() the FIN is the last step, and the peer's answer to it is not reported: threads of the
 * program still run, and some programs and libraries have already freed the data that these threads
 * use at the end of a connection. A library that ends its connections later, in its own destructor,
 * gets reports again (conn_end_quiet()).
 */
#include <unistd.h>

#include "softrnic/io/conn_parts.h"

#define EXIT_MS      200u /* in all: a hanging file system must not keep the process alive */
#define EXIT_LOOK_US 50u

/* In full operation, or on its way to an orderly end. */
static bool conn_is_open(const struct conn *c)
{
	return c->link && !c->dialing &&
	       (stream_state(c->stream) == STREAM_LIVE ||
		stream_state(c->stream) == STREAM_DRAINING);
}

/*
 * Does the link take bytes, and does the stream have some to send? True before the first send, too.
 */
static bool conn_has_unsent(const struct conn *c)
{
	struct stream_update u;

	if (!conn_is_open(c) || !c->writable)
		return false;
	stream_look(c->stream, &u);
	return u.todo & STREAM_DO_SEND;
}

/* Have the sent bytes left the host? The kernel sends the rest after the process has ended, except
 * after a reset, which happens if bytes of the peer are unread. */
static bool conn_has_left(const struct conn *c)
{
	return !conn_is_open(c) || c->link->ops->has_left(c->link);
}

/* Send the FIN after all bytes: after a mere reset the peer drops its unread bytes. Returns false
 * if the FIN was already sent. */
static bool conn_end_here(struct conn *c)
{
	if (!conn_is_open(c) || c->outlives)
		return false;
	c->outlives = true;
	c->link->ops->end_sending(c->link);
	return true;
}

/* Other threads may have set bits of `want` meanwhile. The engine serves them, because this thread
 * may be in a signal handler. */
static void conn_leave_to_others(struct conn *c)
{
	lock_leave(&c->lock);
	if (atomic_load(&c->want))
		conn_again(c);
}

/* Has the link taken all posted bytes that it can take? here: this thread may send them. */
static bool conn_is_sent(struct conn *c, bool here)
{
	if (here && conn_has_unsent(c)) {
		conn_rung(c);
		conn_settle(c);
	}
	return !conn_has_unsent(c) && conn_has_left(c);
}

/* One step for each connection. is_done is called with the lock, until it returns true or the time
 * is over (last). leave releases the lock. */
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

/* The call that sends the FIN returns false; the next call checks that the peer has received it. */
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

/* If a reset overtook the FIN, the peer would drop its unread bytes. */
static bool conn_has_arrived(struct conn *c, bool last)
{
	return conn_has_left(c);
}

/* For exit(): FINs are sent after all connections have sent their bytes. */
static const struct exit_step send_here = {conn_sends_here, conn_leave};
static const struct exit_step end_quietly = {conn_ends_quietly, conn_leave_alone};
static const struct exit_step wait_for_arrival = {conn_has_arrived, conn_leave_alone};
/* For execve(), which may fail. */
static const struct exit_step end_elsewhere = {conn_ends_elsewhere, conn_leave_to_others};

void conn_end_quiet(struct conn *c)
{
	if (!c->quiet)
		return;
	c->quiet = false;
	c->readable = c->hangup = true; /* events that came meanwhile were not handled */
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
