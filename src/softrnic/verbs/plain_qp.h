/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plain_qp.h -- plain queue pairs: made by verbs alone, without an id, and moved by their user
 * through the states of verbs.
 *
 * A plain queue pair has a connection from its creation on, which is called its home
 * (io/conn_plain.h). With the move to RTR the user names the peer, and the home then connects to
 * this peer. A move to RESET ends the stream, but not the home; the queue pair keeps its address
 * and its number.
 */
#ifndef VERBS_PLAIN_QP_H
#define VERBS_PLAIN_QP_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "base/lock.h"
#include "softrnic/io/conn_plain.h"
#include "softrnic/verbs/qp_make.h"

struct plain_qp {
	/* Serializes the user's calls. The connection's lock may be taken inside it. */
	struct lock lock;
	unsigned generation;
	struct conn *home;
	struct ibv_qp *ibv;
	/* entries of the home in the lists of the queue pair's CQs */
	struct qp_places places;
	struct ibv_qp_init_attr granted; /* the attributes that were granted at its creation */
	struct ibv_qp_attr attr;         /* all attributes that the user has set since RESET */
	uint32_t num;
};

static inline bool plain_qp_is(const struct ibv_qp *ibv)
{
	return ibv->qp_num >= QP_NUM_PLAIN;
}
struct plain_qp *plain_qp_of(struct ibv_qp *ibv);
/* Was the queue pair inherited through fork()? */
bool plain_qp_is_removed(const struct plain_qp *p);
/* Begin a call of the user: take the lock and return the connection. plain_qp_leave() releases the
 * lock. Returns NULL, without the lock, if the queue pair was inherited through fork(). */
struct conn *plain_qp_enter(struct plain_qp *p);
void plain_qp_leave(struct plain_qp *p);

/* Modify the queue pair, like ibv_modify_qp(). Returns 0 or an errno value. */
int plain_qp_modify(struct plain_qp *p, const struct ibv_qp_attr *attr, int mask);
int plain_qp_query(struct plain_qp *p, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init);

/* --- plain_qp_meet.c: called with the queue pair's lock --------------------------------------- */

/* Move to RTR, and connect to the peer that p->attr names. The call does not wait. Returns 0 or an
 * errno value, for example if there is no route; the state stays INIT then. */
int plain_qp_meet(struct plain_qp *p);
/* Apply the limits in p->attr. Called when the queue pair moves to RTS, or when its attributes
 * change in RTS. Returns 0 or an errno value. */
int plain_qp_limit(struct plain_qp *p);

#endif
