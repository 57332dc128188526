/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_fork.c -- a process forks in the middle of its traffic. The traffic must continue, the child
 * must be able to use a new device, and peers must detect the exit of the process even if the child
 * still runs.
 */
#include "system/lib/check.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "system/lib/client.h"
#include "system/lib/remote.h"

#define FORKS (SYSTEM_SANITIZED ? 3 : 30)

struct scene {
	struct remote target;
	struct remote forker;
	struct proc writer;
};

static void begin(struct scene *s)
{
	remote_must_start(&s->target, NULL, "anon:1048576:0xff");
	assert_int_equal(remote_start(&s->forker, SYSTEM_FORKER,
				      (const char *[]){s->target.port, NULL}, NULL),
			 0);
	assert_int_equal(writer_start(&s->writer, SYSTEM_WRITER, s->forker.port, "0:2:2", NULL), 0);
}

struct counts {
	unsigned long out, out_failures, in, in_failures;
};

static struct counts count(struct scene *s)
{
	struct counts c;
	struct writer_stat w;
	const char *line = proc_ask(&s->forker.proc, "stat");

	assert_non_null(line);
	assert_int_equal(sscanf(line, "%lu %lu", &c.out, &c.out_failures), 2);
	assert_int_equal(writer_ask(&s->writer, &w), 0);
	c.in = w.writes;
	c.in_failures = w.failures;
	return c;
}

static void expect_traffic(struct scene *s)
{
	uint64_t end = clock_now_ns() + 20 * NSEC_PER_SEC;
	struct counts before = count(s), now = before;

	while (now.out < before.out + 50 || now.in < before.in + 50) {
		assert_true(clock_now_ns() < end);
		usleep(2000);
		now = count(s);
	}
	assert_int_equal(now.out_failures, 0);
	assert_int_equal(now.in_failures, 0);
}

static void a_fork_disturbs_no_connection_and_its_child_begins_anew(void **state)
{
	struct scene s;

	begin(&s);
	expect_traffic(&s);
	for (int i = 0; i < FORKS; i++) {
		const char *line = proc_ask(&s.forker.proc, "fork");

		assert_non_null(line);
		if (strcmp(line, "0") != 0)
			fail_msg("the child failed at line %s of forker_child.c", line);
		expect_traffic(&s);
	}
	assert_int_equal(proc_finish(&s.writer), 0);
	assert_int_equal(proc_finish(&s.forker.proc), 0);
	assert_int_equal(remote_wait_conns(&s.target, 0, 20000), 0);
	assert_int_equal(proc_finish(&s.target.proc), 0);
}

/* Wait for the child, whose parent has exited. The child holds the other ends of these pipes. */
static void expect_the_child_to_end(struct proc *p)
{
	struct pollfd out = {.fd = p->out};

	close(p->in);
	p->in = -1;
	assert_int_equal(poll(&out, 1, 20000), 1);
	assert_true(out.revents & POLLHUP);
}

static void a_killed_parent_is_gone_although_its_child_lives(void **state)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	struct client c;
	struct scene s;
	const char *line;
	pid_t child;

	begin(&s);
	OK(client_begin(&c, 4096, s.forker.port));
	expect_traffic(&s);
	line = proc_ask(&s.forker.proc, "fork keep");
	assert_non_null(line);
	child = atoi(line);
	assert_true(child > 0);
	proc_signal(&s.forker.proc, SIGKILL);
	/* Both connections must end: the connection that the process accepted, and the connection
	 * that it made. */
	OK(client_wait_event(c.conn, &event, 10000));
	assert_true(event == RPMA_CONN_CLOSED || event == RPMA_CONN_LOST);
	assert_int_equal(remote_wait_conns(&s.target, 0, 10000), 0);
	assert_int_equal(kill(child, 0), 0);
	client_drop(&c);
	client_close(&c);
	proc_kill(&s.writer);
	expect_the_child_to_end(&s.forker.proc);
	assert_true(WIFSIGNALED(proc_wait(&s.forker.proc, 20000)));
	assert_int_equal(proc_finish(&s.target.proc), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fork_disturbs_no_connection_and_its_child_begins_anew),
		cmocka_unit_test(a_killed_parent_is_gone_although_its_child_lives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
