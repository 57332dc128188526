/* SPDX-License-Identifier: BSD-3-Clause */
/* plain_qp.c -- creates and destroys plain queue pairs. */
#include "softrnic/verbs/plain_qp.h"

#include <errno.h>
#include <stdlib.h>

#include "base/thread.h"
#include "softrnic/io/config.h"
#include "softrnic/io/engine.h"
#include "softrnic/verbs/context.h"
#include "softrnic/verbs/qp_ex.h"
#include "softrnic/verbs/ud_qp.h"
#include "softrnic/softrnic.h"

struct plain_qp *plain_qp_of(struct ibv_qp *ibv)
{
	return qp_config(qp_of(ibv))->plain;
}

bool plain_qp_is_removed(const struct plain_qp *p)
{
	return p->generation != engine_generation();
}

struct conn *plain_qp_enter(struct plain_qp *p)
{
	if (plain_qp_is_removed(p))
		return NULL;
	lock_enter(&p->lock);
	return p->home;
}

void plain_qp_leave(struct plain_qp *p)
{
	lock_leave(&p->lock);
}

/* --- creation ------------------------------------------------------------------------------- */

/* Check the attributes. An unreliable queue pair can only connect by a meeting, for which the
 * device must look like RoCE. */
static int plain_qp_check(const struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
	if (!pd)
		return EINVAL;
	if (attr->qp_type == IBV_QPT_UC && config_get()->roce)
		return qp_attr_check_queues(attr);
	return qp_attr_check(attr);
}

static struct plain_qp *plain_qp_alloc(const struct ibv_qp_init_attr *granted)
{
	struct plain_qp *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	lock_init(&p->lock);
	qp_places_init(&p->places);
	p->generation = engine_generation();
	p->granted = *granted;
	return p;
}

/* Build the queue pair and its builder of work requests. Returns 0 or -errno. */
static int plain_qp_build(struct plain_qp *p, struct ibv_pd *pd, uint64_t ops)
{
	struct qp *qp;
	int ret = qp_build(p->home, pd, &p->granted, p->num, p, &qp);

	if (ret)
		return ret;
	p->ibv = qp_ibv(qp);
	ret = qp_ex_begin(p->ibv, ops, &p->granted.cap);
	if (ret)
		qp_delete(qp);
	return ret;
}

/* Make the queue pair and its home connection, which refer to each other. Returns 0 or -errno. */
static int plain_qp_make(struct plain_qp *p, struct ibv_pd *pd, uint64_t ops)
{
	int ret = conn_plain_new(&p->home, &p->num);

	if (ret)
		return ret;
	ret = plain_qp_build(p, pd, ops);
	if (ret) {
		conn_plain_leave(p->home);
		conn_release(p->home);
		return ret;
	}
	qp_count_users(p->ibv, 1);
	qp_attach(p->home, p->ibv, &p->granted, &p->places);
	return 0;
}

/* Create a plain queue pair. *cap receives the granted capabilities. Returns NULL and sets errno on
 * failure. */
static struct ibv_qp *plain_qp_new(struct ibv_pd *pd, struct ibv_qp_init_attr attr, uint64_t ops,
				   struct ibv_qp_cap *cap)
{
	struct plain_qp *p;
	int err = plain_qp_check(pd, &attr);

	if (pd && attr.qp_type == IBV_QPT_UD)
		return vud_new(pd, &attr, ops, cap);
	if (err) {
		errno = err;
		return NULL;
	}
	qp_attr_grant(&attr);
	p = plain_qp_alloc(&attr);
	if (!p)
		return NULL;
	err = -plain_qp_make(p, pd, ops);
	if (err) {
		free(p);
		errno = err;
		return NULL;
	}
	*cap = attr.cap;
	return p->ibv;
}

struct ibv_qp *softrnic_create_plain_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *asked)
{
	return plain_qp_new(pd, *asked, 0, &asked->cap);
}

struct ibv_qp *softrnic_create_plain_qp_ex(struct ibv_context *context,
					   struct ibv_qp_init_attr_ex *ex)
{
	struct ibv_qp_init_attr attr;
	uint64_t ops;
	int err = qp_ex_attr(ex, &attr, &ops);

	if (err) {
		errno = err;
		return NULL;
	}
	return plain_qp_new(ex->comp_mask & IBV_QP_INIT_ATTR_PD ? ex->pd : NULL, attr, ops,
			    &ex->cap);
}

bool softrnic_is_plain_qp(const struct ibv_qp *ibv)
{
	return plain_qp_is(ibv);
}

/* --- destruction ---------------------------------------------------------------------------- */

/*
 * Posted requests are still sent, within the time limit of a disconnect; an id's queue pair does
 * the same.
 */
static void plain_qp_delete(struct ibv_qp *ibv)
{
	struct async_events *events = context_events(ibv->context);
	struct ibv_qp used = qp_uses(ibv);
	struct plain_qp *p = plain_qp_of(ibv);
	struct async_stop stop;
	struct qp *qp = NULL;

	async_stop(events, &stop, ibv);
	qp_ex_end(ibv);
	if (!plain_qp_is_removed(p)) { /* in a forked child inner locks may be held for ever */
		conn_plain_leave(p->home);
		qp = qp_detach(p->home, ibv, &p->places);
	}
	async_forget(events, &stop);
	if (qp) {
		qp_delete(qp);
		conn_release(p->home);
	}
	qp_count_users(&used, -1); /* from here on the user may destroy the CQs and the SRQ */
	free(p);
}

int softrnic_destroy_plain_qp(struct ibv_qp *ibv)
{
	THREAD_NOT_CANCELLED;

	if (vud_is(ibv))
		vud_delete(ibv);
	else
		plain_qp_delete(ibv);
	return 0;
}
