/* SPDX-License-Identifier: BSD-3-Clause */
#include "provider/verbs_cm.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/poll.h"

/* The outcome of a channel's only connection: pending, decided by an event of the kernel, or given
 * up by this end. */
enum cm_outcome { CM_PENDING, CM_DECIDED, CM_GIVEN_UP };

struct channel {
	struct rdma_event_channel pub; /* pub.fd: the epoll set */
	struct rdma_event_channel *kernel;
	pthread_mutex_t lock; /* guards the following members */
	enum cm_outcome outcome;
	int timer; /* -1: no timer was needed so far */
	struct rdma_cm_event unreachable;
};

/* Additional state for an id of rdma-core. Allocated when it is first needed. */
struct id_state {
	int connect_ms;
	struct channel *ch;
};

static struct channel *cm_channel_of(struct rdma_event_channel *pub)
{
	return (struct channel *)pub;
}

static struct id_state *cm_state_of(struct rdma_cm_id *id)
{
	if (!id->context)
		id->context = calloc(1, sizeof(struct id_state));
	return id->context;
}

static int cm_watch(struct channel *c, int fd)
{
	struct epoll_event readable = {.events = EPOLLIN};

	return epoll_ctl(c->pub.fd, EPOLL_CTL_ADD, fd, &readable);
}

/* Make the kernel's channel non-blocking: threads wait on the epoll set, and a read of the channel
 * must not block them. */
static int cm_set_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 ? -1 : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

static int cm_channel_open(struct channel *c)
{
	c->timer = -1;
	c->kernel = rdma_create_event_channel();
	if (!c->kernel)
		return -1;
	c->pub.fd = epoll_create1(EPOLL_CLOEXEC);
	if (c->pub.fd < 0)
		goto kernel_destroy;
	if (!cm_set_nonblock(c->kernel->fd) && !cm_watch(c, c->kernel->fd)) {
		pthread_mutex_init(&c->lock, NULL);
		return 0;
	}
	close(c->pub.fd);
kernel_destroy:
	rdma_destroy_event_channel(c->kernel);
	return -1;
}

struct rdma_event_channel *verbs_create_event_channel(void)
{
	struct channel *c = calloc(1, sizeof(*c));
	int err;

	if (!c || !cm_channel_open(c))
		return c ? &c->pub : NULL;
	err = errno;
	free(c);
	errno = err;
	return NULL;
}

void verbs_destroy_event_channel(struct rdma_event_channel *pub)
{
	struct channel *c = cm_channel_of(pub);

	close(c->pub.fd);
	if (c->timer >= 0)
		close(c->timer);
	rdma_destroy_event_channel(c->kernel);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* Let the timer expire in `ms` milliseconds. The caller holds the lock. */
static int cm_timer_set(struct channel *c, int ms)
{
	struct itimerspec at = {.it_value = {ms / 1000, ms % 1000 * 1000000L}};

	if (c->timer < 0) {
		c->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
		if (c->timer < 0)
			return -1;
		if (cm_watch(c, c->timer)) {
			close(c->timer);
			c->timer = -1;
			return -1;
		}
	}
	if (!ms)
		at.it_value.tv_nsec = 1; /* expire immediately; zero would disarm the timer */
	return timerfd_settime(c->timer, 0, &at, NULL);
}

/* Does this event of the kernel count? The first event decides the outcome, unless the connect was
 * given up before. */
static bool cm_event_counts(struct channel *c)
{
	const struct itimerspec never = {0};
	bool counts;

	pthread_mutex_lock(&c->lock);
	if (c->outcome == CM_PENDING) {
		c->outcome = CM_DECIDED;
		if (c->timer >= 0)
			timerfd_settime(c->timer, 0, &never, NULL);
	}
	counts = c->outcome == CM_DECIDED;
	pthread_mutex_unlock(&c->lock);
	return counts;
}

/* Has the deadline passed? Only one thread gets the answer true. */
static bool cm_has_expired(struct channel *c)
{
	uint64_t expirations;
	bool now;

	pthread_mutex_lock(&c->lock);
	now = c->outcome == CM_PENDING && c->timer >= 0 &&
	      read(c->timer, &expirations, sizeof(expirations)) == (ssize_t)sizeof(expirations);
	if (now)
		c->outcome = CM_GIVEN_UP;
	pthread_mutex_unlock(&c->lock);
	return now;
}

/* Take an event. Returns 0, or -1 and sets errno; EAGAIN means that there is no event. */
static int cm_take(struct channel *c, struct rdma_cm_event **ev)
{
	struct ibv_qp_attr failed = {.qp_state = IBV_QPS_ERR};

	while (!rdma_get_cm_event(c->kernel, ev)) {
		if (cm_event_counts(c))
			return 0;
		rdma_ack_cm_event(*ev);
	}
	if (errno != EAGAIN && errno != EINTR)
		return -1;
	if (cm_has_expired(c)) {
		/*
		 * The kernel may still establish the connection. Move its QP to ERR to make the
		 * connection useless: posted work requests complete as flushed, and nothing more is
		 * sent.
		 */
		if (c->unreachable.id->qp)
			ibv_modify_qp(c->unreachable.id->qp, &failed, IBV_QP_STATE);
		*ev = &c->unreachable;
		return 0;
	}
	errno = EAGAIN;
	return -1;
}

int verbs_wait_cm_event(struct rdma_event_channel *ch, int timeout_ms, struct rdma_cm_event **ev)
{
	uint64_t deadline = poll_deadline(timeout_ms);
	int ret;

	while (cm_take(cm_channel_of(ch), ev)) {
		if (errno != EAGAIN)
			return -1;
		ret = poll_readable(ch->fd, deadline);
		if (ret) {
			errno = -ret;
			return -1;
		}
	}
	return 0;
}

int verbs_get_cm_event(struct rdma_event_channel *ch, struct rdma_cm_event **ev)
{
	int flags = fcntl(ch->fd, F_GETFL);

	if (flags >= 0 && flags & O_NONBLOCK)
		return cm_take(cm_channel_of(ch), ev);
	return verbs_wait_cm_event(ch, -1, ev);
}

int verbs_ack_cm_event(struct rdma_cm_event *ev)
{
	const struct id_state *state = ev->id ? ev->id->context : NULL;

	if (state && state->ch && ev == &state->ch->unreachable)
		return 0;
	return rdma_ack_cm_event(ev);
}

int verbs_create_id(struct rdma_event_channel *ch, struct rdma_cm_id **id, void *context,
		    enum rdma_port_space ps)
{
	assert(!context);
	return rdma_create_id(ch ? cm_channel_of(ch)->kernel : NULL, id, NULL, ps);
}

int verbs_destroy_id(struct rdma_cm_id *id)
{
	struct id_state *state = id->context;
	int ret = rdma_destroy_id(id);

	free(state);
	return ret;
}

int verbs_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *ch)
{
	struct id_state *state = cm_state_of(id);
	struct channel *c = cm_channel_of(ch);

	if (!state || rdma_migrate_id(id, c->kernel))
		return -1;
	state->ch = c;
	c->unreachable = (struct rdma_cm_event){
		.id = id, .event = RDMA_CM_EVENT_UNREACHABLE, .status = -ETIMEDOUT};
	return 0;
}

/* The only accepted value of liveness_ms is "never", because these devices have no heartbeat. */
int verbs_set_limits(struct rdma_cm_id *id, int connect_ms, int liveness_ms)
{
	struct id_state *state;

	if (liveness_ms > 0)
		return EOPNOTSUPP;
	state = cm_state_of(id);
	if (!state)
		return ENOMEM;
	state->connect_ms = connect_ms;
	return 0;
}

int verbs_set_owner(struct rdma_cm_id *id, const void *name, size_t len)
{
	return EOPNOTSUPP;
}

/* Start the time limit: the outcome must come within `ms`. Returns 0 or an errno value. */
static int cm_set_deadline(struct rdma_cm_id *id, int ms)
{
	struct id_state *state = id->context;
	struct channel *c = state ? state->ch : NULL;
	int err = 0;

	if (!c)
		return EINVAL;
	pthread_mutex_lock(&c->lock);
	if (c->outcome == CM_PENDING && cm_timer_set(c, ms))
		err = errno;
	pthread_mutex_unlock(&c->lock);
	return err;
}

/*
 * Start the time limit before the call, because with some devices (siw) the call returns only after
 * TCP is connected.
 */
int verbs_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	const struct id_state *state = id->context;
	int err = state && state->connect_ms ? cm_set_deadline(id, state->connect_ms) : 0;

	if (err) {
		errno = err;
		return -1;
	}
	return rdma_connect(id, param);
}

int verbs_cancel_connect(struct rdma_cm_id *id)
{
	return cm_set_deadline(id, 0);
}

/* The function does nothing: the card decides what happens when a queue pair is destroyed. */
void verbs_abandon(struct rdma_cm_id *id)
{
}
