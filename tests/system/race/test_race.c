/* SPDX-License-Identifier: BSD-3-Clause */
/* test_race.c -- an id is destroyed while one of its events occurs. */
#include "system/lib/check.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "softrnic/softrnic.h"
#include "system/lib/gauge.h"
#include "system/lib/remote.h"

#define ROUNDS         (SYSTEM_SANITIZED ? 400 : 2000)
#define HANDSHAKES_MAX 1024 /* limit of handshakes at an endpoint (softrnic(7)) */
#define FLOOD_MAX      3000
#define FLOODS         20

static struct sockaddr_in loopback(int port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons((uint16_t)port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* --- a thread takes an event while its id is destroyed ---------------------------------------- */

struct reader {
	struct rdma_event_channel *channel;
	atomic_bool stop;
	unsigned long taken;
};

static void *take_events(void *arg)
{
	struct reader *r = arg;
	struct rdma_cm_event *event;

	while (!softrnic_get_cm_event(r->channel, &event)) {
		r->taken++;
		if (softrnic_ack_cm_event(event))
			break;
		if (atomic_load(&r->stop))
			break;
	}
	return NULL;
}

static void one_short_life(struct reader *r, struct sockaddr_in *dst)
{
	struct rdma_cm_id *id;

	assert_int_equal(softrnic_create_id(r->channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(softrnic_resolve_addr(id, NULL, (struct sockaddr *)dst, 1000), 0);
	softrnic_destroy_id(id);
}

static void an_id_goes_while_its_event_is_taken(void **state)
{
	struct sockaddr_in dst = loopback(1);
	struct reader r = {.channel = softrnic_create_event_channel()};
	struct rdma_cm_id *last;
	pthread_t thread;

	assert_non_null(r.channel);
	assert_int_equal(pthread_create(&thread, NULL, take_events, &r), 0);
	for (int i = 0; i < 20 * ROUNDS; i++)
		one_short_life(&r, &dst);
	atomic_store(&r.stop, true);
	assert_int_equal(softrnic_create_id(r.channel, &last, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(softrnic_resolve_addr(last, NULL, (struct sockaddr *)&dst, 1000), 0);
	pthread_join(thread, NULL);
	softrnic_destroy_id(last);
	softrnic_destroy_event_channel(r.channel);
}

/* --- a connection is established while its id is destroyed ------------------------------------ */

static void a_connection_is_given_up_while_it_comes_about(void **state)
{
	static const char *const regions[] = {"anon:4096:0xff", NULL};
	struct rpma_peer *peer;
	struct ibv_context *ctx;
	struct remote target;

	assert_int_equal(remote_start(&target, SYSTEM_TARGET, regions, NULL), 0);
	OK(rpma_utils_get_ibv_context("127.0.0.1", RPMA_UTIL_IBV_CONTEXT_REMOTE, &ctx));
	OK(rpma_peer_new(ctx, &peer));
	for (unsigned i = 0; i < ROUNDS / 4; i++) {
		struct rpma_conn_req *req;
		struct rpma_conn *conn;

		OK(rpma_conn_req_new(peer, "127.0.0.1", target.port, NULL, &req));
		OK(rpma_conn_req_connect(&req, NULL, &conn));
		usleep(i * 7 % 400);
		OK(rpma_conn_delete(&conn));
	}
	OK(rpma_peer_delete(&peer));
	assert_int_equal(proc_finish(&target.proc), 0);
}

/* --- a forked child destroys the listener and a pending connection request -------------------- */

static struct rdma_cm_id *listen_somewhere(struct rdma_event_channel *channel, char *port,
					   size_t size)
{
	struct sockaddr_in any = loopback(0);
	struct rdma_cm_id *id;

	assert_int_equal(softrnic_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(softrnic_bind_addr(id, (struct sockaddr *)&any), 0);
	assert_int_equal(softrnic_listen(id, 0), 0);
	snprintf(port, size, "%d", ntohs(id->route.addr.src_sin.sin_port));
	return id;
}

static void a_forked_child_drops_a_listener_before_its_request(void **state)
{
	struct rdma_event_channel *channel = softrnic_create_event_channel();
	struct rdma_cm_id *listener, *request;
	struct rdma_cm_event *event;
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	struct rpma_peer *peer;
	struct ibv_context *ctx;
	char port[16];
	int status;
	pid_t pid;

	assert_non_null(channel);
	listener = listen_somewhere(channel, port, sizeof(port));
	OK(rpma_utils_get_ibv_context("127.0.0.1", RPMA_UTIL_IBV_CONTEXT_REMOTE, &ctx));
	OK(rpma_peer_new(ctx, &peer));
	OK(rpma_conn_req_new(peer, "127.0.0.1", port, NULL, &req));
	OK(rpma_conn_req_connect(&req, NULL, &conn));
	assert_int_equal(softrnic_get_cm_event(channel, &event), 0);
	request = event->id;
	softrnic_ack_cm_event(event);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		softrnic_destroy_id(listener);
		softrnic_destroy_id(request);
		raise(SIGKILL); /* end without a leak check of the parent's memory */
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	softrnic_destroy_id(request);
	OK(rpma_conn_delete(&conn));
	OK(rpma_peer_delete(&peer));
	softrnic_destroy_id(listener);
	softrnic_destroy_event_channel(channel);
}

/* --- a listener is closed during a flood of handshakes that never complete -------------------- */

struct flood {
	struct sockaddr_in dst;
	atomic_uint dialed;
	atomic_bool stop;
};

/* Close the sockets by a reset, because otherwise all ports would be used up. */
static int dial_and_say_nothing(const struct sockaddr_in *dst)
{
	static const struct linger reset = {.l_onoff = 1};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	if (!connect(fd, (const struct sockaddr *)dst, sizeof(*dst)))
		return fd;
	close(fd);
	return -1;
}

static void *flood(void *arg)
{
	struct flood *f = arg;
	int fd[FLOOD_MAX], n = 0;

	while (n < FLOOD_MAX && !atomic_load(&f->stop)) {
		fd[n] = dial_and_say_nothing(&f->dst);
		if (fd[n] < 0)
			break;
		atomic_store(&f->dialed, (unsigned)++n);
	}
	atomic_store(&f->stop, true);
	while (n)
		close(fd[--n]);
	return NULL;
}

static void close_under_flood(struct rdma_event_channel *channel)
{
	struct flood f = {0};
	struct rdma_cm_id *listener;
	pthread_t thread;
	char port[16];

	listener = listen_somewhere(channel, port, sizeof(port));
	f.dst = loopback(atoi(port));
	assert_int_equal(pthread_create(&thread, NULL, flood, &f), 0);
	/* After this many handshakes, each new connection replaces the oldest one. */
	while (atomic_load(&f.dialed) < HANDSHAKES_MAX + 100 && !atomic_load(&f.stop))
		usleep(100);
	softrnic_destroy_id(listener);
	atomic_store(&f.stop, true);
	pthread_join(thread, NULL);
	assert_true(atomic_load(&f.dialed) > HANDSHAKES_MAX);
}

static void a_listener_is_closed_under_a_flood_of_handshakes(void **state)
{
	struct rdma_event_channel *channel = softrnic_create_event_channel();

	assert_non_null(channel);
	if (gauge_raise_nofile() < 2 * FLOOD_MAX) {
		print_message("not tried: ulimit -Hn is too low for %d sockets\n", 2 * FLOOD_MAX);
		softrnic_destroy_event_channel(channel);
		return;
	}
	for (int i = 0; i < FLOODS; i++)
		close_under_flood(channel);
	softrnic_destroy_event_channel(channel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_id_goes_while_its_event_is_taken),
		cmocka_unit_test(a_connection_is_given_up_while_it_comes_about),
		cmocka_unit_test(a_listener_is_closed_under_a_flood_of_handshakes),
		cmocka_unit_test(a_forked_child_drops_a_listener_before_its_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
