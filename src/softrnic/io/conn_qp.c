/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn_qp.c -- the queue pair of a connection: attaches, drains and detaches it, and implements its
 * owner's functions.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "softrnic/io/admission.h"
#include "softrnic/io/config.h"
#include "softrnic/io/conn_parts.h"

/* --- the owner's functions for the QP ------------------------------------------------------- */

static void conn_qp_get(void *owner)
{
	conn_get(owner);
}

static void conn_qp_notify(void *owner)
{
	conn_want(owner, CONN_RESUME);
	conn_put(owner);
}

/* Record that the connection is given up. This must precede the first completion in error, because
 * the user may connect again as soon as it sees this completion. */
static void conn_qp_failing(void *owner)
{
	conn_origin_give_up(owner);
}

static bool conn_qp_is_over(void *owner)
{
	return conn_is_over(owner);
}

void conn_serve_qp(struct conn *c, struct qp_config *cfg)
{
	cfg->get = conn_qp_get;
	cfg->notify = conn_qp_notify;
	cfg->failing = conn_qp_failing;
	cfg->alarm = &c->alarm;
	cfg->is_over = conn_qp_is_over;
	cfg->owner = c;
}

void conn_on_access_error(struct conn *c)
{
	if (!stream_is_local_fault(c->stream))
		admission_count_violation(&c->dst, clock_now_ns());
}

struct ibv_qp *conn_qp(const struct conn *c)
{
	return qp_ibv(stream_qp(c->stream));
}

/* --- attaching ------------------------------------------------------------------------------ */

void conn_attach_qp(struct conn *c, const struct conn_attachment *with)
{
	conn_enter(c);
	/* Another thread may still read the previous QP's counter, because counters are read
	 * without the lock. So this counter is kept until the next QP is attached. */
	stall_count_put(c->stall_before);
	c->stall_before = atomic_exchange(&c->stall, stall_count_get(with->stall));
	c->qp_init = *with->granted;
	stream_attach_qp(c->stream, with->qp);
	c->cq_waiting[0] = with->waiting[0];
	c->cq_waiting[1] = with->waiting[1];
	conn_leave(c);
}

int conn_modify_qp(struct conn *c, enum ibv_qp_state state)
{
	struct stream_update u;
	int ret = conn_enter_caller(c, CONN_CALLER_MS);

	if (ret)
		return ret;
	if (state == IBV_QPS_ERR) {
		conn_end_quiet(c);
		conn_ring(c);
		stream_fail_qp(c->stream, &u);
		conn_perform(c, &u);
	} else if (state != stream_qp_state(c->stream)) {
		ret = EINVAL;
	}
	conn_leave(c);
	return ret;
}

int conn_move_qp(struct conn *c, const struct conn_qp_move *move)
{
	struct stream_update u;
	int ret = conn_enter_caller(c, CONN_CALLER_MS);

	if (ret)
		return ret;
	if (stream_qp_state(c->stream) == move->from) {
		qp_move(stream_qp(c->stream), move->to, move->notify_drained);
		/* requests that the state SQD held back may be sent now */
		stream_look(c->stream, &u);
		conn_perform(c, &u);
	} else {
		ret = EINVAL;
	}
	conn_leave(c);
	return ret;
}

int conn_permit_qp(struct conn *c, unsigned access)
{
	int ret = conn_enter_caller(c, CONN_CALLER_MS);

	if (ret)
		return ret;
	qp_permit(stream_qp(c->stream), access);
	conn_leave(c);
	return 0;
}

int conn_query_qp(struct conn *c, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init)
{
	int ret = conn_enter_caller(c, CONN_CALLER_MS);

	if (ret)
		return ret;
	*init = c->qp_init;
	attr->qp_state = attr->cur_qp_state = stream_qp_state(c->stream);
	attr->cap = c->qp_init.cap;
	attr->timeout = (uint8_t)atomic_load(&c->ack_timeout);
	attr->sq_draining = qp_is_draining(stream_qp(c->stream));
	if (stream_state(c->stream) >= STREAM_LIVE) {
		attr->max_rd_atomic = (uint8_t)stream_agreed(c->stream)->ord;
		attr->max_dest_rd_atomic = (uint8_t)stream_agreed(c->stream)->ird;
	}
	conn_leave(c);
	return 0;
}

void conn_set_ack_timeout(struct conn *c, uint8_t timeout)
{
	atomic_store(&c->ack_timeout, timeout);
}

int conn_counters(struct conn *c, void *counters, size_t size)
{
	int ret = conn_enter_caller(c, CONN_LOOK_MS);

	if (ret)
		return ret;
	memcpy(counters, stream_counters(c->stream), size);
	conn_leave(c);
	return 0;
}

uint32_t conn_caps(const struct conn *c)
{
	return atomic_load_explicit(&c->caps, memory_order_relaxed);
}

/* --- detaching ------------------------------------------------------------------------------ */

void conn_leave_cqs(struct conn *c)
{
	conn_enter(c);
	conn_ring(c);
	c->cq_waiting[0] = c->cq_waiting[1] = NULL;
	conn_leave(c);
}

/* Wait until posted requests are sent and a running write-back has ended, but only within the time
 * limit of a disconnect. After the limit, wait for the write-back only if it uses the application's
 * memory. */
static void conn_drain(struct conn *c)
{
	uint64_t end = clock_now_ns() + config_get()->drain_ns;
	struct stream_update u;

	conn_end_quiet(c);
	stream_look(c->stream, &u);
	if (stream_state(c->stream) == STREAM_LIVE)
		stream_disconnect(c->stream, clock_now_ns(), &u);
	conn_perform(c, &u);
	while (c->link && stream_state(c->stream) == STREAM_DRAINING && clock_now_ns() < end)
		conn_wait_change(c, end);
	/* While this end can still answer, the peer may be waiting for a write-back. */
	while (stream_awaits_job(c->stream) && c->link && !stream_qp_is_failed(c->stream) &&
	       clock_now_ns() < end)
		conn_wait_change(c, end);
	while (!conn_abandon_job(c, &u))
		conn_wait_change(c, clock_now_ns() + NSEC_PER_SEC);
}

struct qp *conn_detach_qp(struct conn *c)
{
	struct stream_update u;
	struct qp *qp;

	conn_enter(c);
	conn_disown(c);
	conn_drain(c);
	qp = stream_detach_qp(c->stream, &u);
	conn_perform(c, &u);
	conn_leave(c);
	return qp;
}
