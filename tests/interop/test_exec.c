/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_exec.c -- a preloaded program posts a Write and immediately executes another program. At
 * this time the device still defers the Write, because another post could follow. The Write must
 * nevertheless arrive.
 */
#include <fcntl.h>
#include <pthread.h>
#include <rdma/rdma_verbs.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "ends.h"

enum { PROCESSES = 10, LESSONS = 8, PATIENCE_S = 30 };

static char true_name[] = "true";
static char *const argv[] = {true_name, NULL};

static struct target {
	__be16 port;
	uint64_t addr;
	uint32_t rkey;
} target;

/* --- the program -------------------------------------------------------------------------- */

struct program {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	uint64_t next;
};

/* Ends the child if the condition is false; a cmocka assertion works only in the parent. */
static void must(bool holds)
{
	if (!holds)
		abort();
}

static void post(struct program *p, unsigned flags)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)&p->next, .length = sizeof(p->next), .lkey = p->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = flags | IBV_SEND_INLINE,
				 .wr.rdma = {.remote_addr = target.addr, .rkey = target.rkey}};
	struct ibv_send_wr *bad;

	p->next++;
	must(ibv_post_send(p->id->qp, &wr, &bad) == 0);
}

/* Post another request directly after each Write, so that the device begins to defer Writes of this
 * connection. */
static void teach(struct program *p)
{
	struct ibv_wc wc;

	for (int i = 0; i < LESSONS; i++) {
		post(p, 0);
		post(p, IBV_SEND_SIGNALED);
		must(rdma_get_send_comp(p->id, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	}
}

static void connect_there(struct program *p, int from_parent)
{
	struct ibv_qp_init_attr attr = end_qp_attr();

	alarm(PATIENCE_S);
	attr.sq_sig_all = 0;
	attr.cap.max_inline_data = sizeof(p->next);
	must(read(from_parent, &target.port, sizeof(target.port)) == sizeof(target.port));
	p->id = end_make_with(0, target.port, attr);
	p->mr = rdma_reg_msgs(p->id, &p->next, sizeof(p->next));
	must(p->mr && rdma_connect(p->id, NULL) == 0);
	must(read(from_parent, &target, sizeof(target)) == sizeof(target));
}

/* --- the ways to execute another program -------------------------------------------------- */

typedef void ending(void);

static void by_execve(void)
{
	execve("/bin/true", argv, environ);
}

static void by_execv(void)
{
	execv("/bin/true", argv);
}

static void by_execvp(void)
{
	execvp("true", argv);
}

static void by_execvpe(void)
{
	execvpe("true", argv, environ);
}

static void by_execl(void)
{
	execl("/bin/true", "true", "1", "2", (char *)NULL);
}

static void by_execlp(void)
{
	execlp("true", "true", (char *)NULL);
}

/* execle() takes the environment after the argument list. The executed program gets both. */
static void by_execle(void)
{
	static char variable[] = "EXEC_TEST=here";
	char *const envp[] = {variable, NULL};

	execle("/bin/sh", "sh", "-c", "test \"$EXEC_TEST\" = here", (char *)NULL, envp);
}

static void by_fexecve(void)
{
	fexecve(open("/bin/true", O_RDONLY | O_CLOEXEC), argv, environ);
}

static void by_exit(void)
{
	exit(0);
}

static void by_exit_at_once(void)
{
	_exit(0);
}

static void by_exit_at_once_of_c99(void)
{
	_Exit(0);
}

static void on_signal(int sig)
{
	execve("/bin/true", argv, environ);
}

static void from_a_signal_handler(void)
{
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
}

/* A forked child executes the other program; the connection belongs to the parent process. */
static void after_a_fork(void)
{
	pid_t pid = fork();

	if (pid == 0)
		execve("/bin/true", argv, environ);
	must(waitpid(pid, NULL, 0) == pid);
	execve("/bin/true", argv, environ);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void after_a_vfork(void)
{
	pid_t pid = vfork();

	if (pid == 0) {
		execve("/nowhere", argv, environ);
		_exit(3);
	}
	must(waitpid(pid, NULL, 0) == pid);
	execve("/bin/true", argv, environ);
}
#pragma GCC diagnostic pop

/* --- the target --------------------------------------------------------------------------- */

static _Atomic uint64_t word;

static void tell_target(int fd, const void *data, size_t len)
{
	assert_int_equal(write(fd, data, len), len);
}

static void run(int from_parent, ending *end)
{
	static struct program p;

	connect_there(&p, from_parent);
	teach(&p);
	post(&p, 0);
	end();
	abort();
}

static void expect_disconnected(struct rdma_cm_id *id)
{
	struct rdma_cm_event *ev;

	assert_int_equal(rdma_get_cm_event(id->channel, &ev), 0);
	assert_int_equal(ev->event, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(rdma_ack_cm_event(ev), 0);
}

static void expect_arrival(const char *name, ending *end)
{
	struct rdma_cm_id *listener, *server;
	struct ibv_mr *mr;
	int to_child[2], status;
	pid_t pid;

	assert_int_equal(pipe2(to_child, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0)
		run(to_child[0], end);
	listener = end_make(RAI_PASSIVE, 0);
	assert_int_equal(rdma_listen(listener, 1), 0);
	target.port = rdma_get_src_port(listener);
	tell_target(to_child[1], &target.port, sizeof(target.port));
	assert_int_equal(rdma_get_request(listener, &server), 0);
	word = 0;
	mr = ibv_reg_mr(server->pd, (void *)&word, sizeof(word),
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	assert_non_null(mr);
	assert_int_equal(rdma_accept(server, NULL), 0);
	target.addr = (uintptr_t)&word;
	target.rkey = mr->rkey;
	tell_target(to_child[1], &target, sizeof(target));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	expect_disconnected(server); /* after the program's end no message arrives */
	if (word != 2 * LESSONS + 1)
		fail_msg("%s: %u of %u writes arrived", name, (unsigned)word, 2 * LESSONS + 1);
	ibv_dereg_mr(mr);
	rdma_destroy_ep(server);
	rdma_destroy_ep(listener);
	close(to_child[0]);
	close(to_child[1]);
}

static void a_write_arrives_although_the_process_ends_at_once(void **state)
{
	static const struct {
		const char *name;
		ending *end;
	} ends[] = {
		{"execve", by_execve},
		{"execv", by_execv},
		{"execvp", by_execvp},
		{"execvpe", by_execvpe},
		{"execl", by_execl},
		{"execlp", by_execlp},
		{"execle", by_execle},
		{"fexecve", by_fexecve},
		{"exit", by_exit},
		{"_exit", by_exit_at_once},
		{"_Exit", by_exit_at_once_of_c99},
		{"execve in a signal handler", from_a_signal_handler},
		{"execve after a fork", after_a_fork},
		{"execve after a vfork", after_a_vfork},
	};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		for (int k = 0; k < PROCESSES; k++)
			expect_arrival(ends[i].name, ends[i].end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_write_arrives_although_the_process_ends_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
