/* SPDX-License-Identifier: BSD-3-Clause */
/* A device that is opened several times: each context has its own asynchronous events. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/unit.h"

#include "softrnic/softrnic.h"

/* A completion queue that is too small, and a queue pair that uses it. */
struct user {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static void user_open(struct user *u)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	u->ctx = softrnic_open_device();
	assert_non_null(u->ctx);
	assert_true(softrnic_owns_context(u->ctx));
	u->pd = softrnic_alloc_pd(u->ctx);
	u->cq = softrnic_create_cq(u->ctx, 1, NULL, NULL, 0);
	init.send_cq = init.recv_cq = u->cq;
	init.cap.max_recv_wr = 4;
	u->qp = softrnic_create_plain_qp(u->pd, &init);
	assert_non_null(u->qp);
	assert_int_equal(softrnic_modify_qp(u->qp, &attr,
					    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						    IBV_QP_ACCESS_FLAGS),
			 0);
}

static void user_free_objects(struct user *u)
{
	assert_int_equal(softrnic_destroy_plain_qp(u->qp), 0);
	assert_int_equal(softrnic_destroy_cq(u->cq), 0);
	assert_int_equal(softrnic_dealloc_pd(u->pd), 0);
}

/* Flush more receives than the queue has slots. */
static void user_overrun(struct user *u)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_recv_wr wr = {0}, *bad;

	for (int i = 0; i < 2; i++)
		assert_int_equal(u->ctx->ops.post_recv(u->qp, &wr, &bad), 0);
	assert_int_equal(softrnic_modify_qp(u->qp, &attr, IBV_QP_STATE), 0);
}

static bool has_event(const struct ibv_context *ctx)
{
	struct pollfd pfd = {.fd = ctx->async_fd, .events = POLLIN};

	return poll(&pfd, 1, 0) == 1;
}

static void contexts_differ(void **state)
{
	struct ibv_context *a = softrnic_open_device(), *b = softrnic_open_device();

	assert_ptr_not_equal(a, b);
	assert_ptr_not_equal(a, softrnic_context());
	assert_ptr_equal(a->device, b->device);
	assert_int_not_equal(a->async_fd, b->async_fd);
	assert_int_equal(softrnic_close_device(a), 0);
	assert_int_equal(softrnic_close_device(b), 0);
	/* the context of ids stays open */
	assert_int_equal(softrnic_close_device(softrnic_context()), 0);
	assert_int_not_equal(fcntl(softrnic_context()->async_fd, F_GETFD), -1);
}

static void events_go_to_the_context_of_their_object(void **state)
{
	struct ibv_async_event ev;
	struct user a, b;

	user_open(&a);
	user_open(&b);
	user_overrun(&b);
	assert_false(has_event(a.ctx));
	assert_false(has_event(softrnic_context()));
	assert_true(has_event(b.ctx));
	assert_int_equal(softrnic_get_async_event(b.ctx, &ev), 0);
	assert_int_equal(ev.event_type, IBV_EVENT_CQ_ERR);
	assert_ptr_equal(ev.element.cq, b.cq);
	softrnic_ack_async_event(&ev);
	user_overrun(&a);
	user_free_objects(&a);
	assert_false(has_event(a.ctx)); /* the object is destroyed, so its event is gone */
	user_free_objects(&b);
	assert_int_equal(softrnic_close_device(a.ctx), 0);
	assert_int_equal(softrnic_close_device(b.ctx), 0);
}

/* As in rdma-core, a program may close a context before its objects. */
static void a_context_may_be_closed_before_its_objects(void **state)
{
	struct user u;
	int fd;

	user_open(&u);
	fd = u.ctx->async_fd;
	assert_int_equal(softrnic_close_device(u.ctx), 0);
	user_overrun(&u); /* the context that is still open gets the event of the queue */
	assert_int_not_equal(fcntl(fd, F_GETFD), -1);
	user_free_objects(&u);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void *read_event(void *ctx)
{
	struct ibv_async_event ev;

	if (softrnic_get_async_event(ctx, &ev))
		return ctx;
	softrnic_ack_async_event(&ev);
	return NULL;
}

static void a_thread_that_waits_keeps_its_context(void **state)
{
	pthread_t thread;
	struct user u;
	void *failed;

	user_open(&u);
	assert_int_equal(pthread_create(&thread, NULL, read_event, u.ctx), 0);
	usleep(20000);
	assert_int_equal(softrnic_close_device(u.ctx), 0);
	user_overrun(&u);
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	user_free_objects(&u);
}

static void a_child_has_contexts_without_events(void **state)
{
	struct user u;
	int status;
	pid_t pid;

	user_open(&u);
	user_overrun(&u);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(has_event(u.ctx) || softrnic_close_device(u.ctx) || !softrnic_open_device());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(has_event(u.ctx));
	user_free_objects(&u);
	assert_int_equal(softrnic_close_device(u.ctx), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(contexts_differ),
		cmocka_unit_test(events_go_to_the_context_of_their_object),
		cmocka_unit_test(a_context_may_be_closed_before_its_objects),
		cmocka_unit_test(a_thread_that_waits_keeps_its_context),
		cmocka_unit_test(a_child_has_contexts_without_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
