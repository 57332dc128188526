/* SPDX-License-Identifier: BSD-3-Clause */
/* test_shm.c -- connections on one host that move to rings in shared memory: transfers, their cost,
 * forks, and peers that die at any time during the move. */
#include "ends_ext.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BIG   (8u << 20)
#define KILLS 60

#define LIVENESS_MS 1000

/* Values of the counter shm_state, as softrnic(7) lists them. */
#define SHM_STATE_FIRST_WHY   3
#define SHM_STATE_MAX_REACHED 16
#define SHM_STATE_LAST_WHY    20

static bool shm_is_off(void)
{
	const char *shm = getenv("SOFTRNIC_SHM");

	return shm && strcmp(shm, "0") == 0;
}

/* Count the rings' mappings in this process: each end has one. */
static int count_rings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	int n = 0;

	while (fgets(line, sizeof(line), f))
		n += strstr(line, "memfd:softrnic") != NULL;
	fclose(f);
	return n;
}

/* A connection can keep its rings for a short time after its end, so wait. */
static void expect_no_rings(void)
{
	for (int i = 0; i < 500 && count_rings(); i++)
		ends_sleep_ms(10);
	assert_int_equal(count_rings(), 0);
}

static int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void write_and_flush(struct ends *d, size_t len)
{
	OK(rpma_write(d->cli, d->at_srv, 0, d->cli_mr, 0, len, RPMA_F_COMPLETION_ON_ERROR, NULL));
	ends_flush(d->cli, d->at_srv, 0, len);
}

/* Wait some seconds until both ends have sent through the rings. Returns false if they have not. */
static bool goes_over(struct ends *d)
{
	for (int i = 0; i < 3000; i++) {
		write_and_flush(d, 64);
		if (ends_counter(d->cli, "shm_tx_bytes") && ends_counter(d->srv, "shm_tx_bytes"))
			return true;
		if (shm_is_off() && i > 100)
			return false;
		if (i > 100)
			ends_sleep_ms(1);
	}
	return false;
}

static void every_operation_goes_through_the_rings(void **state)
{
	struct ends d;
	uint64_t tcp;

	ends_open(&d, NULL);
	assert_int_equal(goes_over(&d), !shm_is_off());
	assert_int_equal(count_rings(), shm_is_off() ? 0 : 2);
	assert_int_equal(ends_counter(d.cli, "shm_state"), shm_is_off() ? 0 : 2);
	assert_int_equal(ends_counter(d.srv, "shm_state"), shm_is_off() ? 0 : 2);
	tcp = ends_counter(d.cli, "tx_bytes") - ends_counter(d.cli, "shm_tx_bytes");
	ends_fill(d.cli_buf, ENDS_BUF, 1);
	write_and_flush(&d, ENDS_BUF);
	assert_true(ends_is_filled(d.srv_buf, ENDS_BUF, 1));
	memset(d.cli_buf, 0, ENDS_BUF);
	OK(rpma_read(d.cli, d.cli_mr, 0, d.at_srv, 0, ENDS_BUF, RPMA_F_COMPLETION_ALWAYS, NULL));
	ends_expect_wc(d.cli, IBV_WC_RDMA_READ, NULL);
	assert_true(ends_is_filled(d.cli_buf, ENDS_BUF, 1));
	OK(rpma_recv(d.srv, d.srv_mr, 0, 4096, &d));
	OK(rpma_send(d.cli, d.cli_mr, 128, 4096, RPMA_F_COMPLETION_ON_ERROR, NULL));
	ends_expect_received(d.srv, 4096, &d);
	if (!shm_is_off())
		assert_int_equal(
			ends_counter(d.cli, "tx_bytes") - ends_counter(d.cli, "shm_tx_bytes"), tcp);
	ends_close(&d);
	expect_no_rings();
}

/* The transfers are longer than the rings and go in both directions, so both ends wait for free
 * space. */
static void long_transfers_both_ways_arrive_whole(void **state)
{
	const struct ends_opts opts = {.buf_size = 2 * BIG};
	struct ends d;

	ends_open(&d, &opts);
	goes_over(&d);
	for (unsigned round = 0; round < 4; round++) {
		ends_fill(d.cli_buf, BIG, round);
		ends_fill(d.srv_buf, BIG, round + 100);
		OK(rpma_write(d.cli, d.at_srv, BIG, d.cli_mr, 0, BIG, RPMA_F_COMPLETION_ON_ERROR,
			      NULL));
		OK(rpma_write(d.srv, d.at_cli, BIG, d.srv_mr, 0, BIG, RPMA_F_COMPLETION_ON_ERROR,
			      NULL));
		OK(rpma_flush(d.srv, d.at_cli, BIG, BIG, RPMA_FLUSH_TYPE_VISIBILITY,
			      RPMA_F_COMPLETION_ALWAYS, NULL));
		ends_flush(d.cli, d.at_srv, BIG, BIG);
		ends_expect_wc(d.srv, ends_flush_opcode(), NULL);
		assert_true(ends_is_filled(d.srv_buf + BIG, BIG, round));
		assert_true(ends_is_filled(d.cli_buf + BIG, BIG, round + 100));
	}
	ends_close(&d);
}

/* SOFTRNIC_SHM_AFTER sets the amount of traffic that starts the move, so that idle connections need
 * no rings. */
static void a_connection_that_carries_little_has_no_rings(void **state)
{
	struct ends d;

	if (getenv("SOFTRNIC_SHM_AFTER"))
		skip();
	ends_open(&d, NULL);
	write_and_flush(&d, 64);
	ends_sleep_ms(50);
	/* the connections of earlier tests have unmapped their rings */
	assert_int_equal(count_rings(), 0);
	ends_close(&d);
}

/* The memory for rings is too small for all connections: those without rings stay on TCP. */
static void without_memory_for_rings_a_connection_stays_on_tcp(void **state)
{
	struct ends d;

	if (!getenv("SOFTRNIC_SHM_MAX_MIB"))
		skip();
	ends_open(&d, NULL);
	assert_false(goes_over(&d));
	assert_int_equal(count_rings(), 0);
	assert_int_equal(ends_counter(d.srv, "shm_state"), SHM_STATE_MAX_REACHED);
	/* The server end's state depends on whether the message or the end of the socket arrives
	 * first. */
	assert_in_range(ends_counter(d.cli, "shm_state"), SHM_STATE_FIRST_WHY, SHM_STATE_LAST_WHY);
	ends_close(&d);
}

/* The child process does not use the rings, and its exit does not end the connection. */
static void a_forked_child_does_not_disturb_the_connection(void **state)
{
	struct ends d;
	int status;
	pid_t pid;

	ends_open(&d, NULL);
	goes_over(&d);
	pid = fork();
	if (pid == 0)
		_exit(count_rings() ? 1 : 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	for (unsigned i = 0; i < 100; i++) {
		ends_fill(d.cli_buf, 4096, i);
		write_and_flush(&d, 4096);
		assert_true(ends_is_filled(d.srv_buf, 4096, i));
	}
	ends_close(&d);
}

/* --- a peer that dies ----------------------------------------------------------------------- */

/* Runs in a child: connect, and write until the test kills the process. */
static void victim(const char *port, const char *desc, size_t size)
{
	struct rpma_conn_req *req = NULL;
	struct rpma_mr_remote *at = NULL;
	struct rpma_mr_local *mr = NULL;
	struct rpma_conn *conn = NULL;
	struct rpma_peer *peer = NULL;
	static uint8_t buf[4096];
	struct ibv_context *ctx;
	enum rpma_conn_event ev;
	struct rpma_cq *cq;
	struct ibv_wc wc;

	alarm(30);
	if (rpma_utils_get_ibv_context(ends_addr(), RPMA_UTIL_IBV_CONTEXT_REMOTE, &ctx) ||
	    rpma_peer_new(ctx, &peer) || rpma_mr_remote_from_descriptor(desc, size, &at) ||
	    rpma_mr_reg(peer, buf, sizeof(buf), RPMA_MR_USAGE_WRITE_SRC, &mr) ||
	    rpma_conn_req_new(peer, ends_addr(), port, NULL, &req) ||
	    rpma_conn_req_connect(&req, NULL, &conn) || rpma_conn_next_event(conn, &ev) ||
	    rpma_conn_get_cq(conn, &cq))
		_exit(1);
	for (;;)
		if (rpma_write(conn, at, 0, mr, 0, 512, RPMA_F_COMPLETION_ON_ERROR, NULL) ||
		    rpma_flush(conn, at, 0, 512, RPMA_FLUSH_TYPE_VISIBILITY,
			       RPMA_F_COMPLETION_ALWAYS, NULL) ||
		    rpma_cq_wait(cq) || rpma_cq_get_wc(cq, 1, &wc, NULL))
			_exit(1);
}

static void sleep_us(unsigned us)
{
	nanosleep(&(struct timespec){.tv_nsec = (long)us * 1000}, NULL);
}

/* The connection can end before its first event. */
static void expect_end(struct ends *d, pid_t pid, unsigned us)
{
	enum rpma_conn_event ev = RPMA_CONN_UNDEFINED;
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;
	int fd;

	OK(rpma_ep_get_fd(d->ep, &fd));
	assert_true(ends_readable(fd, 5000));
	OK(rpma_ep_next_conn_req(d->ep, NULL, &req));
	if (rpma_conn_req_connect(&req, NULL, &conn))
		fail_msg("connect");
	sleep_us(us);
	kill(pid, SIGKILL);
	while (ev != RPMA_CONN_CLOSED && ev != RPMA_CONN_LOST && ev != RPMA_CONN_UNREACHABLE &&
	       ev != RPMA_CONN_REJECTED)
		assert_true(ends_event_within(conn, 5000, &ev));
	OK(rpma_conn_delete(&conn));
}

static void a_peer_that_is_killed_at_any_moment_is_noticed_and_leaves_nothing(void **state)
{
	uint64_t seed = 4711;
	struct ends d;
	char desc[64];
	size_t size;
	int fds = 0;

	ends_open(&d, NULL); /* the child processes write to d's region */
	OK(rpma_mr_get_descriptor_size(d.srv_mr, &size));
	OK(rpma_mr_get_descriptor(d.srv_mr, desc));
	for (int i = 0; i < KILLS; i++) {
		pid_t pid = fork();

		if (pid == 0)
			victim(d.port, desc, size);
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		expect_end(&d, pid, (unsigned)(seed >> 33) % 3000);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		if (i == 0)
			fds = count_fds();
	}
	/* The device's thread closes the last descriptors a moment later. */
	for (int ms = 0; ms < 10000 && count_fds() > fds + 1; ms++)
		sleep_us(1000);
	assert_in_range(count_fds(), 1, fds + 1);
	ends_close(&d);
	expect_no_rings();
}

/* Accept a connection with a short liveness limit. */
static struct rpma_conn *accept_impatiently(struct ends *d)
{
	enum rpma_conn_event ev = RPMA_CONN_UNDEFINED;
	struct rpma_conn_req *req = NULL;
	struct rpma_conn_cfg *cfg = NULL;
	struct rpma_conn *conn = NULL;
	int fd;

	OK(rpma_conn_cfg_new(&cfg));
	OK(rpma_conn_cfg_set_liveness(cfg, LIVENESS_MS));
	OK(rpma_ep_get_fd(d->ep, &fd));
	assert_true(ends_readable(fd, 5000));
	OK(rpma_ep_next_conn_req(d->ep, cfg, &req));
	OK(rpma_conn_req_connect(&req, NULL, &conn));
	OK(rpma_conn_cfg_delete(&cfg));
	assert_true(ends_event_within(conn, 5000, &ev));
	assert_int_equal(ev, RPMA_CONN_ESTABLISHED);
	return conn;
}

/* A stopped process still exists, so its sockets and its memory are kept. */
static void a_peer_that_stops_after_moving_to_rings_is_lost(void **state)
{
	enum rpma_conn_event ev = RPMA_CONN_UNDEFINED;
	struct rpma_conn *conn;
	char desc[64];
	struct ends d;
	size_t size;
	pid_t pid;

	if (shm_is_off())
		skip();
	ends_open(&d, NULL); /* the child process writes to d's region */
	OK(rpma_mr_get_descriptor_size(d.srv_mr, &size));
	OK(rpma_mr_get_descriptor(d.srv_mr, desc));
	pid = fork();
	if (pid == 0)
		victim(d.port, desc, size);
	conn = accept_impatiently(&d);
	for (int ms = 0; ms < 10000 && !ends_counter(conn, "shm_rx_bytes"); ms++)
		sleep_us(1000);
	assert_true(ends_counter(conn, "shm_rx_bytes") > 0);
	kill(pid, SIGSTOP);
	assert_true(ends_event_within(conn, 20000, &ev));
	assert_int_equal(ev, RPMA_CONN_LOST);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	OK(rpma_conn_delete(&conn));
	ends_close(&d);
	expect_no_rings();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_operation_goes_through_the_rings),
		cmocka_unit_test(long_transfers_both_ways_arrive_whole),
		cmocka_unit_test(a_connection_that_carries_little_has_no_rings),
		cmocka_unit_test(a_forked_child_does_not_disturb_the_connection),
		cmocka_unit_test(a_peer_that_is_killed_at_any_moment_is_noticed_and_leaves_nothing),
		cmocka_unit_test(a_peer_that_stops_after_moving_to_rings_is_lost),
	};
	const struct CMUnitTest full[] = {
		cmocka_unit_test(without_memory_for_rings_a_connection_stays_on_tcp),
	};

	if (getenv("SOFTRNIC_SHM_MAX_MIB"))
		return cmocka_run_group_tests(full, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
