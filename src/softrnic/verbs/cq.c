/* SPDX-License-Identifier: BSD-3-Clause */
/* cq.c -- completion queues and their channels. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/poll.h"
#include "base/thread.h"
#include "softrnic/io/conn.h"
#include "softrnic/io/engine.h"
#include "softrnic/io/policy.h"
#include "softrnic/io/ud_port.h"
#include "softrnic/verbs/context.h"
#include "softrnic/verbs/device.h"
#include "softrnic/rnic/rnic.h"
#include "softrnic/softrnic.h"

/* yield the CPU after this number of polls that found a connection in use by another thread */
#define YIELD_POLLS 64

struct ibv_comp_channel *softrnic_create_comp_channel(struct ibv_context *context)
{
	struct vchannel *ch = calloc(1, sizeof(*ch));
	int ret;

	if (!ch)
		return NULL;
	ret = evq_init(&ch->q);
	if (ret) {
		free(ch);
		errno = -ret;
		return NULL;
	}
	pthread_mutex_init(&ch->cqs_lock, NULL);
	list_init(&ch->cqs);
	ch->ibv.context = context;
	context_get(context);
	ch->ibv.fd = ch->q.fd;
	return &ch->ibv;
}

int softrnic_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
	struct vchannel *ch = container_of(ibv, struct vchannel, ibv);

	if (atomic_load(&ch->users))
		return EBUSY;
	evq_fini(&ch->q);
	pthread_mutex_destroy(&ch->cqs_lock);
	context_put(ibv->context);
	free(ch);
	return 0;
}

static struct vchannel *vcq_channel(struct vcq *cq)
{
	return cq->cq.ibv.channel ? container_of(cq->cq.ibv.channel, struct vchannel, ibv) : NULL;
}

static void vcq_notify(struct cq *base)
{
	struct vcq *cq = container_of(base, struct vcq, cq);
	struct vchannel *ch = vcq_channel(cq);

	if (ch)
		evq_push(&ch->q, &cq->node);
}

static void vcq_overrun(struct cq *base)
{
	async_raise(context_events(base->ibv.context), IBV_EVENT_CQ_ERR, &base->ibv);
}

static void vcq_fill(struct vcq *cq, struct ibv_context *context, int cqe, void *cq_context,
		     struct ibv_comp_channel *channel)
{
	cq->cq.ibv.context = context;
	context_get(context);
	cq->cq.ibv.channel = channel;
	cq->cq.ibv.cq_context = cq_context;
	cq->cq.ibv.cqe = cqe;
	pthread_mutex_init(&cq->cq.ibv.mutex, NULL);
	pthread_cond_init(&cq->cq.ibv.cond, NULL);
	pthread_mutex_init(&cq->polling, NULL);
	cq->cq.notify = vcq_notify;
	cq->cq.overrun = vcq_overrun;
	evq_node_init(&cq->node);
	cq->generation = engine_generation();
	lock_init(&cq->conns_lock);
	list_init(&cq->conns);
	list_init(&cq->ports);
	list_init(&cq->on_channel);
}

static void vcq_join(struct vcq *cq, struct vchannel *ch)
{
	atomic_fetch_add(&ch->users, 1);
	pthread_mutex_lock(&ch->cqs_lock);
	list_add_tail(&ch->cqs, &cq->on_channel);
	pthread_mutex_unlock(&ch->cqs_lock);
}

static void vcq_quit(struct vcq *cq, struct vchannel *ch)
{
	pthread_mutex_lock(&ch->cqs_lock);
	list_del(&cq->on_channel);
	pthread_mutex_unlock(&ch->cqs_lock);
	atomic_fetch_sub(&ch->users, 1);
}

struct vcq *vcq_new(struct ibv_context *context, uint32_t cqe, void *cq_context,
		    struct ibv_comp_channel *channel, uint32_t comp_vector)
{
	struct vcq *cq;
	int ret;

	if (cqe < 1 || cqe > RNIC_MAX_CQE || comp_vector != 0) {
		errno = EINVAL;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	ret = cq_init(&cq->cq, cqe);
	if (ret) {
		free(cq);
		errno = -ret;
		return NULL;
	}
	vcq_fill(cq, context, (int)cqe, cq_context, channel);
	if (channel)
		vcq_join(cq, vcq_channel(cq));
	return cq;
}

struct ibv_cq *softrnic_create_cq(struct ibv_context *context, int cqe, void *cq_context,
				  struct ibv_comp_channel *channel, int comp_vector)
{
	struct vcq *cq = vcq_new(context, cqe < 0 ? 0 : (uint32_t)cqe, cq_context, channel,
				 (uint32_t)comp_vector);

	return cq ? &cq->cq.ibv : NULL;
}

/* Queued completions stay in the queue, so a size below their number is refused. */
int softrnic_resize_cq(struct ibv_cq *ibv, int cqe)
{
	struct vcq *cq = container_of(ibv, struct vcq, cq.ibv);
	int ret;

	if (cq->generation != engine_generation())
		return ENODEV;
	if (cqe < 1 || cqe > RNIC_MAX_CQE)
		return EINVAL;
	ret = cq_resize(&cq->cq, (uint32_t)cqe);
	if (!ret)
		ibv->cqe = cqe;
	return -ret;
}

/* Moderation delays events to save interrupts. This device has no interrupts, so it raises each
 * event immediately. Any moderation permits that. */
int softrnic_modify_cq(struct ibv_cq *ibv, struct ibv_modify_cq_attr *attr)
{
	return attr->attr_mask & ~(uint32_t)IBV_CQ_ATTR_MODERATE ? EINVAL : 0;
}

int softrnic_destroy_cq(struct ibv_cq *ibv)
{
	struct vcq *cq = container_of(ibv, struct vcq, cq.ibv);
	struct vchannel *ch = vcq_channel(cq);
	THREAD_NOT_CANCELLED;

	if (atomic_load(&cq->users))
		return EBUSY;
	if (ch)
		evq_cancel(&ch->q, &cq->node);
	if (cq->generation == engine_generation()) {
		pthread_mutex_lock(&ibv->mutex);
		while (ibv->comp_events_completed != atomic_load(&cq->delivered))
			pthread_cond_wait(&ibv->cond, &ibv->mutex);
		pthread_mutex_unlock(&ibv->mutex);
	}
	async_finish(context_events(ibv->context), ibv);
	if (atomic_load(&cq->users)) /* a queue pair was created during the wait */
		return EBUSY;
	if (ch)
		vcq_quit(cq, ch);
	context_put(ibv->context);
	cq_fini(&cq->cq);
	free(cq);
	return 0;
}

int softrnic_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	return channel_wait(channel, CLOCK_NEVER, true, cq, cq_context);
}

int softrnic_wait_cq_event(struct ibv_comp_channel *channel, int timeout_ms, struct ibv_cq **cq,
			   void **cq_context)
{
	return channel_wait(channel, poll_deadline(timeout_ms), false, cq, cq_context);
}

void softrnic_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += nevents;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}

void vcq_attach(struct vcq *cq, struct vcq_conn *place, struct conn *conn)
{
	place->conn = conn;
	lock_enter(&cq->conns_lock);
	list_add_tail(&cq->conns, &place->link);
	cq->num_conns++;
	lock_leave(&cq->conns_lock);
}

void vcq_detach(struct vcq *cq, struct vcq_conn *place)
{
	lock_enter(&cq->conns_lock);
	cq->num_conns -= !list_empty(&place->link);
	list_del(&place->link);
	lock_leave(&cq->conns_lock);
}

void vcq_attach_port(struct vcq *cq, struct vcq_port *place)
{
	lock_enter(&cq->conns_lock);
	list_add_tail(&cq->ports, &place->link);
	lock_leave(&cq->conns_lock);
}

void vcq_detach_port(struct vcq *cq, struct vcq_port *place)
{
	lock_enter(&cq->conns_lock);
	list_del(&place->link);
	lock_leave(&cq->conns_lock);
}

/*
 * Count a poll. *quick is true if polls follow each other so quickly that only this thread needs to
 * check the connections for bytes. With many connections *quick is false, because reports of the
 * engine show which of them have bytes. Returns the time at each POLICY_LOOP-th poll, and 0 at
 * other polls.
 */
static uint64_t vcq_count_poll(struct vcq *cq, bool *quick)
{
	unsigned polls = atomic_load_explicit(&cq->polls, memory_order_relaxed) + 1;
	uint64_t now, before = cq->polls_at;

	*quick = false;
	atomic_store_explicit(&cq->polls, polls, memory_order_relaxed);
	if (polls % POLICY_LOOP || cq->num_conns > VCQ_CONNS)
		return 0;
	now = clock_now_ns();
	*quick = policy_is_loop(polls, before, now);
	cq->polls_at = now;
	return now;
}

/*
 * The application is about to wait, so the connections report arriving bytes to the engine again.
 * If another thread holds the lock, that thread is polling and continues to check the connections.
 */
static void vcq_disown(struct vcq *cq)
{
	bool is_empty = cq_is_empty(&cq->cq);
	struct list *it;

	atomic_store_explicit(&cq->polls, 0, memory_order_relaxed);
	if (!lock_try(&cq->conns_lock))
		return;
	list_for_each (it, &cq->conns) {
		struct vcq_conn *place = container_of(it, struct vcq_conn, link);

		conn_own_arm(place->conn, &place->armed_in, is_empty);
	}
	list_for_each (it, &cq->ports)
		ud_port_report(container_of(it, struct vcq_port, link)->port);
	lock_leave(&cq->conns_lock);
}

/* May the thread leave the connection to its next wait? Between two waits, the first poll that
 * finds nothing usually means that the application is about to wait. */
static bool vcq_leaves_to_wait(const struct vcq *cq, const struct conn *c)
{
	return atomic_load_explicit(&cq->polls, memory_order_relaxed) == 1 &&
	       conn_is_left_to_waits(c);
}

/* Receive from one port and rotate the list of ports. Completions of datagrams go through the
 * queue. The caller holds the lock. */
static void vcq_drive_ports(struct vcq *cq)
{
	struct list *l = list_pop(&cq->ports);

	if (!l)
		return;
	list_add_tail(&cq->ports, l);
	ud_port_poll(container_of(l, struct vcq_port, link)->port);
}

/*
 * Process arrived bytes of the queue's connections, one connection after the other. Stop after the
 * first completion, because processing another connection may take long. The list rotates, so that
 * every connection is served. Returns false if another thread holds one of the connections.
 */
static bool vcq_drive_conns(struct vcq *cq, struct cq_taker *taker)
{
	struct list *first, *l;
	bool quick, all = true;
	uint64_t now;
	int n = 0;

	if (!lock_try(&cq->conns_lock))
		return false;
	now = vcq_count_poll(cq, &quick);
	for (first = l = list_first(&cq->conns); l && n < VCQ_CONNS && !taker->got; n++) {
		struct conn *c = container_of(l, struct vcq_conn, link)->conn;

		if (!vcq_leaves_to_wait(cq, c))
			all &= conn_drive(c, quick ? now : 0, taker);
		list_del(l);
		list_add_tail(&cq->conns, l);
		l = list_first(&cq->conns);
		if (l == first)
			break;
	}
	vcq_drive_ports(cq);
	lock_leave(&cq->conns_lock);
	if (now)
		conn_leases_renew(now, POLICY_POLLS);
	return all;
}

/* Drive the connections and ports. Yield the CPU from time to time if another thread holds a
 * connection: a loop that polls a link in memory makes no system call, so if the threads share a
 * CPU (or valgrind runs one thread at a time), the other thread would not run. */
static void vcq_drive(struct vcq *cq, struct cq_taker *taker)
{
	unsigned left;

	if (vcq_drive_conns(cq, taker))
		return;
	left = atomic_load_explicit(&cq->left, memory_order_relaxed) + 1;
	atomic_store_explicit(&cq->left, left, memory_order_relaxed);
	if (left % YIELD_POLLS == 0)
		sched_yield();
}

/* Send the deferred requests of all connections of the queue. If another thread holds a
 * connection's lock, the alarm of deferred requests sends them later. */
static void vcq_ring_all(struct vcq *cq)
{
	struct list *l;

	if (!lock_try(&cq->conns_lock))
		return;
	list_for_each (l, &cq->conns)
		conn_ring_soon(container_of(l, struct vcq_conn, link)->conn);
	lock_leave(&cq->conns_lock);
}

/* Send deferred requests now, because the caller may wait for their completion. */
static void vcq_ring(struct vcq *cq)
{
	if (__builtin_expect(atomic_load_explicit(&cq->waiting, memory_order_relaxed) > 0, 0))
		vcq_ring_all(cq);
}

int verbs_poll_cq(struct ibv_cq *ibv, int n, struct ibv_wc *wc)
{
	struct vcq *cq = container_of(ibv, struct vcq, cq.ibv);
	struct cq_taker taker = {.cq = &cq->cq, .wc = wc, .room = n > 0 ? n : 0};
	int got;

	if (cq->generation != engine_generation())
		return -ENODEV;
	vcq_ring(cq);
	got = cq_poll(&cq->cq, n, wc);
	if (got != 0)
		return got;
	vcq_drive(cq, &taker);
	return taker.got ? taker.got : cq_poll(&cq->cq, n, wc);
}

/* No completion goes directly to the taker, because the queue stamps the time of each completion.
 * So the taker has room for none. */
int vcq_poll_stamped(struct vcq *cq, struct ibv_wc *wc, uint64_t *at_ns)
{
	struct cq_taker taker = {.cq = &cq->cq};

	if (cq->generation != engine_generation())
		return -ENODEV;
	vcq_ring(cq);
	if (cq_poll_stamped(&cq->cq, wc, at_ns))
		return 1;
	vcq_drive(cq, &taker);
	return cq_poll_stamped(&cq->cq, wc, at_ns);
}

int verbs_req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
	struct vcq *cq = container_of(ibv, struct vcq, cq.ibv);

	if (cq->generation != engine_generation())
		return ENODEV;
	vcq_ring(cq);
	cq_arm(&cq->cq, solicited_only);
	vcq_disown(cq);
	return 0;
}
