/* SPDX-License-Identifier: BSD-3-Clause */
/* shim_id.c -- the list of shim ids, and the fields of inner ids that programs see in their shim
 * ids. */
#include "interposer/shim_id.h"

#include <errno.h>
#include <stdlib.h>

#include "softrnic/softrnic.h"

static pthread_mutex_t id_lock = PTHREAD_MUTEX_INITIALIZER;
static struct shim_id *id_all;

/* Hold the lock during fork(), because the child has no other thread that could release it. */
static void id_lock_all(void)
{
	pthread_mutex_lock(&id_lock);
}

static void id_unlock_all(void)
{
	pthread_mutex_unlock(&id_lock);
}

__attribute__((constructor)) static void id_follow_forks(void)
{
	pthread_atfork(id_lock_all, id_unlock_all, id_unlock_all);
}

/* The protection domain for ids whose program passes no domain. The domain exists until the process
 * exits. */
static struct ibv_pd *id_default_pd(void)
{
	static struct ibv_pd *pd;
	/* fork() takes the context's locks before this lock, so create the context before taking
	 * it. */
	struct ibv_context *ctx = softrnic_context();

	pthread_mutex_lock(&id_lock);
	if (!pd)
		pd = softrnic_alloc_pd(ctx);
	pthread_mutex_unlock(&id_lock);
	return pd;
}

/* The queue pair, its queues and their channels are not copied here, but in qp.c. */
void shim_id_sync(struct shim_id *s)
{
	const struct rdma_cm_id *inner = s->inner;

	s->pub.verbs = inner->verbs;
	s->pub.route = inner->route;
	s->pub.port_num = inner->port_num;
	if (inner->verbs && !s->pub.pd)
		s->pub.pd = s->ops->is_rdma_core ? inner->pd : id_default_pd();
}

struct shim_id *shim_id_new(struct shim_channel *ch, void *context, enum rdma_port_space ps)
{
	struct shim_id *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->ops = &softrnic_ops;
	s->pub.channel = &ch->pub;
	s->pub.context = context;
	s->pub.ps = ps;
	s->pub.qp_type = ps == RDMA_PS_TCP ? IBV_QPT_RC : IBV_QPT_UD;
	pthread_mutex_lock(&id_lock);
	s->next = id_all;
	id_all = s;
	pthread_mutex_unlock(&id_lock);
	return s;
}

void shim_id_free(struct shim_id *s)
{
	struct shim_id **at = &id_all;

	pthread_mutex_lock(&id_lock);
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	pthread_mutex_unlock(&id_lock);
	if (s->own_channel)
		shim_channel_delete(s->own_channel);
	free(s->ep_attr);
	free(s);
}

struct shim_id *shim_id_new_passive(struct shim_id *listener, struct shim_channel *ch,
				    struct rdma_cm_id *inner)
{
	struct shim_id *s = shim_id_new(ch, listener->pub.context, listener->pub.ps);

	if (!s)
		return NULL;
	s->ops = listener->ops;
	s->inner = inner;
	s->pub.pd = listener->pub.pd;
	inner->context = s;
	shim_id_sync(s);
	return s;
}

struct shim_id *shim_id_with_qp(const struct ibv_qp *qp)
{
	struct shim_id *s;

	pthread_mutex_lock(&id_lock);
	for (s = id_all; s && s->softrnic_qp != qp; s = s->next)
		;
	pthread_mutex_unlock(&id_lock);
	return s;
}

void shim_id_set_qp(struct shim_id *s, struct ibv_qp *qp)
{
	pthread_mutex_lock(&id_lock);
	s->softrnic_qp = s->ops->is_rdma_core ? NULL : qp;
	pthread_mutex_unlock(&id_lock);
	if (!s->ops->is_rdma_core)
		/* An earlier queue pair may have had this address: forget it. */
		shim_id_forget_qp(qp);
	s->pub.qp = qp;
}

void shim_id_drop_qp(struct shim_id *s)
{
	pthread_mutex_lock(&id_lock);
	s->softrnic_qp = NULL;
	pthread_mutex_unlock(&id_lock);
}

/*
 * Queue pairs that were destroyed with their ids. With rdma-core a queue pair exists until
 * ibv_destroy_qp(), which rping calls after it has destroyed the id. In the software RNIC
 * destroying the id also destroys the queue pair, so the queue pair's address is stored here. It is
 * stored before the memory is freed, because a queue pair of another thread may get the same
 * address.
 */
struct id_gone_qp {
	const struct ibv_qp *qp;
	struct id_gone_qp *next;
};
static struct id_gone_qp *id_gone;

int shim_id_remember_qp(const struct ibv_qp *qp)
{
	struct id_gone_qp *g = malloc(sizeof(*g));

	if (!g)
		return REFUSE_NEG(ENOMEM);
	g->qp = qp;
	pthread_mutex_lock(&id_lock);
	g->next = id_gone;
	id_gone = g;
	pthread_mutex_unlock(&id_lock);
	return 0;
}

bool shim_id_forget_qp(const struct ibv_qp *qp)
{
	struct id_gone_qp **at = &id_gone, *g;

	pthread_mutex_lock(&id_lock);
	while (*at && (*at)->qp != qp)
		at = &(*at)->next;
	g = *at;
	if (g)
		*at = g->next;
	pthread_mutex_unlock(&id_lock);
	free(g);
	return g;
}
