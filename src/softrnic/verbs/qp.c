/* SPDX-License-Identifier: BSD-3-Clause */
/* qp.c -- posts work requests, and queries and modifies queue pairs of ids and plain queue
 * pairs. */
#include <errno.h>
#include <string.h>

#include "softrnic/io/conn.h"
#include "softrnic/verbs/device.h"
#include "softrnic/verbs/plain_qp.h"
#include "softrnic/verbs/ud_qp.h"
#include "softrnic/softrnic.h"

static struct conn *qp_conn_of(struct ibv_qp *ibv)
{
	return qp_owner(qp_of(ibv));
}

/* --- the data path -------------------------------------------------------------------------- */

int verbs_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	if (__builtin_expect(vud_is(ibv), 0))
		return vud_post_send(ibv, wr, bad);
	return conn_post_send(qp_conn_of(ibv), wr, bad);
}

int verbs_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	if (__builtin_expect(vud_is(ibv), 0))
		return vud_post_recv(ibv, wr, bad);
	return conn_post_recv(qp_conn_of(ibv), wr, bad);
}

void verbs_look_at_sends(struct ibv_qp *ibv)
{
	conn_look_at_sends(qp_conn_of(ibv));
}

int softrnic_post(struct ibv_qp *ibv, const struct vext_wr *wrs, int n, int *posted)
{
	if (__builtin_expect(vud_is(ibv), 0))
		return vud_post_list(ibv, wrs, n, posted);
	return conn_post_list(qp_conn_of(ibv), wrs, n, posted);
}

/* --- modify and query ----------------------------------------------------------------------- */

int softrnic_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
	if (vud_is(ibv))
		return vud_modify(ibv, attr, mask);
	if (plain_qp_is(ibv))
		return plain_qp_modify(plain_qp_of(ibv), attr, mask);
	if (conn_is_removed(qp_conn_of(ibv)))
		return ENODEV;
	return mask & IBV_QP_STATE ? conn_modify_qp(qp_conn_of(ibv), attr->qp_state) : 0;
}

int softrnic_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask,
		      struct ibv_qp_init_attr *init_attr)
{
	struct conn *c;

	memset(attr, 0, sizeof(*attr));
	memset(init_attr, 0, sizeof(*init_attr));
	if (vud_is(ibv))
		return vud_query(ibv, attr, init_attr);
	if (plain_qp_is(ibv))
		return plain_qp_query(plain_qp_of(ibv), attr, init_attr);
	c = qp_conn_of(ibv);
	return conn_is_removed(c) ? ENODEV : conn_query_qp(c, attr, init_attr);
}

/* --- calls beyond verbs --------------------------------------------------------------------- */

uint32_t softrnic_qp_caps(struct ibv_qp *ibv)
{
	struct conn *c;

	if (vud_is(ibv))
		return 0;
	c = qp_conn_of(ibv);
	return conn_is_removed(c) ? 0 : conn_caps(c);
}

int softrnic_qp_counters(struct ibv_qp *ibv, const char *const **names, uint64_t *values, int max)
{
	static const char *const counter_names[] = {
#define X(name) #name,
		QP_COUNTERS(X)
#undef X
	};
	int n = (int)(sizeof(counter_names) / sizeof(counter_names[0]));
	size_t room = (size_t)(max < 0 ? 0 : max < n ? max : n) * sizeof(*values);
	struct conn *c;

	if (vud_is(ibv))
		return vud_counters(ibv, names, values, max);
	c = qp_conn_of(ibv);
	*names = counter_names;
	if (room == 0)
		return n;
	memset(values, 0, room);
	if (conn_is_removed(c))
		return n;
	return conn_counters(c, values, room) ? -ETIMEDOUT : n;
}
