/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/verbs/ud_qp.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "softrnic/io/config.h"
#include "softrnic/io/engine.h"
#include "softrnic/io/qp_port.h"
#include "softrnic/io/stall.h"
#include "softrnic/io/ud_port.h"
#include "softrnic/rnic/ud_qp.h"
#include "softrnic/verbs/context.h"
#include "softrnic/verbs/qp_attr.h"
#include "softrnic/verbs/qp_ex.h"
#include "softrnic/verbs/qp_make.h"
#include "softrnic/verbs/qp_states.h"
#include "softrnic/verbs/ud_late.h"

struct vud {
	struct ud_end end;
	struct lock lock; /* lock of the queue pair */
	unsigned generation;
	struct ud_qp *qp;
	struct ud_port *port;
	struct qp_place place;
	/* counter of the queue pair's protection domain, which exists longer than the queue pair */
	struct stall_count *stall;
	struct ud_late late;
	bool is_late; /* the domain has had memory that can stall; under the port's receive lock */
	/* entries of the port in the lists of the receive CQ and of a different send CQ */
	struct vcq_port polled[2];
	struct ibv_qp_init_attr granted; /* the attributes that were granted at its creation */
	struct ibv_qp_attr attr;         /* all attributes that the user has set since RESET */
};

static struct vud *vud_of(struct ibv_qp *ibv)
{
	return ud_qp_owner(ud_qp_of(ibv));
}

/* Take the lock; vud_leave() releases it. Returns false if the queue pair was inherited through
 * fork(). */
static bool vud_enter(struct vud *v)
{
	if (v->generation != engine_generation())
		return false;
	lock_enter(&v->lock);
	return true;
}

static void vud_leave(struct vud *v)
{
	lock_leave(&v->lock);
}

/* --- packets ---------------------------------------------------------------------------------- */

static int vud_gather(void *owner, struct ud_flows *flows, uint64_t now, struct ud_packet *packets,
		      int max)
{
	struct vud *v = owner;

	return ud_qp_gather(v->qp, flows, now, packets, max);
}

/* May a thread that holds the queue pair's lock wait for a file system? */
static bool vud_can_stall(const struct vud *v)
{
	return atomic_load_explicit(&v->stall->regions, memory_order_relaxed) > 0;
}

/* Send posted requests until the socket takes no more. Called with the lock. */
static void vud_send(struct vud *v)
{
	int n;

	for (;;) {
		/* memory that can stall is loaded before the port's send lock is taken */
		if (vud_can_stall(v))
			ud_qp_stage(v->qp);
		n = ud_port_send(v->port, &v->end, vud_gather, v);
		if (n <= 0)
			return;
		ud_qp_sent(v->qp, n);
	}
}

static void vud_send_now(struct vud *v)
{
	lock_enter(&v->lock);
	vud_send(v);
	lock_leave(&v->lock);
}

static void vud_receive_now(struct vud *v, const struct ud_header *h, const struct ud_path *path,
			    const uint8_t *payload, size_t len)
{
	lock_enter(&v->lock);
	ud_qp_receive(v->qp, h, path, payload, len);
	lock_leave(&v->lock);
}

/* Called with the port's receive lock, like vud_on_received(). So neither function waits for the
 * lock of a queue pair whose memory can stall. */
static void vud_on_writable(struct ud_end *end)
{
	struct vud *v = container_of(end, struct vud, end);

	if (vud_can_stall(v))
		ud_late_send(&v->late);
	else
		vud_send_now(v);
}

static void vud_on_received(struct ud_end *end, const struct ud_header *h,
			    const struct ud_path *path, const uint8_t *payload, size_t len)
{
	struct vud *v = container_of(end, struct vud, end);

	if (vud_can_stall(v))
		v->is_late = true;
	/* The engine also handles later messages, as long as an earlier message waits. */
	if (!v->is_late || !ud_late_add(&v->late, vud_can_stall(v), h, path, payload, len))
		vud_receive_now(v, h, path, payload, len);
}

static void vud_late_receive(struct ud_late *late, const struct ud_header *h,
			     const struct ud_path *path, const uint8_t *payload, size_t len)
{
	vud_receive_now(container_of(late, struct vud, late), h, path, payload, len);
}

static void vud_late_send(struct ud_late *late)
{
	vud_send_now(container_of(late, struct vud, late));
}

/* Called with the lock. */
static void vud_on_async(void *owner, enum ibv_event_type event)
{
	struct ibv_qp *ibv = ud_qp_ibv(((struct vud *)owner)->qp);

	async_raise(context_events(ibv->context), event, ibv);
}

/* --- creation and deletion -------------------------------------------------------------------- */

static int vud_make_qp(struct vud *v, struct ibv_pd *pd)
{
	const struct ibv_qp_init_attr *granted = &v->granted;
	struct ud_qp_config cfg = {
		.mrs = device_mrs(),
		.pd = &vpd_of(pd)->ibv,
		.send_cq = &qp_vcq(granted->send_cq)->cq,
		.recv_cq = &qp_vcq(granted->recv_cq)->cq,
		.srq = granted->srq ? &qp_vsrq(granted->srq)->srq : NULL,
		.qp_num = v->place.qpn,
		.cap = granted->cap,
		.sq_sig_all = granted->sq_sig_all,
		.owner = v,
		.async = vud_on_async,
	};
	int ret = ud_qp_new(&cfg, &v->qp);

	if (!ret)
		ud_qp_ibv(v->qp)->qp_context = granted->qp_context;
	return ret;
}

static int vud_make(struct vud *v, struct ibv_pd *pd, uint64_t ops)
{
	int ret = qp_port_take_ud(&v->place, &v->port);

	if (ret)
		return ret;
	ret = vud_make_qp(v, pd);
	if (!ret) {
		ret = qp_ex_begin(ud_qp_ibv(v->qp), ops, &v->granted.cap);
		if (ret)
			ud_qp_delete(v->qp);
	}
	if (ret)
		qp_port_give(&v->place);
	return ret;
}

/* Let the port deliver packets to the queue pair. From here on packets may arrive. */
static void vud_begin(struct vud *v)
{
	v->end.qpn = v->place.qpn;
	v->end.received = vud_on_received;
	v->end.writable = vud_on_writable;
	for (int i = 0; i < 2; i++) {
		v->polled[i].port = v->port;
		list_init(&v->polled[i].link);
	}
	qp_count_users(ud_qp_ibv(v->qp), 1);
	ud_port_join(v->port, &v->end);
	vcq_attach_port(qp_vcq(v->granted.recv_cq), &v->polled[0]);
	/* polls of the send CQ must receive credits */
	if (v->granted.send_cq != v->granted.recv_cq)
		vcq_attach_port(qp_vcq(v->granted.send_cq), &v->polled[1]);
}

static int vud_check(const struct ibv_qp_init_attr *attr)
{
	return config_get()->roce ? qp_attr_check_queues(attr) : EOPNOTSUPP;
}

struct ibv_qp *vud_new(struct ibv_pd *pd, struct ibv_qp_init_attr *attr, uint64_t ops,
		       struct ibv_qp_cap *cap)
{
	struct vud *v = NULL;
	int err = vud_check(attr);

	if (!err) {
		v = calloc(1, sizeof(*v));
		err = v ? 0 : ENOMEM;
	}
	if (!err) {
		qp_attr_grant(attr);
		lock_init(&v->lock);
		v->stall = vpd_of(pd)->stall;
		ud_late_init(&v->late);
		v->late.receive = vud_late_receive;
		v->late.send = vud_late_send;
		v->generation = engine_generation();
		v->granted = *attr;
		err = -vud_make(v, pd, ops);
	}
	if (err) {
		free(v);
		errno = err;
		return NULL;
	}
	vud_begin(v);
	*cap = attr->cap;
	return ud_qp_ibv(v->qp);
}

static void vud_log_counters(struct vud *v)
{
	const struct ud_counters *n = ud_qp_counters(v->qp);

	LOG_INFO("queue pair 0x%06x: %" PRIu64 " datagrams sent, %" PRIu64
		 " received; dropped: %" PRIu64 " without a receive, %" PRIu64
		 " longer than it, %" PRIu64 " with another Q_Key, %" PRIu64 " before RTR, %" PRIu64
		 " while its memory waited for a disk; %" PRIu64
		 " of its port were malformed or for no queue pair; %u times a peer of its port "
		 "did not report what it had read",
		 v->place.qpn, n->sends_out, n->sends_in, n->no_receive, n->too_long, n->bad_qkey,
		 n->not_ready, ud_late_dropped(&v->late), ud_port_dropped(v->port),
		 ud_port_silences(v->port));
}

/* After this call the queue pair receives and sends no more packets. */
static void vud_end(struct vud *v)
{
	vcq_detach_port(qp_vcq(v->granted.recv_cq), &v->polled[0]);
	vcq_detach_port(qp_vcq(v->granted.send_cq), &v->polled[1]);
	ud_late_close(&v->late);
	ud_port_leave(v->port, &v->end);
	vud_log_counters(v);
}

void vud_delete(struct ibv_qp *ibv)
{
	struct async_events *events = context_events(ibv->context);
	struct vud *v = vud_of(ibv);
	struct ibv_qp used = qp_uses(ibv);
	bool is_removed = v->generation != engine_generation();
	struct async_stop stop;

	async_stop(events, &stop, ibv);
	qp_ex_end(ibv);
	if (!is_removed) /* in a forked child locks may be held for ever */
		vud_end(v);
	async_forget(events, &stop);
	if (!is_removed) {
		ud_qp_delete(v->qp);
		qp_port_give(&v->place);
	}
	qp_count_users(&used, -1);
	free(v);
}

/* --- modification and query ------------------------------------------------------------------- */

static int vud_modify_locked(struct vud *v, const struct ibv_qp_attr *attr, int mask)
{
	enum ibv_qp_state from = ud_qp_ibv(v->qp)->state;
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : from;

	if (mask & IBV_QP_CUR_STATE && attr->cur_qp_state != from)
		return EINVAL;
	if (!qp_states_permit(IBV_QPT_UD, from, to, mask) || !qp_attr_is_valid(attr, mask))
		return EINVAL;
	qp_attr_store(&v->attr, attr, mask);
	if (mask & IBV_QP_QKEY)
		ud_qp_set_qkey(v->qp, attr->qkey);
	if (to == IBV_QPS_RESET)
		memset(&v->attr, 0, sizeof(v->attr));
	if (mask & IBV_QP_STATE)
		ud_qp_move(v->qp, to,
			   mask & IBV_QP_EN_SQD_ASYNC_NOTIFY && attr->en_sqd_async_notify);
	vud_send(v); /* send requests that could be posted but not sent in SQD */
	return 0;
}

int vud_modify(struct ibv_qp *ibv, const struct ibv_qp_attr *attr, int mask)
{
	struct vud *v = vud_of(ibv);
	int ret;

	if (!vud_enter(v))
		return ENODEV;
	ret = vud_modify_locked(v, attr, mask);
	vud_leave(v);
	return ret;
}

int vud_query(struct ibv_qp *ibv, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init)
{
	struct vud *v = vud_of(ibv);

	if (!vud_enter(v))
		return ENODEV;
	*attr = v->attr;
	*init = v->granted;
	attr->qp_state = attr->cur_qp_state = ibv->state;
	attr->cap = v->granted.cap;
	vud_leave(v);
	return 0;
}

/* --- posting ---------------------------------------------------------------------------------- */

int vud_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct vud *v = vud_of(ibv);
	int err;

	if (!vud_enter(v)) {
		*bad = wr;
		return ENODEV;
	}
	err = ud_qp_post_send(v->qp, wr, bad);
	vud_send(v);
	vud_leave(v);
	return err;
}

int vud_post_list(struct ibv_qp *ibv, const struct vext_wr *wrs, int n, int *posted)
{
	struct vud *v = vud_of(ibv);
	int err;

	*posted = 0;
	if (!vud_enter(v))
		return ENODEV;
	err = ud_qp_post_list(v->qp, wrs, n);
	if (!err)
		*posted = n;
	vud_send(v);
	vud_leave(v);
	return err;
}

int vud_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct vud *v = vud_of(ibv);
	int err;

	if (!vud_enter(v)) {
		*bad = wr;
		return ENODEV;
	}
	err = ud_qp_post_recv(v->qp, wr, bad);
	vud_leave(v);
	return err;
}

int vud_counters(struct ibv_qp *ibv, const char *const **names, uint64_t *values, int max)
{
	static const char *const counter_names[] = {
#define X(name) #name,
		UD_COUNTERS(X)
#undef X
	};
	int n = (int)(sizeof(counter_names) / sizeof(counter_names[0]));
	size_t room = (size_t)(max < 0 ? 0 : max < n ? max : n) * sizeof(*values);
	struct vud *v = vud_of(ibv);

	*names = counter_names;
	memset(values, 0, room);
	if (!vud_enter(v))
		return n;
	memcpy(values, ud_qp_counters(v->qp), room);
	vud_leave(v);
	return n;
}
