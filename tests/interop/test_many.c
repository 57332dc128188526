/* SPDX-License-Identifier: BSD-3-Clause */
/* test_many.c -- several threads call libibverbs and librdmacm many times in parallel. */
#include <pthread.h>
#include <rdma/rdma_verbs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "ends.h"
#include "lib/fds.h"

enum { THREADS = 4, ROUNDS = 20 };

/* Thread function of the server; it returns when the client disconnects. */
static void *serve_one(void *arg)
{
	struct rdma_cm_id *listener = arg, *id;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	char in[16];

	assert_int_equal(rdma_get_request(listener, &id), 0);
	mr = rdma_reg_msgs(id, in, sizeof(in));
	assert_non_null(mr);
	assert_int_equal(rdma_post_recv(id, in, in, sizeof(in), mr), 0);
	assert_int_equal(rdma_accept(id, NULL), 0);
	assert_int_equal(rdma_get_recv_comp(id, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_string_equal(in, "hello");
	rdma_disconnect(id);
	assert_int_equal(rdma_dereg_mr(mr), 0);
	rdma_destroy_ep(id);
	return NULL;
}

static void one_connection(void)
{
	struct rdma_cm_id *listener = end_make(RAI_PASSIVE, 0), *client;
	char out[] = "hello";
	struct ibv_wc wc;
	pthread_t server;

	assert_int_equal(rdma_listen(listener, 4), 0);
	assert_int_equal(pthread_create(&server, NULL, serve_one, listener), 0);
	client = end_make(0, rdma_get_src_port(listener));
	assert_int_equal(rdma_connect(client, NULL), 0);
	assert_int_equal(rdma_post_send(client, NULL, out, sizeof(out), NULL, IBV_SEND_INLINE), 0);
	assert_int_equal(rdma_get_send_comp(client, &wc), 1);
	assert_int_equal(rdma_disconnect(client), 0);
	rdma_destroy_ep(client);
	pthread_join(server, NULL);
	rdma_destroy_ep(listener);
}

static void *many_connections(void *arg)
{
	for (int i = 0; i < ROUNDS; i++)
		one_connection();
	return NULL;
}

static void threads_connect_side_by_side_and_leave_nothing(void **state)
{
	pthread_t threads[THREADS];
	int before;

	one_connection(); /* make the objects that a process makes only once */
	before = open_fds();
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, many_connections, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	/* Connections can end shortly after their ids are destroyed, so wait. */
	for (int i = 0; i < 200 && open_fds() > before; i++)
		usleep(50000);
	assert_true(open_fds() <= before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_connect_side_by_side_and_leave_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
