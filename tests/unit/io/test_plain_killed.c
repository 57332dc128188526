/* SPDX-License-Identifier: BSD-3-Clause */
/* The peer's process is killed in each state of its queue pair, and another peer takes its place. */
#include "plain.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum stage { IN_RESET, IN_INIT, IN_RTR, IN_RTS, STAGES };

struct child {
	pid_t pid;
	int to, from; /* ends of the pipes to and from the child */
	uint32_t qpn;
};

static void pass(int fd, const void *bytes, size_t len)
{
	assert_int_equal(write(fd, bytes, len), len);
}

static void get(int fd, void *bytes, size_t len)
{
	assert_int_equal(read(fd, bytes, len), len);
}

/* Post receives as early as the state permits, so that messages find receives. */
static void child_reach(struct plain *p, uint32_t peer, enum stage stage)
{
	if (stage >= IN_INIT) {
		plain_init(p);
		for (int i = 0; i < 4; i++)
			plain_recv(p, 1);
	}
	if (stage >= IN_RTR)
		plain_rtr(p, peer);
	if (stage >= IN_RTS)
		plain_rts(p);
}

static void child_run(int in, int out, enum stage stage)
{
	struct plain p;
	uint32_t peer;

	plain_open(&p);
	pass(out, &p.qp->qp_num, sizeof(p.qp->qp_num));
	get(in, &peer, sizeof(peer));
	child_reach(&p, peer, stage);
	pass(out, "x", 1);
	for (;;)
		pause();
}

static void child_start(struct child *c, uint32_t our_number, enum stage stage)
{
	int to[2], from[2];
	char byte;

	assert_int_equal(pipe(to), 0);
	assert_int_equal(pipe(from), 0);
	c->pid = fork();
	assert_true(c->pid >= 0);
	if (c->pid == 0) {
		alarm(30); /* ends the child if the parent fails */
		child_run(to[0], from[1], stage);
	}
	close(to[0]);
	close(from[1]);
	c->to = to[1];
	c->from = from[0];
	get(c->from, &c->qpn, sizeof(c->qpn));
	pass(c->to, &our_number, sizeof(our_number));
	get(c->from, &byte, 1);
}

static void child_kill(struct child *c)
{
	kill(c->pid, SIGKILL);
	assert_int_equal(waitpid(c->pid, NULL, 0), c->pid);
	close(c->to);
	close(c->from);
}

static void expect_success(struct plain *p)
{
	assert_int_equal(plain_wait(p).status, IBV_WC_SUCCESS);
}

/* The queue pair with the greater number dials, and the other queue pair waits for the dial. The
 * number of the child's queue pair is random, so both cases occur in several rounds. */
static void kill_in(enum stage stage)
{
	struct plain p;
	struct child c, next;
	bool meets = stage >= IN_RTR;

	plain_open(&p);
	p.timeout = 1;
	child_start(&c, p.qp->qp_num, stage);
	plain_ready(&p, c.qpn);
	if (meets) {
		plain_send(&p, 1, "before");
		expect_success(&p);
	}
	child_kill(&c);
	usleep(20000);
	assert_int_equal(plain_state(&p), IBV_QPS_RTS);
	plain_send(&p, 2, "to a dead one");
	assert_int_equal(plain_wait(&p).status, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(plain_state(&p), IBV_QPS_ERR);

	plain_reset(&p);
	child_start(&next, p.qp->qp_num, IN_RTS);
	plain_ready(&p, next.qpn);
	plain_send(&p, 3, "to the next one");
	expect_success(&p);
	child_kill(&next);
	plain_close(&p);
}

static void a_peer_may_be_killed_in_reset(void **state)
{
	kill_in(IN_RESET);
}

static void a_peer_may_be_killed_in_init(void **state)
{
	kill_in(IN_INIT);
}

static void a_peer_may_be_killed_in_rtr(void **state)
{
	kill_in(IN_RTR);
}

static void a_peer_may_be_killed_in_rts(void **state)
{
	for (int i = 0; i < 3; i++)
		kill_in(IN_RTS);
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* The killed peer's host resets the connection. The requests that the peer has not acknowledged
 * fail after the time of the retries. */
static void a_peer_may_be_killed_with_work_outstanding(void **state)
{
	struct plain p;
	struct child c;
	uint64_t killed;

	plain_open(&p);
	p.timeout = 17; /* a retry time of 537 ms */
	child_start(&c, p.qp->qp_num, IN_RTS);
	plain_ready(&p, c.qpn);
	for (int i = 0; i < 4; i++) {
		plain_send(&p, 1, "as many as there are receives");
		expect_success(&p);
	}
	kill(c.pid, SIGSTOP);
	usleep(10000);
	plain_send(&p, 2, "to a stopped one");
	plain_send(&p, 3, "likewise");
	killed = now_ms();
	child_kill(&c);
	assert_int_equal(plain_wait(&p).status, IBV_WC_RETRY_EXC_ERR);
	assert_true(now_ms() - killed >= 536);
	assert_int_equal(plain_wait(&p).status, IBV_WC_WR_FLUSH_ERR);
	plain_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_peer_may_be_killed_in_reset),
		cmocka_unit_test(a_peer_may_be_killed_in_init),
		cmocka_unit_test(a_peer_may_be_killed_in_rtr),
		cmocka_unit_test(a_peer_may_be_killed_in_rts),
		cmocka_unit_test(a_peer_may_be_killed_with_work_outstanding),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
