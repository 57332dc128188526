/* SPDX-License-Identifier: BSD-3-Clause */
/* test_silence.c -- a connection with its own liveness limit ends at this limit if its peer has
 * stopped, but never while the peer is alive. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ends.h"
#include "timing.h"

enum { LIMIT_MS = 1500 };

/* Accept one connection after another, without any further calls: only the device answers. */
static int serve(int port_fd)
{
	struct rpma_conn *conn = NULL;
	struct rpma_conn_req *req = NULL;
	struct rpma_peer *peer = NULL;
	struct rpma_ep *ep = NULL;
	struct ibv_context *ctx;
	uint16_t port;

	if (rpma_utils_get_ibv_context("127.0.0.1", RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx) ||
	    rpma_peer_new(ctx, &peer) || rpma_ep_listen(peer, "127.0.0.1", "0", &ep) ||
	    rpma_ep_get_port(ep, &port) || write(port_fd, &port, sizeof(port)) != sizeof(port))
		return 1;
	while (!rpma_ep_next_conn_req(ep, NULL, &req) && !rpma_conn_req_connect(&req, NULL, &conn))
		;
	return 1;
}

struct server {
	pid_t pid;
	char port[8];
};

/* Fork before this process uses the device, so that the child has a device of its own. */
static struct server start(void)
{
	struct server s = {0};
	uint16_t port = 0;
	int fd[2];

	assert_int_equal(pipe(fd), 0);
	s.pid = fork();
	if (s.pid == 0)
		_exit(serve(fd[1]));
	assert_true(s.pid > 0);
	assert_int_equal(read(fd[0], &port, sizeof(port)), sizeof(port));
	snprintf(s.port, sizeof(s.port), "%u", (unsigned)port);
	close(fd[0]);
	close(fd[1]);
	return s;
}

static struct server server;

static int setup(void **state)
{
	server = start();
	return 0;
}

static int teardown(void **state)
{
	kill(server.pid, SIGKILL);
	return waitpid(server.pid, NULL, 0) == server.pid ? 0 : -1;
}

static void dial(struct ends *d, int limit_ms)
{
	struct rpma_conn_cfg *cfg = ends_cfg(0, 0, 0, 0);
	struct rpma_conn_req *req;
	struct ibv_context *ctx;

	OK(rpma_conn_cfg_set_liveness(cfg, limit_ms));
	OK(rpma_utils_get_ibv_context("127.0.0.1", RPMA_UTIL_IBV_CONTEXT_REMOTE, &ctx));
	OK(rpma_peer_new(ctx, &d->peer));
	OK(rpma_conn_req_new(d->peer, "127.0.0.1", server.port, cfg, &req));
	OK(rpma_conn_req_connect(&req, NULL, &d->cli));
	ends_expect_event(d->cli, RPMA_CONN_ESTABLISHED);
	OK(rpma_conn_cfg_delete(&cfg));
}

static void hang_up(struct ends *d)
{
	OK(rpma_conn_delete(&d->cli));
	OK(rpma_peer_delete(&d->peer));
}

static void an_idle_peer_that_lives_is_kept(void **state)
{
	enum rpma_conn_event ev;
	struct ends d = {0};

	dial(&d, LIMIT_MS);
	TAKES(2 * LIMIT_MS, RPMA_E_NO_EVENT,
	      rpma_conn_next_event_timeout(d.cli, 2 * LIMIT_MS, &ev));
	hang_up(&d);
}

/* The limit in the environment is much longer than the connection's own limit. */
static void a_stopped_peer_is_lost_at_the_connections_own_limit(void **state)
{
	enum rpma_conn_event ev = RPMA_CONN_UNDEFINED;
	uint64_t begin = now_ms();
	struct ends d = {0};
	struct ibv_wc wc;
	uint32_t code = 0;

	dial(&d, LIMIT_MS);
	OK(rpma_recv(d.cli, NULL, 0, 0, &d));
	assert_int_equal(kill(server.pid, SIGSTOP), 0);
	OK(rpma_conn_next_event_timeout(d.cli, LIMIT_MS + SLACK_MS, &ev));
	assert_true(now_ms() - begin >= LIMIT_MS); /* each received byte restarts the limit */
	assert_int_equal(ev, RPMA_CONN_LOST);
	ends_wait_wc(d.cli, &wc);
	assert_int_not_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(rpma_wc_get_reason(d.cli, &wc, &code), RPMA_REASON_LINK);
	assert_int_equal(code, ETIMEDOUT);
	hang_up(&d);
	assert_int_equal(kill(server.pid, SIGCONT), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_idle_peer_that_lives_is_kept),
		cmocka_unit_test(a_stopped_peer_is_lost_at_the_connections_own_limit),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
