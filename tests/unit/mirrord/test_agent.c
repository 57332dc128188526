/* SPDX-License-Identifier: BSD-3-Clause */
/* A daemon exits while its threads still have jobs. */
#include "lib/unit.h"

#include <stdlib.h>

#include "mirrord/agent.h"

static unsigned dropped;

static int call_nothing(struct agent_job *job)
{
	return 0;
}

static void fail_done(struct agent_job *job)
{
	fail_msg("nobody takes answers");
}

/* Free the objects that the job owns. */
static void drop(struct agent_job *job)
{
	free(job->arg);
	dropped++;
}

static void post(struct agent *agent)
{
	struct agent_job *job = agent_job_new(AGENT_CALL, fail_done, NULL);

	assert_non_null(job);
	job->call = call_nothing;
	job->arg = malloc(1);
	job->on_drop = drop;
	agent_post(agent, job);
}

/* Some jobs are done and their answers were not taken; other jobs never began. */
static void jobs_that_are_left_at_the_end_free_what_they_own(void **state)
{
	struct agent_answers *answers = agent_answers_new();
	struct error err = {0};
	struct agent *agent;

	assert_non_null(answers);
	assert_int_equal(agent_new("file:/nowhere/register", "orders", 1000, answers, &agent, &err),
			 0);
	for (unsigned i = 0; i < 100; i++)
		post(agent);
	agent_delete(&agent);
	agent_answers_delete(answers);
	assert_int_equal(dropped, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jobs_that_are_left_at_the_end_free_what_they_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
