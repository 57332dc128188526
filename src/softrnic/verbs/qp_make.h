/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qp_make.h -- what the queue pairs of ids and plain ones have in common: they are checked, made,
 * attached to a connection, and detached.
 */
#ifndef VERBS_QP_MAKE_H
#define VERBS_QP_MAKE_H

#include <infiniband/verbs.h>
#include <stdint.h>

#include "softrnic/io/conn.h"
#include "softrnic/verbs/device.h"

/* Numbers of queue pairs: below are those of ids, from here on plain ones. */
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

/* Of a type that there is, with its CQs, and within the device's limits? 0 or an errno value. */
int qp_attr_check(const struct ibv_qp_init_attr *attr);
int qp_attr_check_queues(const struct ibv_qp_init_attr *attr); /* without the type */
/* More may be granted than was asked for. */
void qp_attr_grant(struct ibv_qp_init_attr *attr);

/*
 * plain: as qp_config.plain. 0 or -errno. The public members of the queue pair are filled. After it
 * qp_count_users(1), and after its destruction -1: what a queue pair is made of is in use.
 */
int qp_build(struct conn *c, struct ibv_pd *pd, const struct ibv_qp_init_attr *granted,
	     uint32_t num, void *plain, struct qp **out);
void qp_count_users(const struct ibv_qp *ibv, int by);
/* The connection drives the queue pair from now on, and the polls of its CQs the connection, */
void qp_attach(struct conn *c, struct ibv_qp *ibv, const struct ibv_qp_init_attr *granted,
	       struct qp_places *places);
/* until it is detached: conn_detach_qp(). Its undelivered events are dropped. */
struct qp *qp_detach(struct conn *c, struct ibv_qp *ibv, struct qp_places *places);

#endif
