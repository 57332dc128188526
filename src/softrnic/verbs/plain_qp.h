/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plain_qp.h -- plain queue pairs: made by verbs alone, without an id, and moved by their user
 * through the states of verbs.
 *
 * A plain queue pair has a connection, its home, from its creation on (io/conn_plain.h). From the
 * state RTR on, the user has named the peer, and the home looks for this peer. RESET ends the
 * stream but not the home; the queue pair keeps its address and its number.
 */
#ifndef VERBS_PLAIN_QP_H
#define VERBS_PLAIN_QP_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "base/lock.h"
#include "softrnic/io/conn_plain.h"
#include "softrnic/verbs/qp_make.h"

struct plain_qp {
	/* Serializes the user's calls. Outer to the connection's lock. */
	struct lock lock;
	unsigned generation;
	struct conn *home;
	struct ibv_qp *ibv;
	struct qp_places places;         /* the home's places in the queue pair's CQs */
	struct ibv_qp_init_attr granted; /* the attributes at its creation */
	struct ibv_qp_attr attr;         /* all attributes that the user has set since RESET */
	uint32_t num;
};

static inline bool plain_qp_is(const struct ibv_qp *ibv)
{
	return ibv->qp_num >= QP_NUM_PLAIN;
}
struct plain_qp *plain_qp_of(struct ibv_qp *ibv);
/* The queue pair was inherited through fork(). */
bool plain_qp_is_removed(const struct plain_qp *p);
/* Begin a call of the user: take the lock, until plain_qp_leave(), and return the connection. NULL:
 * the queue pair is removed. */
struct conn *plain_qp_enter(struct plain_qp *p);
void plain_qp_leave(struct plain_qp *p);

/* As ibv_modify_qp(): returns 0 or an errno value. */
int plain_qp_modify(struct plain_qp *p, const struct ibv_qp_attr *attr, int mask);
int plain_qp_query(struct plain_qp *p, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init);

/* --- plain_qp_meet.c; called with the queue pair's lock --------------------------------------- */

/* Move to RTR: p->attr names the peer. The call does not wait. Returns 0, or an errno value (no
 * route, for example): then the state stays INIT. */
int plain_qp_meet(struct plain_qp *p);
/* The queue pair moves to RTS or stays there: apply the limits of p->attr. Returns 0 or an errno
 * value. */
int plain_qp_limit(struct plain_qp *p);

#endif
