/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plain_qp.h -- plain queue pairs: made by verbs alone, without an id, and moved by their user
 * through the states of verbs.
 *
 * One has a connection, its home, from its creation on (io/conn_plain.h). From the state RTR on,
 * in which it has the name of its peer, the home looks for the peer. RESET ends the stream and not
 * the home; the queue pair keeps its address and its number.
 */
#ifndef VERBS_PLAIN_QP_H
#define VERBS_PLAIN_QP_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "base/lock.h"
#include "softrnic/io/conn_plain.h"
#include "softrnic/verbs/qp_make.h"

struct plain_qp {
	/* One call of its user at a time. Outer to the connection's lock. */
	struct lock lock;
	unsigned generation;
	struct conn *home;
	struct ibv_qp *ibv;
	struct qp_places places;         /* of the home, in its CQs */
	struct ibv_qp_init_attr granted; /* as it was made */
	struct ibv_qp_attr attr;         /* all that its user has set since RESET */
	uint32_t num;
};

static inline bool plain_qp_is(const struct ibv_qp *ibv)
{
	return ibv->qp_num >= QP_NUM_PLAIN;
}
struct plain_qp *plain_qp_of(struct ibv_qp *ibv);
/* It was inherited through fork(). */
bool plain_qp_is_removed(const struct plain_qp *p);
/* For calls of its user, with the lock until plain_qp_leave(): its connection. NULL: removed. */
struct conn *plain_qp_enter(struct plain_qp *p);
void plain_qp_leave(struct plain_qp *p);

/* 0 or an errno value, as the verbs of that name. */
int plain_qp_modify(struct plain_qp *p, const struct ibv_qp_attr *attr, int mask);
int plain_qp_query(struct plain_qp *p, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init);

/* --- plain_qp_meet.c, with the queue pair's lock -------------------------------------------- */

/* The state becomes RTR: p->attr names the peer. It does not wait. 0, or an errno value (there is no
 * route, for example): the state stays INIT. */
int plain_qp_meet(struct plain_qp *p);
/* It is in RTS, or stays there: p->attr has its limits. 0 or an errno value. */
int plain_qp_limit(struct plain_qp *p);

#endif
