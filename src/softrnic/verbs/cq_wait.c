/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cq_wait.c -- a thread waits for an event of a completion channel.
 *
 * If the channel serves few connections and datagram ports, the thread waits for their descriptors
 * as well as for the channel's descriptor, and processes the bytes of each readable one. So an
 * arriving completion wakes one thread, which finds it in the queue without a further system call.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>

#include "base/clock.h"
#include "softrnic/io/conn.h"
#include "softrnic/io/engine.h"
#include "softrnic/io/ud_port.h"
#include "softrnic/verbs/device.h"

/* The descriptors of one wait. fds[0] is the channel's descriptor. Each other descriptor belongs to
 * a port, or to a connection to which the wait holds a reference. */
struct channel_wait {
	struct vchannel *ch;
	struct pollfd fds[1 + VCQ_CONNS];
	struct conn *conns[1 + VCQ_CONNS];
	struct ud_port *ports[1 + VCQ_CONNS];
	nfds_t n;
};

static void channel_taken(struct evq_node *n)
{
	atomic_fetch_add(&container_of(n, struct vcq, node)->delivered, 1);
}

/* --- choosing the descriptors --------------------------------------------------------------- */

static void channel_wait_add(struct channel_wait *w, struct conn *c, uint64_t now)
{
	int fd = conn_wait_begin(c, now);

	if (fd < 0)
		return;
	conn_get(c);
	w->conns[w->n] = c;
	w->fds[w->n++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

static bool channel_wait_has_port(const struct channel_wait *w, const struct ud_port *port)
{
	for (nfds_t i = 1; i < w->n; i++)
		if (!w->conns[i] && w->ports[i] == port)
			return true;
	return false;
}

/* Add a port. Several queue pairs may share a port, but it is added only once. */
static void channel_wait_add_port(struct channel_wait *w, struct ud_port *port)
{
	int fd;

	if (w->n > VCQ_CONNS || channel_wait_has_port(w, port))
		return;
	fd = ud_port_wait_begin(port);
	if (fd < 0)
		return;
	w->conns[w->n] = NULL;
	w->ports[w->n] = port;
	w->fds[w->n++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

/* Add the connections and ports of one CQ. Connections that other threads hold at the moment are
 * left out, and the engine continues to watch them. */
static void channel_wait_add_cq(struct channel_wait *w, struct vcq *cq, uint64_t now)
{
	struct list *it;

	if (cq->generation != engine_generation() || !lock_try(&cq->conns_lock))
		return;
	if (w->n + cq->num_conns <= 1 + VCQ_CONNS)
		list_for_each (it, &cq->conns)
			channel_wait_add(w, container_of(it, struct vcq_conn, link)->conn, now);
	list_for_each (it, &cq->ports)
		channel_wait_add_port(w, container_of(it, struct vcq_port, link)->port);
	lock_leave(&cq->conns_lock);
}

static void channel_wait_begin(struct channel_wait *w, struct vchannel *ch, bool drives)
{
	struct list *it;
	uint64_t now;

	w->ch = ch;
	w->conns[0] = NULL;
	w->fds[0] = (struct pollfd){.fd = ch->q.fd, .events = POLLIN};
	w->n = 1;
	if (!drives || pthread_mutex_trylock(&ch->cqs_lock))
		return;
	now = clock_now_ns();
	list_for_each (it, &ch->cqs)
		channel_wait_add_cq(w, container_of(it, struct vcq, on_channel), now);
	pthread_mutex_unlock(&ch->cqs_lock);
	conn_leases_renew(now, POLICY_WAITS);
}

static void channel_wait_end(struct channel_wait *w)
{
	for (nfds_t i = 1; i < w->n; i++) {
		if (!w->conns[i]) {
			ud_port_wait_end(w->ports[i], w->fds[i].revents != 0);
			continue;
		}
		conn_wait_end(w->conns[i], w->fds[i].revents != 0);
		conn_put(w->conns[i]);
	}
	w->n = 1;
}

/* --- waiting -------------------------------------------------------------------------------- */

/* Cleanup handler, called if the thread is cancelled while it waits. */
static void channel_wait_cancelled(void *wait)
{
	channel_wait_end(wait);
}

static int channel_poll(struct channel_wait *w, int ms, int cancel_state)
{
	int n;

	for (nfds_t i = 1; i < w->n; i++)
		w->fds[i].revents = 0;
	pthread_cleanup_push(channel_wait_cancelled, w);
	n = evq_poll(w->fds, w->n, ms, cancel_state);
	pthread_cleanup_pop(0);
	return n;
}

/* Decide what to do after a poll without an event. Returns 0 to wait again, or -errno. If only
 * links were readable, the channel's descriptor is not checked. */
static int channel_judge(const struct channel_wait *w, int ready, int ms)
{
	if (ready < 0)
		return ready;
	if (!ms)
		return -ETIMEDOUT;
	if (ready && !w->fds[0].revents)
		return 0;
	return evq_is_lost(&w->ch->q) ? -EBADF : 0;
}

/* Wait once. Returns true if *n is an event. If it returns false, *err is the error that ends the
 * wait, or 0 to wait again. */
static bool channel_wait_once(struct vchannel *ch, int ms, int cancel_state, struct evq_node **n,
			      int *err)
{
	struct channel_wait w;
	int ready;

	channel_wait_begin(&w, ch, ms != 0);
	ready = channel_poll(&w, ms, cancel_state);
	evq_begin_take(&ch->q);
	channel_wait_end(&w);
	if (evq_end_take(&ch->q, n, channel_taken))
		return true;
	*err = channel_judge(&w, ready, ms);
	return false;
}

/* If `interruptible`, O_NONBLOCK and signals end the wait. Returns 0 or -errno. */
static int channel_wait_for(struct vchannel *ch, uint64_t deadline, bool interruptible,
			    int cancel_state, struct evq_node **n)
{
	int err;

	if (evq_try(&ch->q, n, channel_taken))
		return 0;
	for (;;) {
		if (interruptible && evq_is_nonblocking(&ch->q))
			return -EAGAIN;
		if (channel_wait_once(ch, evq_wait_ms(deadline), cancel_state, n, &err))
			return 0;
		if (err && (err != -EINTR || interruptible))
			return err;
	}
}

int channel_wait(struct ibv_comp_channel *channel, uint64_t deadline, bool interruptible,
		 struct ibv_cq **cq, void **cq_context)
{
	struct vchannel *ch = container_of(channel, struct vchannel, ibv);
	struct evq_node *n;
	int state, err;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	err = channel_wait_for(ch, deadline, interruptible, state, &n);
	pthread_setcancelstate(state, &state);
	if (err) {
		errno = -err;
		return -1;
	}
	*cq = &container_of(n, struct vcq, node)->cq.ibv;
	*cq_context = (*cq)->cq_context;
	return 0;
}
