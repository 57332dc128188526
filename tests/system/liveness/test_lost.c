/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_lost.c -- the peer's process is stopped: its sockets stay open, so TCP does not report this.
 */
#include "system/lib/check.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "outcome.h"

static const char *const regions[] = {"anon:65536:0xff", NULL};
static struct remote target;
static struct client client;

/* Stop the process, and wait until it has stopped. */
static void stop_process(struct proc *p)
{
	siginfo_t info;

	proc_signal(p, SIGSTOP);
	assert_int_equal(waitid(P_PID, (id_t)p->pid, &info, WSTOPPED), 0);
}

static int start(void **state)
{
	assert_int_equal(remote_start(&target, SYSTEM_TARGET, regions, NULL), 0);
	OK(client_open(&client, 65536));
	return 0;
}

static int stop(void **state)
{
	client_close(&client);
	proc_signal(&target.proc, SIGCONT);
	return proc_finish(&target.proc);
}

static void a_stopped_target_is_lost(void **state)
{
	uint64_t begun;

	OK(client_connect(&client, target.port, NULL));
	OK(client_write(&client, 0, 0, 4096, NULL));
	begun = clock_now_ns();
	stop_process(&target.proc);
	post_read(&client);
	expect_lost(&client, begun);
	client_drop(&client);
	/* When the target runs again, it detects the end of its peer. */
	proc_signal(&target.proc, SIGCONT);
	assert_int_equal(remote_wait_conns(&target, 0, CLIENT_WAIT_MS), 0);
	OK(client_connect(&client, target.port, NULL));
	OK(client_read(&client, 0, 0, 4096, NULL));
	client_disconnect(&client);
	assert_int_equal(remote_wait_conns(&target, 0, CLIENT_WAIT_MS), 0);
}

/* The target stops while the sockets are full. */
static void a_target_that_stops_under_load_is_lost(void **state)
{
	uint64_t begun;

	OK(client_connect(&client, target.port, NULL));
	stop_process(&target.proc);
	begun = clock_now_ns();
	while (!rpma_write(client.conn, client.at[0], 0, client.mr, 0, 65536,
			   RPMA_F_COMPLETION_ON_ERROR, NULL))
		;
	expect_lost(&client, begun);
	client_drop(&client);
	proc_signal(&target.proc, SIGCONT);
	assert_int_equal(remote_wait_conns(&target, 0, CLIENT_WAIT_MS), 0);
}

static void a_stopped_initiator_is_lost(void **state)
{
	struct proc writer;
	/* The stopped target, too, can report its peer as lost, because the peer has given up. */
	int before = target_lost(&target);
	uint64_t begun, ms;

	assert_int_equal(writer_start(&writer, SYSTEM_WRITER, target.port, "0:1:1", NULL), 0);
	assert_int_equal(remote_wait_conns(&target, 1, CLIENT_WAIT_MS), 0);
	begun = clock_now_ns();
	stop_process(&writer);
	expect_target_lost(&target, before + 1);
	ms = (clock_now_ns() - begun) / NSEC_PER_MS;
	assert_in_range(ms, LIMIT_MS / 2, AT_MOST_MS);
	proc_kill(&writer);
}

static void a_connection_may_wait_for_ever(void **state)
{
	enum rpma_conn_event event;
	struct ibv_wc wc;

	OK(rpma_conn_cfg_set_liveness(client.cfg, -1));
	OK(client_connect(&client, target.port, NULL));
	OK(rpma_conn_cfg_set_liveness(client.cfg, 0));
	stop_process(&target.proc);
	post_read(&client);
	assert_int_equal(client_wait_event(client.conn, &event, 2 * LIMIT_MS), CLIENT_TIMEOUT);
	proc_signal(&target.proc, SIGCONT);
	OK(client_wait_wc(client.cq, &wc, CLIENT_WAIT_MS));
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	client_disconnect(&client);
	assert_int_equal(remote_wait_conns(&target, 0, CLIENT_WAIT_MS), 0);
}

/* Without consent an end must not send a heartbeat, and TCP's keepalive does not detect a stopped
 * process. */
static void a_stopped_peer_without_consent_is_waited_for(void **state)
{
	enum rpma_conn_event event;
	struct remote plain;
	struct ibv_wc wc;

	assert_int_equal(remote_start(&plain, SYSTEM_TARGET, regions,
				      (const char *[]){"SOFTRNIC_EXTENSIONS=0", NULL}),
			 0);
	OK(client_connect(&client, plain.port, NULL));
	stop_process(&plain.proc);
	post_read(&client);
	assert_int_equal(client_wait_event(client.conn, &event, 2 * LIMIT_MS), CLIENT_TIMEOUT);
	proc_signal(&plain.proc, SIGCONT);
	OK(client_wait_wc(client.cq, &wc, CLIENT_WAIT_MS));
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	client_disconnect(&client);
	assert_int_equal(proc_finish(&plain.proc), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stopped_target_is_lost),
		cmocka_unit_test(a_target_that_stops_under_load_is_lost),
		cmocka_unit_test(a_stopped_initiator_is_lost),
		cmocka_unit_test(a_connection_may_wait_for_ever),
		cmocka_unit_test(a_stopped_peer_without_consent_is_waited_for),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
