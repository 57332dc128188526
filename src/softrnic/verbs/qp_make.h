/* SPDX-License-Identifier: BSD-3-Clause */
/* qp_make.h -- functions that plain queue pairs and ids' queue pairs share: they check, make,
 * attach and detach a queue pair. */
#ifndef VERBS_QP_MAKE_H
#define VERBS_QP_MAKE_H

#include <infiniband/verbs.h>
#include <stdint.h>

#include "softrnic/io/conn.h"
#include "softrnic/verbs/device.h"

/* The first number of a plain queue pair. Queue pairs of ids have smaller numbers. */
#define QP_NUM_PLAIN 0x040000u

static inline struct vcq *qp_vcq(struct ibv_cq *ibv)
{
	return ibv ? container_of(ibv, struct vcq, cq.ibv) : NULL;
}

static inline struct vsrq *qp_vsrq(struct ibv_srq *ibv)
{
	return ibv ? container_of(ibv, struct vsrq, srq.ibv) : NULL;
}

/* The entries of a connection in the lists of its queue pair's CQs. */
struct qp_places {
	struct vcq_conn send, recv;
};
void qp_places_init(struct qp_places *places);

/*
 * Check that the type is known, that there are CQs, and that the values are within the device's
 * limits. Returns 0 or an errno value.
 */
int qp_attr_check(const struct ibv_qp_init_attr *attr);
/* does the same as qp_attr_check(), but accepts any type */
int qp_attr_check_queues(const struct ibv_qp_init_attr *attr);
/* Replace the requested attributes by the granted ones. Granted values may be greater than
 * requested ones. */
void qp_attr_grant(struct ibv_qp_init_attr *attr);

/*
 * Make a queue pair and fill in its public members. `plain`: see qp_config.plain. Returns 0 or
 * -errno. Afterwards the caller must call qp_count_users(1), which counts the queue pair as a user
 * of its domain and queues, and qp_count_users(-1) after its destruction.
 */
int qp_build(struct conn *c, struct ibv_pd *pd, const struct ibv_qp_init_attr *granted,
	     uint32_t num, void *plain, struct qp **out);
void qp_count_users(const struct ibv_qp *ibv, int by);
/* Returns a copy of the members that are needed after the queue pair is freed: its number, and the
 * pointers for qp_count_users(). The other members are 0. */
struct ibv_qp qp_uses(const struct ibv_qp *ibv);
/* From now on until qp_detach() the connection drives the queue pair, and polls of its CQs drive
 * the connection. */
void qp_attach(struct conn *c, struct ibv_qp *ibv, const struct ibv_qp_init_attr *granted,
	       struct qp_places *places);
/* Detach the queue pair: see conn_detach_qp(). */
struct qp *qp_detach(struct conn *c, struct ibv_qp *ibv, struct qp_places *places);

#endif
