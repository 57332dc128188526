/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fork.c -- a process with busy threads forks, and the child uses libibverbs and librdmacm. */
#include <pthread.h>
#include <rdma/rdma_verbs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "ends.h"

enum { CHILDREN = 15, IDS = 2000 };

static atomic_bool enough;

/*
 * Destroy the oldest id each time, so that the objects that all ids share are in use most of the
 * time.
 */
static void *make_ids(void *arg)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	static struct rdma_cm_id *ids[IDS];

	assert_non_null(ch);
	for (unsigned i = 0; !atomic_load(&enough); i = (i + 1) % IDS) {
		if (ids[i])
			assert_int_equal(rdma_destroy_id(ids[i]), 0);
		assert_int_equal(rdma_create_id(ch, &ids[i], NULL, RDMA_PS_TCP), 0);
	}
	for (unsigned i = 0; i < IDS && ids[i]; i++)
		rdma_destroy_id(ids[i]);
	rdma_destroy_event_channel(ch);
	return NULL;
}

/* Make a listener and a client in the child, with threads of the child. */
static int make_one(void)
{
	struct rdma_cm_id *listener = end_make(RAI_PASSIVE, 0), *client;
	int ret = rdma_listen(listener, 1);

	client = end_make(0, rdma_get_src_port(listener));
	rdma_destroy_ep(client);
	rdma_destroy_ep(listener);
	return ret;
}

/* A child can make ids, whatever other threads of the parent do at the time of the fork. */
static void a_child_can_make_ids_of_its_own(void **state)
{
	pthread_t thread;
	int status;
	pid_t pid;

	assert_int_equal(pthread_create(&thread, NULL, make_ids, NULL), 0);
	for (int i = 0; i < CHILDREN; i++) {
		pid = fork();
		if (pid == 0) {
			alarm(30);
			_exit(make_one());
		}
		assert_true(pid > 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	atomic_store(&enough, true);
	pthread_join(thread, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_can_make_ids_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
