/* SPDX-License-Identifier: BSD-3-Clause */
/* qp_make.h -- the common part of plain queue pairs and those of ids: they are checked, made,
 * attached to a connection, and detached. */
#ifndef VERBS_QP_MAKE_H
#define VERBS_QP_MAKE_H

#include <infiniband/verbs.h>
#include <stdint.h>

#include "softrnic/io/conn.h"
#include "softrnic/verbs/device.h"

/* The first number of a plain queue pair; ids' queue pairs have smaller numbers. */
#define QP_NUM_PLAIN 0x040000u

static inline struct vcq *qp_vcq(struct ibv_cq *ibv)
{
	return ibv ? container_of(ibv, struct vcq, cq.ibv) : NULL;
}

static inline struct vsrq *qp_vsrq(struct ibv_srq *ibv)
{
	return ibv ? container_of(ibv, struct vsrq, srq.ibv) : NULL;
}

/* The places of a connection in the lists of its queue pair's CQs. */
struct qp_places {
	struct vcq_conn send, recv;
};
void qp_places_init(struct qp_places *places);

/*
 * Check for a known type, CQs, and values within the device's limits. Returns 0 or an errno value.
 */
int qp_attr_check(const struct ibv_qp_init_attr *attr);
int qp_attr_check_queues(const struct ibv_qp_init_attr *attr); /* accepts any type */
/* Replace the requested attributes by the granted ones, which may exceed the request. */
void qp_attr_grant(struct ibv_qp_init_attr *attr);

/*
 * Make a queue pair and fill in its public members. plain: as qp_config.plain. Returns 0 or -errno.
 * Afterwards the caller counts the use of its domain and queues by qp_count_users(1), and after the
 * destruction by -1.
 */
int qp_build(struct conn *c, struct ibv_pd *pd, const struct ibv_qp_init_attr *granted,
	     uint32_t num, void *plain, struct qp **out);
void qp_count_users(const struct ibv_qp *ibv, int by);
/* From now on the connection drives the queue pair, and polls of its CQs drive the connection,
 * until qp_detach(). */
void qp_attach(struct conn *c, struct ibv_qp *ibv, const struct ibv_qp_init_attr *granted,
	       struct qp_places *places);
/* Detach the queue pair: see conn_detach_qp(). Its undelivered events are dropped. */
struct qp *qp_detach(struct conn *c, struct ibv_qp *ibv, struct qp_places *places);

#endif
