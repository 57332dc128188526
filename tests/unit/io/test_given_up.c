/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_given_up.c -- a program connects again as soon as it polls the first failed completion. At
 * that moment the thread that closes the former connection has reported no event yet, and has sent
 * the peer neither a FIN nor a RST. The target must still close the former connection before it
 * establishes the next one.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "ends.h"
#include "base/list.h"
#include "softrnic/rnic/cq.h"

#define LIMIT_S 20

/* The thread that pushes the first failed completion to this queue stops after the push. */
static struct {
	_Atomic(struct cq *) cq; /* threads of the engine also read this pointer */
	sem_t pushed, go_on;
} gate;

static void wait_for(sem_t *sem)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += LIMIT_S;
	while (sem_timedwait(sem, &until))
		assert_int_equal(errno, EINTR);
}

int __real_cq_push(struct cq *cq, const struct ibv_wc *wc, bool solicited, atomic_uint *n);
int __wrap_cq_push(struct cq *cq, const struct ibv_wc *wc, bool solicited, atomic_uint *n);
int __wrap_cq_push(struct cq *cq, const struct ibv_wc *wc, bool solicited, atomic_uint *n)
{
	int ret = __real_cq_push(cq, wc, solicited, n);

	if (wc->status == IBV_WC_SUCCESS || cq != gate.cq)
		return ret;
	gate.cq = NULL;
	sem_post(&gate.pushed);
	wait_for(&gate.go_on);
	return ret;
}

static void connect_ends(struct ends *e)
{
	ends_open(e);
	assert_int_equal(softrnic_listen(e->listener.id, 1), 0);
	assert_int_equal(softrnic_connect(e->client.id, NULL), 0);
	ends_establish(e);
}

static void *end_former(void *arg)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct end *e = arg;

	return (void *)(intptr_t)softrnic_modify_qp(e->id->qp, &attr, IBV_QP_STATE);
}

static void a_completion_in_error_is_enough_to_connect_again(void **state)
{
	struct ends former, next;
	pthread_t thread;
	struct ibv_wc wc;
	void *ret;

	connect_ends(&former);
	assert_int_equal(end_post_recv(&former.client, 1), 0);
	gate.cq = container_of(former.client.cq, struct cq, ibv);
	assert_int_equal(pthread_create(&thread, NULL, end_former, &former.client), 0);
	wait_for(&gate.pushed);
	wc = end_wait_wc(&former.client);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_false(end_hears_within(&former.client, 0));
	connect_ends(&next);
	assert_true(end_hears_within(&former.server, 0));
	sem_post(&gate.go_on);
	pthread_join(thread, &ret);
	assert_null(ret);
	end_expect(&former.client, RDMA_CM_EVENT_DISCONNECTED);
	ends_close(&next);
	ends_close(&former);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_completion_in_error_is_enough_to_connect_again),
	};

	sem_init(&gate.pushed, 0, 0);
	sem_init(&gate.go_on, 0, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
