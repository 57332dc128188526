/* SPDX-License-Identifier: BSD-3-Clause */
/* Many queue pairs without rdma_cm in one process, their numbers, and fork(). */
#include "plain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAIRS 500

static void raise_limit(void)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void a_thousand_queue_pairs_meet(void **state)
{
	struct plain *all = calloc(2 * PAIRS, sizeof(*all));

	raise_limit();
	for (int i = 0; i < 2 * PAIRS; i++) {
		plain_open(&all[i]);
		plain_init(&all[i]);
	}
	for (int i = 0; i < 2 * PAIRS; i++) {
		plain_rtr(&all[i], all[i ^ 1].qp->qp_num);
		plain_rts(&all[i]);
	}
	for (int i = 0; i < PAIRS; i++)
		plain_talk(&all[2 * i], &all[2 * i + 1]);
	for (int i = 0; i < 2 * PAIRS; i++)
		plain_close(&all[i]);
	free(all);
}

static void a_number_returns_late(void **state)
{
	static uint32_t seen[200];
	struct plain p;

	for (unsigned i = 0; i < ARRAY_LEN(seen); i++) {
		plain_open(&p);
		seen[i] = p.qp->qp_num;
		for (unsigned k = 0; k < i; k++)
			assert_int_not_equal(seen[k], seen[i]);
		plain_close(&p);
	}
}

/* The queue pairs that the child makes have other numbers than the parent's. */
static int meet_in_child(uint32_t parents)
{
	struct plain a, b;

	plain_pair_open(&a, &b);
	if (a.qp->qp_num >> 8 == parents >> 8)
		return 1;
	plain_ready(&a, b.qp->qp_num);
	plain_ready(&b, a.qp->qp_num);
	plain_talk(&a, &b);
	plain_close(&a);
	plain_close(&b);
	return 0;
}

static void parent_and_child_each_have_queue_pairs(void **state)
{
	struct plain a, b;
	int status;
	pid_t pid;

	plain_pair_open(&a, &b);
	plain_ready(&a, b.qp->qp_num);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

		if (softrnic_modify_qp(a.qp, &attr, IBV_QP_STATE) != ENODEV)
			_exit(2);
		_exit(meet_in_child(a.qp->qp_num));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	plain_ready(&b, a.qp->qp_num);
	plain_talk(&a, &b);
	plain_close(&a);
	plain_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_number_returns_late),
		cmocka_unit_test(parent_and_child_each_have_queue_pairs),
		cmocka_unit_test(a_thousand_queue_pairs_meet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
