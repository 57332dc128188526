/* SPDX-License-Identifier: BSD-3-Clause */
/* id.c -- makes and destroys ids. */
#include "softrnic/verbs/id.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "softrnic/io/engine.h"
#include "softrnic/io/link_sockaddr.h"
#include "softrnic/softrnic.h"

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list all = LIST_INIT(all);

bool id_is_removed(const struct cmid *id)
{
	return id->generation != engine_generation();
}

int id_errno(int err)
{
	if (!err)
		return 0;
	errno = err;
	return -1;
}

static struct cmid *id_alloc(struct ibv_context *verbs, void *context, enum rdma_port_space ps)
{
	struct cmid *id = calloc(1, sizeof(*id));

	if (!id)
		return NULL;
	pthread_mutex_init(&id->lock, NULL);
	pthread_cond_init(&id->acked_cv, NULL);
	list_init(&id->requests.list);
	list_init(&id->request);
	qp_places_init(&id->places);
	id->generation = engine_generation();
	id->pub.context = context;
	id->pub.ps = ps;
	id->pub.qp_type = ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC;
	id->pub.verbs = verbs;
	id->pub.port_num = verbs ? 1 : 0;
	pthread_mutex_lock(&all_lock);
	list_add_tail(&all, &id->link);
	pthread_mutex_unlock(&all_lock);
	return id;
}

static void id_free(struct cmid *id)
{
	pthread_mutex_lock(&all_lock);
	list_del(&id->link);
	pthread_mutex_unlock(&all_lock);
	id_free_reserve(id);
	pthread_cond_destroy(&id->acked_cv);
	pthread_mutex_destroy(&id->lock);
	free(id);
}

int softrnic_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *context,
		       enum rdma_port_space ps)
{
	struct cmid *id;

	if (ps != RDMA_PS_TCP && ps != RDMA_PS_UDP)
		return id_errno(EPROTONOSUPPORT);
	if (!softrnic_context())
		return -1;
	id = id_alloc(NULL, context, ps);
	if (!id)
		return id_errno(ENOMEM);
	id->sync = !channel;
	if (!channel) {
		channel = softrnic_create_event_channel();
		if (!channel) {
			id_free(id);
			return -1;
		}
		id->own_chan = chan_of(channel);
	}
	id->pub.channel = channel;
	*out = &id->pub;
	return 0;
}

struct cmid *id_new_passive(struct cmid *listener, struct conn *conn)
{
	struct cmid *id = id_alloc(softrnic_context(), listener->pub.context, listener->pub.ps);

	if (!id)
		return NULL;
	if (id_reserve_events(id)) {
		id_free(id);
		return NULL;
	}
	id->passive = true;
	id->pub.channel = listener->pub.channel;
	id->pub.pd = listener->pub.pd;
	id->conn = conn;
	return id;
}

int id_need_conn(struct cmid *id)
{
	struct link_addr src = link_addr_from(&id->pub.route.addr.src_addr);
	struct link_addr dst = link_addr_from(&id->pub.route.addr.dst_addr);
	const struct link_ops *ops = link_of(&dst);
	int ret;

	if (id->conn)
		return 0;
	if (id_reserve_events(id))
		return -ENOMEM;
	ret = conn_new(STREAM_INITIATOR, ops && ops->connecting->same_host(&src, &dst),
		       id_on_stream_event, id, &id->conn);
	return ret ? ret : id_apply_settings(id);
}

static void id_release_conn(struct cmid *id)
{
	if (id->conn)
		conn_release(id->conn);
	id->conn = NULL; /* cleared last, because an event in progress reads it */
}

void id_drop(struct cmid *id)
{
	id_request_done(id);
	id_release_conn(id);
	id_free(id);
}

int softrnic_destroy_id(struct rdma_cm_id *pub)
{
	struct cmid *id = cmid_of(pub);

	if (pub->qp)
		id_destroy_qp(id);
	id_external_end(id);
	id_stop_listening(id);
	id_request_done(id);
	id_release_conn(id);
	id_quiesce(id);
	if (id->bound)
		id->bound->ops->close(id->bound);
	if (id->own_chan)
		softrnic_destroy_event_channel(&id->own_chan->pub);
	id_free(id);
	return 0;
}

/* Take the locks of all ids. They are released by the same thread, because only the thread that
 * locked a mutex may unlock it. */
void ids_atfork_prepare(void)
{
	id_requests_atfork_prepare();
	pthread_mutex_lock(&all_lock);
}

void ids_atfork_release(void)
{
	pthread_mutex_unlock(&all_lock);
	id_requests_atfork_release();
}

/* In a forked child every inherited id counts as removed. An event reports this on the id's
 * channel. */
void ids_atfork_child(void)
{
	struct list *it;

	ids_atfork_release();
	list_for_each (it, &all) {
		struct cmid *id = container_of(it, struct cmid, link);

		if (id->bound)
			id->bound->ops->forked(id->bound);
		id->bound = NULL;
		pthread_mutex_init(&id->lock, NULL);
		pthread_cond_init(&id->acked_cv, NULL);
		if (id->conn)
			id_post(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0, NULL);
	}
}
