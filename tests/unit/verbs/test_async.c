/* SPDX-License-Identifier: BSD-3-Clause */
/* Asynchronous events that the program has fetched keep their object alive until it acknowledges
 * them. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/unit.h"

#include "softrnic/rnic/srq.h"
#include "softrnic/softrnic.h"

enum { WAIT_MS = 50, FOREVER_MS = 10000, CHILD_S = 10 };

/* One object of each type. The queue pairs share the receive queue, so that each reports its last
 * receive when it moves to ERR. */
struct objects {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *rc, *ud;
};

static struct ibv_qp *make_qp(struct objects *o, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = {.qp_type = type,
					.send_cq = o->cq,
					.recv_cq = o->cq,
					.srq = o->srq,
					.cap = {.max_send_wr = 1, .max_send_sge = 1}};
	struct ibv_qp *qp = softrnic_create_plain_qp(o->pd, &attr);

	assert_non_null(qp);
	return qp;
}

static void make_objects(struct objects *o)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};

	o->pd = softrnic_alloc_pd(o->ctx);
	o->cq = softrnic_create_cq(o->ctx, 16, NULL, NULL, 0);
	o->srq = softrnic_create_srq(o->pd, &attr);
	assert_non_null(o->srq);
	o->rc = make_qp(o, IBV_QPT_RC);
	o->ud = make_qp(o, IBV_QPT_UD);
}

static int closed(void **state)
{
	struct objects *o = *state;

	if (o->rc)
		assert_int_equal(softrnic_destroy_plain_qp(o->rc), 0);
	if (o->ud)
		assert_int_equal(softrnic_destroy_plain_qp(o->ud), 0);
	if (o->srq)
		assert_int_equal(softrnic_destroy_srq(o->srq), 0);
	assert_int_equal(softrnic_destroy_cq(o->cq), 0);
	assert_int_equal(softrnic_dealloc_pd(o->pd), 0);
	assert_int_equal(softrnic_close_device(o->ctx), 0);
	return 0;
}

static int opened(void **state)
{
	static struct objects o;

	memset(&o, 0, sizeof(o));
	o.ctx = softrnic_open_device();
	assert_non_null(o.ctx);
	make_objects(&o);
	*state = &o;
	return 0;
}

/* --- events ---------------------------------------------------------------------------------- */

static bool has_event_within(struct ibv_context *ctx, int ms)
{
	struct pollfd pfd = {.fd = ctx->async_fd, .events = POLLIN};

	return poll(&pfd, 1, ms) == 1;
}

static struct ibv_async_event fetch(struct ibv_context *ctx, enum ibv_event_type type,
				    const void *element)
{
	struct ibv_async_event ev;

	assert_true(has_event_within(ctx, FOREVER_MS));
	assert_int_equal(softrnic_get_async_event(ctx, &ev), 0);
	assert_int_equal(ev.event_type, type);
	assert_ptr_equal(ev.element.qp, element);
	return ev;
}

static void move(struct ibv_qp *qp, enum ibv_qp_state to, int more)
{
	struct ibv_qp_attr attr = {.qp_state = to, .port_num = 1, .qkey = 1};

	assert_int_equal(softrnic_modify_qp(qp, &attr, IBV_QP_STATE | more), 0);
}

/* Causes one event: the queue pair takes no more receives from its shared queue. */
static void fail_qp(struct ibv_qp *qp)
{
	move(qp, IBV_QPS_RESET, 0);
	move(qp, IBV_QPS_INIT,
	     IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		     (qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
	move(qp, IBV_QPS_ERR, 0);
}

/* --- destroying an object in another thread ---------------------------------------------------- */

struct destroyer {
	pthread_t thread;
	void *object;
	int (*destroy)(void *object);
	atomic_bool is_done;
};

static void *destroyer_run(void *arg)
{
	struct destroyer *d = arg;
	int ret = d->destroy(d->object);

	atomic_store(&d->is_done, true);
	return ret ? d : NULL;
}

static void destroyer_start(struct destroyer *d, int (*destroy)(void *), void *object)
{
	d->object = object;
	d->destroy = destroy;
	atomic_init(&d->is_done, false);
	assert_int_equal(pthread_create(&d->thread, NULL, destroyer_run, d), 0);
}

static void destroyer_is_waiting(struct destroyer *d)
{
	usleep(WAIT_MS * 1000);
	assert_false(atomic_load(&d->is_done));
}

static void destroyer_join(struct destroyer *d)
{
	void *failed;

	assert_int_equal(pthread_join(d->thread, &failed), 0);
	assert_null(failed);
}

static int destroy_qp(void *qp)
{
	return softrnic_destroy_plain_qp(qp);
}

static int destroy_srq(void *srq)
{
	return softrnic_destroy_srq(srq);
}

static int destroy_cq(void *cq)
{
	return softrnic_destroy_cq(cq);
}

static int destroy_id(void *id)
{
	softrnic_destroy_qp(id);
	return 0;
}

/* --- tests ------------------------------------------------------------------------------------- */

static void wait_for_acks(struct objects *o, struct ibv_qp **qp)
{
	struct ibv_async_event first, second;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct destroyer d;

	fail_qp(*qp);
	fail_qp(*qp);
	first = fetch(o->ctx, IBV_EVENT_QP_LAST_WQE_REACHED, *qp);
	second = fetch(o->ctx, IBV_EVENT_QP_LAST_WQE_REACHED, *qp);
	destroyer_start(&d, destroy_qp, *qp);
	destroyer_is_waiting(&d);
	softrnic_ack_async_event(&first);
	destroyer_is_waiting(&d);
	/* until the acknowledgement the queue pair works, but raises no more events */
	assert_int_equal(softrnic_query_qp(*qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_ERR);
	fail_qp(*qp);
	assert_false(has_event_within(o->ctx, 0));
	softrnic_ack_async_event(&second);
	destroyer_join(&d);
	*qp = NULL;
}

static void a_queue_pair_waits(void **state)
{
	struct objects *o = *state;

	wait_for_acks(o, &o->rc);
}

static void a_queue_pair_for_datagrams_waits(void **state)
{
	struct objects *o = *state;

	wait_for_acks(o, &o->ud);
}

static void a_queue_pair_of_an_id_waits(void **state)
{
	struct sockaddr_in loopback = {.sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rdma_event_channel *channel = softrnic_create_event_channel();
	struct ibv_context *ctx = softrnic_context();
	struct ibv_pd *pd = softrnic_alloc_pd(ctx);
	struct ibv_srq_init_attr shared = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq *srq = softrnic_create_srq(pd, &shared);
	struct ibv_cq *cq = softrnic_create_cq(ctx, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_RC,
					   .send_cq = cq,
					   .recv_cq = cq,
					   .srq = srq,
					   .comp_mask = IBV_QP_INIT_ATTR_PD,
					   .pd = pd};
	struct ibv_async_event ev;
	struct rdma_cm_id *id;
	struct destroyer d;

	assert_int_equal(softrnic_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(softrnic_bind_addr(id, (struct sockaddr *)&loopback), 0);
	assert_int_equal(softrnic_create_qp_ex(id, &attr), 0);
	move(id->qp, IBV_QPS_ERR, 0);
	ev = fetch(ctx, IBV_EVENT_QP_LAST_WQE_REACHED, id->qp);
	destroyer_start(&d, destroy_id, id);
	destroyer_is_waiting(&d);
	softrnic_ack_async_event(&ev);
	destroyer_join(&d);
	assert_int_equal(softrnic_destroy_id(id), 0);
	softrnic_destroy_event_channel(channel);
	assert_int_equal(softrnic_destroy_cq(cq), 0);
	assert_int_equal(softrnic_destroy_srq(srq), 0);
	assert_int_equal(softrnic_dealloc_pd(pd), 0);
}

static void a_shared_receive_queue_waits(void **state)
{
	struct objects *o = *state;
	struct srq *srq = container_of(o->srq, struct srq, ibv);
	struct ibv_async_event ev;
	struct destroyer d;

	srq->limit_reached(srq);
	ev = fetch(o->ctx, IBV_EVENT_SRQ_LIMIT_REACHED, o->srq);
	assert_int_equal(softrnic_destroy_plain_qp(o->rc), 0);
	assert_int_equal(softrnic_destroy_plain_qp(o->ud), 0);
	o->rc = o->ud = NULL;
	destroyer_start(&d, destroy_srq, o->srq);
	destroyer_is_waiting(&d);
	softrnic_ack_async_event(&ev);
	destroyer_join(&d);
	o->srq = NULL;
}

/* Overrun a completion queue of one slot with two flushed receives. */
static struct ibv_cq *overrun_cq(struct objects *o)
{
	struct ibv_cq *cq = softrnic_create_cq(o->ctx, 1, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .cap = {.max_recv_wr = 2}};
	struct ibv_qp *qp = softrnic_create_plain_qp(o->pd, &attr);
	struct ibv_recv_wr wr = {0}, *bad;

	assert_non_null(qp);
	move(qp, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	for (int i = 0; i < 2; i++)
		assert_int_equal(o->ctx->ops.post_recv(qp, &wr, &bad), 0);
	move(qp, IBV_QPS_ERR, 0);
	assert_int_equal(softrnic_destroy_plain_qp(qp), 0);
	return cq;
}

static void a_completion_queue_waits(void **state)
{
	struct objects *o = *state;
	struct ibv_cq *cq = overrun_cq(o);
	struct ibv_async_event ev = fetch(o->ctx, IBV_EVENT_CQ_ERR, cq);
	struct destroyer d;

	destroyer_start(&d, destroy_cq, cq);
	destroyer_is_waiting(&d);
	softrnic_ack_async_event(&ev);
	destroyer_join(&d);
}

/* The event of one queue pair does not delay the destruction of another. */
static void only_the_object_of_the_event_waits(void **state)
{
	struct objects *o = *state;
	struct ibv_async_event ev;

	fail_qp(o->rc);
	ev = fetch(o->ctx, IBV_EVENT_QP_LAST_WQE_REACHED, o->rc);
	assert_int_equal(softrnic_destroy_plain_qp(o->ud), 0);
	o->ud = NULL;
	softrnic_ack_async_event(&ev);
}

/* Many threads fetch and acknowledge events of one queue pair, and the last ones while it is
 * destroyed. */
static void *fetch_and_acknowledge(void *ctx)
{
	struct ibv_async_event ev;

	if (softrnic_get_async_event(ctx, &ev))
		return ctx;
	usleep(1000);
	softrnic_ack_async_event(&ev);
	return NULL;
}

static void threads_share_the_events(void **state)
{
	struct objects *o = *state;
	pthread_t threads[8];
	void *failed;

	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, fetch_and_acknowledge, o->ctx),
				 0);
	for (int i = 0; i < 8; i++)
		fail_qp(o->rc);
	while (has_event_within(o->ctx, 0))
		usleep(100);
	assert_int_equal(softrnic_destroy_plain_qp(o->rc), 0);
	o->rc = NULL;
	for (int i = 0; i < 8; i++) {
		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
}

/* As with rdma-core, events of ports and of the device need no acknowledgement. */
static void events_of_ports_may_be_acknowledged(void **state)
{
	struct ibv_async_event ev = {.event_type = IBV_EVENT_PORT_ERR, .element.port_num = 1};

	softrnic_ack_async_event(&ev);
}

/* A second acknowledgement of one event does not count for another event. */
static void one_event_is_acknowledged_once(void **state)
{
	struct objects *o = *state;
	struct ibv_async_event first, second;
	struct destroyer d;

	fail_qp(o->rc);
	fail_qp(o->ud);
	first = fetch(o->ctx, IBV_EVENT_QP_LAST_WQE_REACHED, o->rc);
	second = fetch(o->ctx, IBV_EVENT_QP_LAST_WQE_REACHED, o->ud);
	softrnic_ack_async_event(&first);
	softrnic_ack_async_event(&first);
	destroyer_start(&d, destroy_qp, o->ud);
	destroyer_is_waiting(&d);
	softrnic_ack_async_event(&second);
	destroyer_join(&d);
	o->ud = NULL;
}

/* --- threads that are cancelled ---------------------------------------------------------------- */

static void a_thread_that_destroys_is_not_cancelled(void **state)
{
	struct objects *o = *state;
	struct ibv_async_event ev;
	struct destroyer d;

	fail_qp(o->rc);
	ev = fetch(o->ctx, IBV_EVENT_QP_LAST_WQE_REACHED, o->rc);
	destroyer_start(&d, destroy_qp, o->rc);
	usleep(WAIT_MS * 1000);
	assert_int_equal(pthread_cancel(d.thread), 0);
	destroyer_is_waiting(&d);
	softrnic_ack_async_event(&ev);
	assert_int_equal(pthread_join(d.thread, NULL), 0);
	o->rc = NULL;
	fail_qp(o->ud); /* waits for ever if the context's events are still locked */
}

static void *fetch_until_cancelled(void *ctx)
{
	struct ibv_async_event ev;
	int state;

	while (!softrnic_get_async_event(ctx, &ev)) {
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
		softrnic_ack_async_event(&ev);
		pthread_setcancelstate(state, &state);
	}
	return ctx;
}

/* Threads are cancelled about when an event arrives. */
static void a_thread_that_fetches_may_be_cancelled_at_any_time(void **state)
{
	struct objects *o = *state;

	for (int i = 0; i < 500; i++) {
		pthread_t thread;
		void *result;

		assert_int_equal(pthread_create(&thread, NULL, fetch_until_cancelled, o->ctx), 0);
		if (i % 2)
			sched_yield();
		fail_qp(o->ud);
		assert_int_equal(pthread_cancel(thread), 0);
		fail_qp(o->rc);
		assert_int_equal(pthread_join(thread, &result), 0);
		assert_ptr_equal(result, PTHREAD_CANCELED);
	}
}

/* --- a forked child ---------------------------------------------------------------------------- */

/* The thread that acknowledges exists only in the parent. Queues of the parent serve no new queue
 * pair, but the context does. */
static int child(struct objects *o)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .send_cq = o->cq, .recv_cq = o->cq};
	struct objects own = {.ctx = o->ctx};
	struct ibv_async_event ev;

	alarm(CHILD_S);
	if (softrnic_destroy_plain_qp(o->rc) || softrnic_destroy_plain_qp(o->ud))
		return 1;
	if (softrnic_create_plain_qp(o->pd, &attr) || errno != ENODEV)
		return 2;
	make_objects(&own);
	fail_qp(own.ud);
	ev = fetch(own.ctx, IBV_EVENT_QP_LAST_WQE_REACHED, own.ud);
	softrnic_ack_async_event(&ev);
	return softrnic_destroy_plain_qp(own.ud);
}

static void a_child_does_not_wait_for_its_parent(void **state)
{
	struct objects *o = *state;
	struct ibv_async_event ev;
	int status;
	pid_t pid;

	fail_qp(o->rc);
	ev = fetch(o->ctx, IBV_EVENT_QP_LAST_WQE_REACHED, o->rc);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(child(o));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	softrnic_ack_async_event(&ev);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, opened, closed)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_queue_pair_waits),
		TEST(a_queue_pair_for_datagrams_waits),
		TEST(a_queue_pair_of_an_id_waits),
		TEST(a_shared_receive_queue_waits),
		TEST(a_completion_queue_waits),
		TEST(only_the_object_of_the_event_waits),
		TEST(threads_share_the_events),
		TEST(events_of_ports_may_be_acknowledged),
		TEST(one_event_is_acknowledged_once),
		TEST(a_thread_that_destroys_is_not_cancelled),
		TEST(a_thread_that_fetches_may_be_cancelled_at_any_time),
		TEST(a_child_does_not_wait_for_its_parent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
