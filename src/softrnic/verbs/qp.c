/* SPDX-License-Identifier: BSD-3-Clause */
/* qp.c -- work requests: the data path's entry. qp_make.c makes and ends queue pairs. */
#include <errno.h>
#include <string.h>

#include "softrnic/io/conn.h"
#include "softrnic/verbs/device.h"
#include "softrnic/softrnic.h"

static struct conn *qp_conn_of(struct ibv_qp *ibv)
{
	return qp_owner(qp_of(ibv));
}

/* The lock of its connection, for a call of the application. 0 or an errno value. */
static int qp_enter(struct conn *c)
{
	return conn_is_removed(c) ? ENODEV : conn_enter_caller(c, CONN_CALLER_MS);
}

int verbs_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct conn *c = qp_conn_of(ibv);
	int ret;

	ret = qp_enter(c);
	if (ret) {
		*bad = wr;
		return ret;
	}
	ret = stream_post_send(c->stream, wr, bad, NULL);
	conn_perform_posted(c);
	conn_leave(c);
	return ret;
}

int verbs_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct conn *c = qp_conn_of(ibv);
	struct stream_update u;
	int ret;

	ret = qp_enter(c);
	if (ret) {
		*bad = wr;
		return ret;
	}
	ret = stream_post_recv(c->stream, wr, bad, NULL);
	if (c->readable || conn_doorbell_since(&c->bell) || !stream_needs_nothing(c->stream)) {
		stream_look(c->stream, &u);
		conn_perform_and_read(c, &u);
	}
	conn_leave(c);
	return ret;
}

int softrnic_post(struct ibv_qp *ibv, const struct vext_wr *wrs, int n, int *posted)
{
	struct conn *c = qp_conn_of(ibv);
	int ret;

	*posted = 0;
	ret = qp_enter(c);
	if (ret)
		return ret;
	ret = stream_post_list(c->stream, wrs, n, posted, NULL);
	conn_perform_posted(c);
	conn_leave(c);
	return ret;
}

uint32_t softrnic_qp_caps(struct ibv_qp *ibv)
{
	struct conn *c = qp_conn_of(ibv);

	return conn_is_removed(c) ? 0 : atomic_load_explicit(&c->caps, memory_order_relaxed);
}

int softrnic_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
	struct conn *c = qp_conn_of(ibv);
	struct stream_update u;
	int ret = 0;

	if (conn_is_removed(c))
		return ENODEV;
	if (!(mask & IBV_QP_STATE))
		return 0;
	ret = conn_enter_caller(c, CONN_CALLER_MS);
	if (ret)
		return ret;
	if (attr->qp_state == IBV_QPS_ERR) {
		conn_end_quiet(c);
		conn_ring(c);
		stream_fail_qp(c->stream, &u);
		conn_perform(c, &u);
	} else if (attr->qp_state != stream_qp_state(c->stream)) {
		ret = EINVAL;
	}
	conn_leave(c);
	return ret;
}

int softrnic_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask,
		      struct ibv_qp_init_attr *init_attr)
{
	struct conn *c = qp_conn_of(ibv);
	int ret;

	memset(attr, 0, sizeof(*attr));
	memset(init_attr, 0, sizeof(*init_attr));
	if (conn_is_removed(c))
		return ENODEV;
	ret = conn_enter_caller(c, CONN_CALLER_MS);
	if (ret)
		return ret;
	*init_attr = c->qp_init;
	attr->qp_state = attr->cur_qp_state = stream_qp_state(c->stream);
	attr->cap = c->qp_init.cap;
	if (stream_state(c->stream) >= STREAM_LIVE) {
		attr->max_rd_atomic = (uint8_t)stream_agreed(c->stream)->ord;
		attr->max_dest_rd_atomic = (uint8_t)stream_agreed(c->stream)->ird;
	}
	conn_leave(c);
	return 0;
}

int softrnic_qp_counters(struct ibv_qp *ibv, const char *const **names, uint64_t *values, int max)
{
	static const char *const counter_names[] = {
#define X(name) #name,
		QP_COUNTERS(X)
#undef X
	};
	struct conn *c = qp_conn_of(ibv);
	int n = (int)(sizeof(counter_names) / sizeof(counter_names[0]));

	size_t room = (size_t)(max < 0 ? 0 : max < n ? max : n) * sizeof(*values);

	*names = counter_names;
	if (room == 0)
		return n;
	memset(values, 0, room);
	if (conn_is_removed(c))
		return n;
	if (conn_enter_caller(c, CONN_LOOK_MS))
		return -ETIMEDOUT;
	memcpy(values, stream_counters(c->stream), room);
	conn_leave(c);
	return n;
}
