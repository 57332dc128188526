/* SPDX-License-Identifier: BSD-3-Clause */
/* face.c -- faces come and go; and which device stands behind one. */
#include "interposer/face.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>

#include "softrnic/softrnic.h"

/* As long as rdma_cm's own look-ups on a local network take at most. */
enum { PROBE_TIMEOUT_MS = 1000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct face *all;

/* A child must not find the lock held by a thread that is not there. */
static void lock_all(void)
{
	pthread_mutex_lock(&lock);
}

static void unlock_all(void)
{
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void follow_forks(void)
{
	pthread_atfork(lock_all, unlock_all, unlock_all);
}

static void face_enlist(struct face *f)
{
	pthread_mutex_lock(&lock);
	f->next = all;
	all = f;
	pthread_mutex_unlock(&lock);
}

static void face_delist(struct face *f)
{
	struct face **at = &all;

	pthread_mutex_lock(&lock);
	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	pthread_mutex_unlock(&lock);
}

/* What every id has that no program made a domain for. It lives as long as the process. */
static struct ibv_pd *default_pd(void)
{
	static struct ibv_pd *pd;
	/* Its locks are outer, when a fork takes all. */
	struct ibv_context *ctx = softrnic_context();

	pthread_mutex_lock(&lock);
	if (!pd)
		pd = softrnic_alloc_pd(ctx);
	pthread_mutex_unlock(&lock);
	return pd;
}

/* The queue pair, its queues and their channels are the business of queues.c. */
void face_sync(struct face *f)
{
	const struct rdma_cm_id *inner = f->inner;

	f->pub.verbs = inner->verbs;
	f->pub.route = inner->route;
	f->pub.port_num = inner->port_num;
	if (inner->verbs && !f->pub.pd)
		f->pub.pd = f->words->hard ? inner->pd : default_pd();
}

static struct face *face_new(struct face_chan *ch, void *context, enum rdma_port_space ps)
{
	struct face *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->words = &soft_words;
	f->pub.channel = &ch->pub;
	f->pub.context = context;
	f->pub.ps = ps;
	f->pub.qp_type = ps == RDMA_PS_TCP ? IBV_QPT_RC : IBV_QPT_UD;
	face_enlist(f);
	return f;
}

void face_free(struct face *f)
{
	face_delist(f);
	if (f->own_chan)
		rdma_destroy_event_channel(&f->own_chan->pub);
	free(f->ep_attr);
	free(f);
}

/*
 * Datagram port spaces exist, as on any iWARP device, up to the moment when a datagram queue pair
 * is asked for.
 */
static int ps_check(enum rdma_port_space ps)
{
	switch (ps) {
	case RDMA_PS_TCP:
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		return 0;
	default:
		return REFUSE_NEG(EPROTONOSUPPORT);
	}
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space ps)
{
	struct rdma_event_channel *ch = channel ? channel : rdma_create_event_channel();
	struct face *f = NULL;

	if (ch && !ps_check(ps))
		f = face_new(face_chan_of(ch), context, ps);
	if (f)
		f->own_chan = channel ? NULL : face_chan_of(ch);
	if (f && !softrnic_create_id(face_chan_of(ch)->soft, &f->inner, f, RDMA_PS_TCP)) {
		*id = &f->pub;
		return 0;
	}
	if (f)
		face_free(f);
	else if (ch && !channel)
		rdma_destroy_event_channel(ch);
	return -1;
}

struct face *face_new_passive(struct face *listener, struct face_chan *ch, struct rdma_cm_id *inner)
{
	struct face *f = face_new(ch, listener->pub.context, listener->pub.ps);

	if (!f)
		return NULL;
	f->words = listener->words;
	f->inner = inner;
	f->pub.pd = listener->pub.pd;
	inner->context = f;
	face_sync(f);
	return f;
}

/* Whose queue pair verbs' own call is about: an id that nobody sees, or one of the program's. */
static struct face *face_of_qp(const struct ibv_qp *qp)
{
	struct face *f;

	pthread_mutex_lock(&lock);
	for (f = all; f && f->soft_qp != qp; f = f->next)
		;
	pthread_mutex_unlock(&lock);
	return f;
}

void face_set_qp(struct face *f, struct ibv_qp *qp)
{
	pthread_mutex_lock(&lock);
	f->soft_qp = f->words->hard ? NULL : qp;
	pthread_mutex_unlock(&lock);
	if (qp && !f->words->hard)
		face_qp_take_gone(qp); /* of another, which was where this one is */
	f->pub.qp = qp;
}

/*
 * rdma-core leaves an id's queue pair to ibv_destroy_qp(), and rping calls that after the id is
 * gone. Ours ends with its id, and its place is remembered: before it is free, as another thread's
 * queue pair may be there next.
 */
struct gone_qp {
	const struct ibv_qp *qp;
	struct gone_qp *next;
};
static struct gone_qp *gone;

static int remember_gone(const struct ibv_qp *qp)
{
	struct gone_qp *g = malloc(sizeof(*g));

	if (!g)
		return REFUSE_NEG(ENOMEM);
	g->qp = qp;
	pthread_mutex_lock(&lock);
	g->next = gone;
	gone = g;
	pthread_mutex_unlock(&lock);
	return 0;
}

bool face_qp_take_gone(const struct ibv_qp *qp)
{
	struct gone_qp **at = &gone, *g;

	pthread_mutex_lock(&lock);
	while (*at && (*at)->qp != qp)
		at = &(*at)->next;
	g = *at;
	if (g)
		*at = g->next;
	pthread_mutex_unlock(&lock);
	free(g);
	return g;
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	struct face *f = face_of(id);
	WORDS_SCOPE w = f->words;
	struct ibv_qp *qp = w->hard ? NULL : id->qp;
	int ret;

	if (qp && !f->hidden && remember_gone(qp))
		return -1;
	face_ack_event(id);
	if (qp)
		rdma_destroy_qp(id);
	ret = w->cm.destroy_id(f->inner);
	if (!ret)
		face_free(f);
	return ret;
}

void face_drop_qp(struct ibv_qp *qp)
{
	struct face *f = face_of_qp(qp);

	if (f && f->hidden)
		rdma_destroy_id(&f->pub);
	else if (f)
		rdma_destroy_qp(&f->pub);
}

/* An id has a device once it is bound, to whatever address. */
struct ibv_qp *face_make_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct sockaddr_in any = {.sin_family = AF_INET};
	struct rdma_cm_id *id;
	struct face *f;
	int err;

	if (!attr->send_cq || !attr->recv_cq)
		return REFUSE_NUL(EINVAL);
	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP))
		return NULL;
	f = face_of(id);
	f->hidden = true;
	if (!softrnic_bind_addr(f->inner, (struct sockaddr *)&any)) {
		face_sync(f);
		if (!rdma_create_qp(id, pd, attr))
			return id->qp;
	}
	err = errno;
	rdma_destroy_id(id);
	return REFUSE_NUL(err);
}

static bool addr_is_any(const struct sockaddr *sa)
{
	if (sa->sa_family == AF_INET)
		return ((const struct sockaddr_in *)sa)->sin_addr.s_addr == htonl(INADDR_ANY);
	return sa->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)sa)->sin6_addr);
}

static bool hard_resolves(const struct words *hard, struct rdma_event_channel *ch,
			  struct rdma_cm_id *id, struct sockaddr *local, struct sockaddr *remote)
{
	struct pollfd readable = {.fd = ch->fd, .events = POLLIN};
	struct rdma_cm_event *ev;
	bool yes;

	if (hard->cm.resolve_addr(id, local, remote, PROBE_TIMEOUT_MS) ||
	    poll(&readable, 1, 2 * PROBE_TIMEOUT_MS) != 1 || hard->cm.get_cm_event(ch, &ev))
		return false;
	yes = ev->event == RDMA_CM_EVENT_ADDR_RESOLVED && id->verbs;
	hard->cm.ack_cm_event(ev);
	return yes;
}

/* Asked with an id of its own, because an id keeps what it was bound to. */
static bool hard_serves(const struct words *hard, struct sockaddr *local, struct sockaddr *remote)
{
	struct rdma_event_channel *ch = hard->cm.create_event_channel();
	struct rdma_cm_id *id = NULL;
	bool yes = false;

	if (ch && !hard->cm.create_id(ch, &id, NULL, RDMA_PS_TCP))
		yes = remote ? hard_resolves(hard, ch, id, local, remote)
			     : !hard->cm.bind_addr(id, local) && id->verbs;
	if (id)
		hard->cm.destroy_id(id);
	if (ch)
		hard->cm.destroy_event_channel(ch);
	return yes;
}

/* A wildcard address belongs to every device and so chooses none. */
void face_choose(struct face *f, struct sockaddr *local, struct sockaddr *remote)
{
	const struct words *hard = hard_words();
	struct face_chan *ch = face_chan_of(f->pub.channel);
	struct rdma_cm_id *inner;

	if (!hard || f->words == hard || f->inner->verbs || !ch->hard)
		return;
	if ((!remote && addr_is_any(local)) || !hard_serves(hard, local, remote))
		return;
	if (hard->cm.create_id(ch->hard, &inner, f, f->pub.ps))
		return;
	softrnic_destroy_id(f->inner);
	f->inner = inner;
	f->words = hard;
}
