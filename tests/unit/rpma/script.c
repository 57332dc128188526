/* SPDX-License-Identifier: BSD-3-Clause */
#include "script.h"

#include "rpma/flush.h"

/* This provider's assertions are part of the tests, so every build has them. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS_MAX = 8, CHANNEL_FD = 41 };

struct script script;

static struct ibv_device device;
static struct ibv_context context;
static struct ibv_pd pd;
static struct rdma_cm_event *queued[EVENTS_MAX];
static int event_count;

/* Uses neither malloc nor calloc: tests make these fail for the library, but the provider must not
 * fail. */
static void *object_new(size_t size)
{
	void *object;

	assert(!posix_memalign(&object, _Alignof(max_align_t), size));
	script.live++;
	return memset(object, 0, size);
}

static void object_free(void *object)
{
	assert(object);
	script.live--;
	free(object);
}

static struct rdma_event_channel *s_create_event_channel(void)
{
	struct rdma_event_channel *ch = object_new(sizeof(*ch));

	ch->fd = CHANNEL_FD;
	return ch;
}

static void s_destroy_event_channel(struct rdma_event_channel *ch)
{
	object_free(ch);
}

static int s_create_id(struct rdma_event_channel *ch, struct rdma_cm_id **id, void *ctx,
		       enum rdma_port_space ps)
{
	*id = object_new(sizeof(**id));
	(*id)->channel = ch;
	(*id)->verbs = &context;
	script.last_id = *id;
	return 0;
}

static int s_destroy_id(struct rdma_cm_id *id)
{
	assert(!id->qp && !id->event);
	for (int i = 0; i < event_count; i++) {
		struct rdma_cm_event *ev = queued[i];

		if (ev->id != id && ev->listen_id != id)
			continue;
		/* If the program did not take the request, its id is deleted with the listener. */
		if (ev->listen_id == id)
			object_free(ev->id);
		object_free(ev);
		queued[i--] = queued[--event_count];
	}
	object_free(id);
	return 0;
}

static int s_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *ch)
{
	assert(!id->event);
	id->channel = ch;
	return 0;
}

void script_event(struct rdma_cm_id *id, enum rdma_cm_event_type type, const void *pdata,
		  uint8_t len)
{
	struct rdma_cm_event *ev = object_new(sizeof(*ev));

	assert(event_count < EVENTS_MAX);
	ev->event = type;
	ev->id = id;
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		ev->listen_id = id;
		s_create_id(id->channel, &ev->id, NULL, RDMA_PS_TCP);
	}
	ev->param.conn.private_data = pdata;
	ev->param.conn.private_data_len = len;
	queued[event_count++] = ev;
}

static int s_get_cm_event(struct rdma_event_channel *ch, struct rdma_cm_event **ev)
{
	for (int i = 0; i < event_count; i++) {
		if (queued[i]->id->channel != ch)
			continue;
		*ev = queued[i];
		queued[i] = queued[--event_count];
		(*ev)->id->event = *ev;
		return 0;
	}
	errno = script.get_event_errno;
	return -1;
}

static int s_ack_cm_event(struct rdma_cm_event *ev)
{
	assert(ev->id->event == ev);
	ev->id->event = NULL;
	object_free(ev);
	return 0;
}

static int s_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
			 struct rdma_addrinfo **res)
{
	*res = object_new(sizeof(**res));
	return 0;
}

static void s_freeaddrinfo(struct rdma_addrinfo *res)
{
	object_free(res);
}

static int s_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	return 0;
}

static int s_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst,
			  int timeout_ms)
{
	return 0;
}

static int s_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	return 0;
}

static int s_listen(struct rdma_cm_id *id, int backlog)
{
	return 0;
}

static int s_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	script.connects++;
	script.param = *param;
	return 0;
}

static int s_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	script.accepts++;
	script.param = *param;
	return 0;
}

static int s_reject(struct rdma_cm_id *id, const void *pdata, uint8_t len)
{
	assert(!id->event);
	script.rejects++;
	script.reject_len = pdata ? len : 0;
	return 0;
}

static int s_disconnect(struct rdma_cm_id *id)
{
	return 0;
}

static int s_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	script.qp_attr = *attr;
	id->qp = object_new(sizeof(*id->qp));
	id->qp->context = &context;
	id->qp->qp_num = 7;
	return 0;
}

static void s_destroy_qp(struct rdma_cm_id *id)
{
	object_free(id->qp);
	id->qp = NULL;
}

static int s_set_limits(struct rdma_cm_id *id, int connect_ms, int liveness_ms)
{
	script.connect_ms = connect_ms;
	script.liveness_ms = liveness_ms;
	return script.limits_err;
}

static int s_set_owner(struct rdma_cm_id *id, const void *name, size_t len)
{
	script.owner_len = len;
	memcpy(script.owner, name, len);
	return script.limits_err;
}

static int s_cancel_connect(struct rdma_cm_id *id)
{
	script.cancels++;
	return script.cancel_err;
}

static void s_abandon(struct rdma_cm_id *id)
{
}

static int s_wait_cm_event(struct rdma_event_channel *ch, int timeout_ms, struct rdma_cm_event **ev)
{
	int ret = s_get_cm_event(ch, ev);

	script.timeout_ms = timeout_ms;
	if (ret && errno == EAGAIN)
		errno = ETIMEDOUT;
	return ret;
}

static int s_query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *in,
			     struct ibv_device_attr_ex *attr)
{
	attr->device_cap_flags_ex = script.device_caps;
	return 0;
}

static struct ibv_pd *s_alloc_pd(struct ibv_context *ctx)
{
	struct ibv_pd *one = object_new(sizeof(*one));

	one->context = ctx;
	return one;
}

static int s_dealloc_pd(struct ibv_pd *one)
{
	object_free(one);
	return 0;
}

static struct ibv_mr *s_reg_mr(struct ibv_pd *of, void *addr, size_t len, int access)
{
	struct ibv_mr *mr;

	script.access = access;
	if (script.reg_mr_err_if_pmem && access & VEXT_ACCESS_FLUSH_PERSISTENT) {
		errno = script.reg_mr_err_if_pmem;
		return NULL;
	}
	if (script.reg_mr_err_unless_odp && !(access & IBV_ACCESS_ON_DEMAND)) {
		errno = script.reg_mr_err_unless_odp;
		return NULL;
	}
	mr = object_new(sizeof(*mr));
	*mr = (struct ibv_mr){.context = &context,
			      .pd = of,
			      .addr = addr,
			      .length = len,
			      .lkey = 0x51525354,
			      .rkey = 0x61626364};
	return mr;
}

static int s_dereg_mr(struct ibv_mr *mr)
{
	object_free(mr);
	return 0;
}

static int s_advise_mr(struct ibv_pd *of, enum ibv_advise_mr_advice advice, uint32_t flags,
		       struct ibv_sge *sges, uint32_t num_sge)
{
	script.posts++;
	script.sge = sges[0];
	return script.advise_err;
}

static struct ibv_comp_channel *s_create_comp_channel(struct ibv_context *ctx)
{
	struct ibv_comp_channel *ch = object_new(sizeof(*ch));

	ch->fd = CHANNEL_FD + script.live;
	return ch;
}

static int s_destroy_comp_channel(struct ibv_comp_channel *ch)
{
	assert(!ch->refcnt);
	object_free(ch);
	return 0;
}

static struct ibv_cq *s_create_cq(struct ibv_context *ctx, int cqe, void *cq_context,
				  struct ibv_comp_channel *ch, int comp_vector)
{
	struct ibv_cq *cq = object_new(sizeof(*cq));

	script.cqe = cqe;
	cq->context = ctx;
	cq->channel = ch;
	ch->refcnt++;
	return cq;
}

static int s_destroy_cq(struct ibv_cq *cq)
{
	assert(!cq->comp_events_completed);
	cq->channel->refcnt--;
	object_free(cq);
	return 0;
}

/* Unlike in rdma-core, comp_events_completed counts the events that are not yet acknowledged. */
static int s_get_cq_event(struct ibv_comp_channel *ch, struct ibv_cq **cq, void **cq_context)
{
	if (!script.announce) {
		errno = EAGAIN;
		return -1;
	}
	*cq = script.announce;
	(*cq)->comp_events_completed++;
	return 0;
}

static int s_wait_cq_event(struct ibv_comp_channel *ch, int timeout_ms, struct ibv_cq **cq,
			   void **cq_context)
{
	script.timeout_ms = timeout_ms;
	if (!script.announce) {
		errno = ETIMEDOUT;
		return -1;
	}
	return s_get_cq_event(ch, cq, cq_context);
}

static void s_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	cq->comp_events_completed -= nevents;
}

static struct ibv_srq *s_create_srq(struct ibv_pd *of, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq *srq = object_new(sizeof(*srq));

	script.srq_attr = *attr;
	srq->context = &context;
	return srq;
}

static int s_destroy_srq(struct ibv_srq *srq)
{
	object_free(srq);
	return 0;
}

static int s_get_async_event(struct ibv_context *ctx, struct ibv_async_event *ev)
{
	errno = EAGAIN;
	return -1;
}

static void s_ack_async_event(struct ibv_async_event *ev)
{
}

static void see_flush(const struct vext_wr *w)
{
	script.flushes++;
	script.flush.wr_id = w->wr.wr_id;
	script.flush.send_flags = w->wr.send_flags;
	script.flush.rkey = w->wr.wr.rdma.rkey;
	script.flush.addr = w->wr.wr.rdma.remote_addr;
	script.flush.len = w->len;
	script.flush.type = w->type;
}

static void see_atomic_write(const struct vext_wr *w)
{
	script.atomic.wr_id = w->wr.wr_id;
	script.atomic.send_flags = w->wr.send_flags;
	script.atomic.rkey = w->wr.wr.rdma.rkey;
	script.atomic.addr = w->wr.wr.rdma.remote_addr;
	memcpy(script.atomic.bytes, w->bytes, sizeof(script.atomic.bytes));
}

static int s_post_list(struct ibv_qp *qp, const struct vext_wr *wrs, int n, int *posted)
{
	assert(n <= SCRIPT_LIST_MAX);
	script.posts++;
	script.listed = n;
	for (int i = 0; i < n; i++) {
		const struct ibv_send_wr *wr = &wrs[i].wr;

		script.list[i] = wrs[i];
		for (int k = 0; k < wr->num_sge; k++)
			script.segs[i][k] = wr->sg_list[k];
		if (wr->send_flags & IBV_SEND_INLINE)
			memcpy(&script.inlined[i], (void *)(uintptr_t)wr->sg_list[0].addr, 8);
		if (wrs[i].op == VEXT_OP_FLUSH)
			see_flush(&wrs[i]);
		else if (wrs[i].op == VEXT_OP_ATOMIC_WRITE)
			see_atomic_write(&wrs[i]);
	}
	*posted = script.post_err ? script.post_taken : n;
	return script.post_err;
}

static int s_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	script.posts++;
	script.send = *wr;
	for (int k = 0; k < wr->num_sge; k++)
		script.segs[0][k] = wr->sg_list[k];
	if (wr->num_sge)
		script.sge = wr->sg_list[0];
	if (wr->send_flags & IBV_SEND_INLINE)
		memcpy(&script.inlined[0], (void *)(uintptr_t)wr->sg_list[0].addr, 8);
	return script.post_err;
}

static int s_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	script.posts++;
	script.recv = *wr;
	if (wr->num_sge)
		script.sge = wr->sg_list[0];
	return script.post_err;
}

static int s_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return s_post_recv(NULL, wr, bad);
}

static int s_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	for (int i = 0; i < script.polled && i < num_entries; i++)
		wc[i] = (struct ibv_wc){.wr_id = (uint64_t)i};
	return script.polled;
}

static int s_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return 0;
}

static bool s_owns_context(const struct ibv_context *ctx)
{
	return ctx == &context;
}

static enum vext_rejection s_rejection(const struct rdma_cm_event *ev)
{
	return ev->status == -ECONNREFUSED ? VEXT_REJECTION_NO_LISTENER : VEXT_REJECTION_REFUSED;
}

static bool s_gives_reasons(const struct ibv_context *ctx)
{
	return false;
}

static bool s_serves(const char *addr, enum provider_role role, char *why, size_t why_len)
{
	return true;
}

static const char *s_event_str(enum rdma_cm_event_type event)
{
	return "scripted event";
}

static int s_read_sink_access(const struct ibv_context *ctx)
{
	return script.read_sink_access;
}

static uint32_t s_qp_caps(struct ibv_qp *qp)
{
	return script.caps_unknown ? 0 : script.caps | VEXT_CAP_KNOWN;
}

static int s_qp_counters(struct ibv_qp *qp, const char *const **names, uint64_t *values, int max)
{
	static const char *const ordinals[] = {"first", "second", "third"};

	*names = ordinals;
	for (int i = 0; i < script.counters && i < max; i++)
		values[i] = (uint64_t)i + 1;
	return script.counters;
}

void script_reset(void)
{
	script = (struct script){.get_event_errno = EAGAIN};
	event_count = 0;
	device.transport_type = IBV_TRANSPORT_IWARP;
	context = (struct ibv_context){.device = &device};
	context.ops.post_send = s_post_send;
	context.ops.post_recv = s_post_recv;
	context.ops.post_srq_recv = s_post_srq_recv;
	context.ops.poll_cq = s_poll_cq;
	context.ops.req_notify_cq = s_req_notify_cq;
	pd.context = &context;
}

struct rpma_peer script_peer(const struct provider *prov)
{
	return (struct rpma_peer){.prov = prov,
				  .pd = &pd,
				  .can.send_sge = RPMA_SEND_SEGMENTS_MAX,
				  .lock = PTHREAD_MUTEX_INITIALIZER};
}

int script_peer_end(struct rpma_peer *peer)
{
	flush_sink_put(peer->flush_sink);
	peer->flush_sink = NULL;
	return script.live;
}

#define ROW(ret, name, ...) .name = s_##name,
const struct provider provider_script = {.name = "script",
					 .owns_context = s_owns_context,
					 .serves = s_serves,
					 .event_str = s_event_str,
					 .read_sink_access = s_read_sink_access,
					 .gives_reasons = s_gives_reasons,
					 .rejection = s_rejection,
					 .qp_caps = s_qp_caps,
					 .qp_counters = s_qp_counters,
					 PROVIDER_CALLS(ROW)};
