/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_processes.c -- server and client as two processes, which share only the private data of the
 * connection. The first server is forked before this process uses the device, all later servers
 * afterwards.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ends.h"

#define SIZE 65536u

/* The private data of a server. */
struct hello {
	uint8_t mr_desc[24], pcfg_desc[8];
	uint8_t mr_size, pcfg_size;
};

enum how { SERVE_UNTIL_CLOSED, SERVE_FOR_EVER };

struct server {
	pid_t pid;
	char port[8];
	uint8_t *mem; /* memory that fork() shares with the child */
};

static int hello_fill(struct hello *h, const struct rpma_mr_local *mr)
{
	struct rpma_peer_cfg *pcfg = NULL;
	size_t mr_size = 0, pcfg_size = 0;
	int ret;

	memset(h, 0, sizeof(*h));
	ret = rpma_peer_cfg_new(&pcfg) || rpma_peer_cfg_set_direct_write_to_pmem(pcfg, true) ||
	      rpma_mr_get_descriptor_size(mr, &mr_size) ||
	      rpma_peer_cfg_get_descriptor_size(pcfg, &pcfg_size) ||
	      rpma_mr_get_descriptor(mr, h->mr_desc) ||
	      rpma_peer_cfg_get_descriptor(pcfg, h->pcfg_desc);
	h->mr_size = (uint8_t)mr_size;
	h->pcfg_size = (uint8_t)pcfg_size;
	rpma_peer_cfg_delete(&pcfg);
	return ret;
}

static int serve_connection(struct rpma_conn *conn)
{
	enum rpma_conn_event ev = RPMA_CONN_UNDEFINED;

	while (ev != RPMA_CONN_CLOSED)
		if (rpma_conn_next_event(conn, &ev) || ev == RPMA_CONN_LOST)
			return -1;
	return rpma_conn_disconnect(conn);
}

/*
 * Another process can take the chosen port before this process listens. If so, choose another port.
 */
static int listen_somewhere(struct rpma_peer *peer, int port_fd, struct rpma_ep **ep)
{
	char port[8] = "";

	for (int i = 0; i < 10; i++) {
		ends_free_port(port);
		if (!rpma_ep_listen(peer, ends_addr(), port, ep))
			return write(port_fd, port, sizeof(port)) == sizeof(port) ? 0 : -1;
	}
	return -1;
}

/*
 * The server's main(). The function uses plain checks, because a failed assertion would jump to the
 * test's code in the child.
 */
static int serve(uint8_t *mem, int port_fd, enum how how)
{
	struct rpma_conn_private_data pdata;
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;
	struct rpma_peer *peer = NULL;
	struct rpma_mr_local *mr = NULL;
	struct rpma_ep *ep = NULL;
	struct ibv_context *ctx;
	struct hello hello;
	int ret;

	if (rpma_utils_get_ibv_context(ends_addr(), RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx) ||
	    rpma_peer_new(ctx, &peer) ||
	    rpma_mr_reg(peer, mem, SIZE,
			RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC |
				RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT |
				RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY,
			&mr) ||
	    hello_fill(&hello, mr) || listen_somewhere(peer, port_fd, &ep))
		return 1;
	pdata = (struct rpma_conn_private_data){&hello, sizeof(hello)};
	if (rpma_ep_next_conn_req(ep, NULL, &req) || rpma_conn_req_connect(&req, &pdata, &conn))
		return 2;
	if (how == SERVE_FOR_EVER)
		pause();
	ret = serve_connection(conn) ? 3 : 0;
	if (rpma_conn_delete(&conn) || rpma_mr_dereg(&mr) || rpma_ep_shutdown(&ep) ||
	    rpma_peer_delete(&peer))
		return 4;
	return ret;
}

static void server_start(struct server *s, enum how how)
{
	int ready[2];

	s->mem = ends_map(SIZE);
	assert_int_equal(pipe(ready), 0);
	s->pid = fork();
	assert_true(s->pid >= 0);
	if (s->pid == 0)
		_exit(serve(s->mem, ready[1], how));
	close(ready[1]);
	/* A short read means that the server has failed and closed the pipe. */
	assert_int_equal(read(ready[0], s->port, sizeof(s->port)), sizeof(s->port));
	close(ready[0]);
}

static void server_expect_exit(struct server *s, int code)
{
	int status;

	assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), code);
	munmap(s->mem, SIZE);
}

static void client_open(struct ends *d, const struct server *s)
{
	struct rpma_conn_private_data pdata;
	struct rpma_conn_req *req;
	struct rpma_peer_cfg *pcfg;
	const struct hello *hello;
	struct ibv_context *ctx;

	memset(d, 0, sizeof(*d));
	OK(rpma_utils_get_ibv_context(ends_addr(), RPMA_UTIL_IBV_CONTEXT_REMOTE, &ctx));
	OK(rpma_peer_new(ctx, &d->peer));
	OK(rpma_conn_req_new(d->peer, ends_addr(), s->port, NULL, &req));
	OK(rpma_conn_req_connect(&req, NULL, &d->cli));
	ends_expect_event(d->cli, RPMA_CONN_ESTABLISHED);
	OK(rpma_conn_get_private_data(d->cli, &pdata));
	assert_int_equal(pdata.len, sizeof(*hello));
	hello = pdata.ptr;
	OK(rpma_mr_remote_from_descriptor(hello->mr_desc, hello->mr_size, &d->at_srv));
	OK(rpma_peer_cfg_from_descriptor(hello->pcfg_desc, hello->pcfg_size, &pcfg));
	OK(rpma_conn_apply_remote_peer_cfg(d->cli, pcfg));
	OK(rpma_peer_cfg_delete(&pcfg));
	d->cli_buf = ends_map(SIZE);
	d->cli_mr = ends_reg(d, d->cli_buf, SIZE);
	d->srv_buf = ends_map(SIZE); /* ends_close() needs these members */
}

static void write_and_persist(struct ends *d, unsigned seed)
{
	ends_fill(d->cli_buf, SIZE, seed);
	OK(rpma_write(d->cli, d->at_srv, 0, d->cli_mr, 0, SIZE, RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_flush(d->cli, d->at_srv, 0, SIZE, RPMA_FLUSH_TYPE_PERSISTENT,
		      RPMA_F_COMPLETION_ALWAYS, d));
	ends_expect_wc(d->cli, ends_flush_opcode(), d);
}

static void client_writes_into_the_servers_memory(void **state)
{
	struct server s;
	struct ends d;

	server_start(&s, SERVE_UNTIL_CLOSED);
	client_open(&d, &s);
	for (unsigned i = 0; i < 20; i++) {
		write_and_persist(&d, i);
		assert_true(ends_is_filled(s.mem, SIZE, i));
	}
	OK(rpma_conn_disconnect(d.cli));
	ends_expect_event(d.cli, RPMA_CONN_CLOSED);
	server_expect_exit(&s, 0);
	ends_close(&d);
}

static void client_gets_closed_when_the_server_is_killed(void **state)
{
	enum rpma_conn_event ev = RPMA_CONN_UNDEFINED;
	struct server s;
	struct ends d;
	int status;

	server_start(&s, SERVE_FOR_EVER);
	client_open(&d, &s);
	write_and_persist(&d, 1);
	assert_int_equal(kill(s.pid, SIGKILL), 0);
	assert_int_equal(waitpid(s.pid, &status, 0), s.pid);
	assert_true(ends_event_within(d.cli, 5000, &ev));
	assert_true(ev == RPMA_CONN_CLOSED || ev == RPMA_CONN_LOST);
	assert_true(ends_is_filled(s.mem, SIZE, 1));
	munmap(s.mem, SIZE);
	ends_close(&d);
}

static void operations_under_way_fail_when_the_server_is_killed(void **state)
{
	struct server s;
	struct ends d;
	int status;

	server_start(&s, SERVE_FOR_EVER);
	client_open(&d, &s);
	write_and_persist(&d, 1);
	assert_int_equal(kill(s.pid, SIGSTOP), 0);
	assert_int_equal(waitpid(s.pid, &status, WUNTRACED), s.pid);
	OK(rpma_flush(d.cli, d.at_srv, 0, SIZE, RPMA_FLUSH_TYPE_PERSISTENT,
		      RPMA_F_COMPLETION_ALWAYS, &d));
	assert_int_equal(kill(s.pid, SIGKILL), 0);
	assert_int_equal(ends_wait_failure(d.cli), IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(waitpid(s.pid, &status, 0), s.pid);
	munmap(s.mem, SIZE);
	ends_close(&d);
}

/* Deletion waits at most SOFTRNIC_DRAIN_MS for unfinished work. */
static void deletion_does_not_wait_for_a_stopped_server(void **state)
{
	struct timespec begin, end;
	struct server s;
	struct ends d;
	int status;

	server_start(&s, SERVE_FOR_EVER);
	client_open(&d, &s);
	assert_int_equal(kill(s.pid, SIGSTOP), 0);
	assert_int_equal(waitpid(s.pid, &status, WUNTRACED), s.pid);
	OK(rpma_flush(d.cli, d.at_srv, 0, SIZE, RPMA_FLUSH_TYPE_PERSISTENT,
		      RPMA_F_COMPLETION_ALWAYS, &d));
	clock_gettime(CLOCK_MONOTONIC, &begin);
	OK(rpma_conn_delete(&d.cli));
	clock_gettime(CLOCK_MONOTONIC, &end);
	assert_in_range(end.tv_sec - begin.tv_sec, 0, 20);
	assert_int_equal(kill(s.pid, SIGKILL), 0);
	assert_int_equal(waitpid(s.pid, &status, 0), s.pid);
	munmap(s.mem, SIZE);
	ends_close(&d);
}

/* A child process that inherits a connection neither disturbs the connection nor keeps it open. */
static void forking_does_not_disturb_connections(void **state)
{
	struct ends d;
	int status;
	pid_t pid;

	ends_open(&d, NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		pause();
		_exit(0);
	}
	ends_fill(d.cli_buf, 4096, 1);
	OK(rpma_write(d.cli, d.at_srv, 0, d.cli_mr, 0, 4096, RPMA_F_COMPLETION_ON_ERROR, NULL));
	ends_flush(d.cli, d.at_srv, 0, 4096);
	assert_true(ends_is_filled(d.srv_buf, 4096, 1));
	OK(rpma_conn_delete(&d.cli));
	ends_expect_event(d.srv, RPMA_CONN_CLOSED);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	ends_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(client_writes_into_the_servers_memory),
		cmocka_unit_test(client_gets_closed_when_the_server_is_killed),
		cmocka_unit_test(operations_under_way_fail_when_the_server_is_killed),
		cmocka_unit_test(deletion_does_not_wait_for_a_stopped_server),
		cmocka_unit_test(forking_does_not_disturb_connections),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
