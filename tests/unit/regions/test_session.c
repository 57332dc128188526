/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A session that fails returns an error to its caller, in time and with a text; the process does
 * not end.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "regions/session.h"

#define LIMIT_MS 300
#define SLACK_MS 10000 /* slack for a busy machine, and for sanitizers */

/* Make a TCP socket on its own port. The parameter `listens` decides whether the socket listens. */
static int tcp_socket(bool listens, struct address *at)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(sin);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sin, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sin, &len), 0);
	if (listens)
		assert_int_equal(listen(fd, 8), 0);
	strcpy(at->host, "127.0.0.1");
	snprintf(at->port, sizeof(at->port), "%u", (unsigned)ntohs(sin.sin_port));
	return fd;
}

static struct session_opts opts_for(const struct address *at)
{
	return (struct session_opts){.server = *at,
				     .region = "pool",
				     .access = HELLO_READ,
				     .depth = 4,
				     .timeout_ms = LIMIT_MS};
}

static uint64_t now_ms(void)
{
	return clock_now_ns() / NSEC_PER_MS;
}

static void a_server_that_never_answers_is_unreached_at_the_limit(void **state)
{
	struct session_opts opts;
	struct session s;
	struct error err;
	uint64_t begun = now_ms();
	struct address at;
	int fd = tcp_socket(true, &at);

	opts = opts_for(&at);
	assert_int_equal(session_open(&s, &opts, &err), ERROR_UNREACHED);
	assert_in_range(now_ms() - begun, LIMIT_MS, LIMIT_MS + SLACK_MS);
	assert_non_null(strstr(err.text, "does not answer"));
	assert_non_null(strstr(err.text, at.port));
	session_close(&s); /* a repeated call does no harm */
	close(fd);
}

static void nobody_there_is_reported_and_without_a_text_as_well(void **state)
{
	struct session_opts opts;
	struct session s;
	struct error err;
	struct address at;
	int fd = tcp_socket(false, &at);

	opts = opts_for(&at);
	opts.timeout_ms = SLACK_MS;
	assert_int_equal(session_open(&s, &opts, &err), ERROR_UNREACHED);
	assert_non_null(strstr(err.text, "the host refused the connection"));
	assert_int_equal(session_open(&s, &opts, NULL), ERROR_UNREACHED);
	close(fd);
}

/* A server of the test, which answers one request with fixed bytes. */
struct server {
	struct rpma_peer *peer;
	struct rpma_ep *ep;
	struct address at;
	unsigned delay_ms; /* the server listens after this delay */
	uint8_t answer[HELLO_MAX];
	uint8_t answer_len;
	bool reject;
	pthread_t thread;
};

static void server_listen(struct server *sv)
{
	struct ibv_context *context;
	uint16_t port;

	assert_int_equal(
		rpma_utils_get_ibv_context("127.0.0.1", RPMA_UTIL_IBV_CONTEXT_LOCAL, &context), 0);
	assert_int_equal(rpma_peer_new(context, &sv->peer), 0);
	if (!sv->at.port[0])
		strcpy(sv->at.port, "0");
	usleep(sv->delay_ms * 1000);
	assert_int_equal(rpma_ep_listen(sv->peer, "127.0.0.1", sv->at.port, &sv->ep), 0);
	assert_int_equal(rpma_ep_get_port(sv->ep, &port), 0);
	snprintf(sv->at.port, sizeof(sv->at.port), "%u", port);
	strcpy(sv->at.host, "127.0.0.1");
}

static void *server_answer(void *arg)
{
	struct server *sv = arg;
	struct rpma_conn_private_data ours = {sv->answer, sv->answer_len};
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	struct rpma_conn_req *req;
	struct rpma_conn *conn;

	if (!sv->ep)
		server_listen(sv);
	assert_int_equal(rpma_ep_next_conn_req_timeout(sv->ep, NULL, SLACK_MS, &req), 0);
	if (sv->reject) {
		assert_int_equal(rpma_conn_req_reject(&req, NULL), 0);
		return NULL;
	}
	assert_int_equal(rpma_conn_req_connect(&req, &ours, &conn), 0);
	while (event != RPMA_CONN_CLOSED && event != RPMA_CONN_LOST)
		assert_int_equal(rpma_conn_next_event_timeout(conn, SLACK_MS, &event), 0);
	rpma_conn_disconnect(conn);
	assert_int_equal(rpma_conn_delete(&conn), 0);
	return NULL;
}

static void server_start(struct server *sv)
{
	assert_int_equal(pthread_create(&sv->thread, NULL, server_answer, sv), 0);
}

static void server_stop(struct server *sv)
{
	assert_int_equal(pthread_join(sv->thread, NULL), 0);
	assert_int_equal(rpma_ep_shutdown(&sv->ep), 0);
	assert_int_equal(rpma_peer_delete(&sv->peer), 0);
}

static void refuse_with(enum hello_status status, struct error *err)
{
	struct hello_reply reply = {
		.version = HELLO_VERSION, .status = (uint8_t)status, .region = "other"};
	struct server sv = {.delay_ms = 0};
	struct session_opts opts;
	struct session s;

	sv.answer_len = (uint8_t)hello_reply_encode(&reply, sv.answer);
	server_listen(&sv);
	server_start(&sv);
	opts = opts_for(&sv.at);
	opts.timeout_ms = SLACK_MS;
	assert_int_equal(session_open(&s, &opts, err), ERROR_REFUSED);
	server_stop(&sv);
}

static void a_refusal_names_its_reason(void **state)
{
	struct error err;

	refuse_with(HELLO_BUSY, &err);
	assert_int_equal(err.cause, HELLO_BUSY);
	assert_non_null(strstr(err.text, "try again later"));
	refuse_with(HELLO_NO_REGION, &err);
	assert_int_equal(err.cause, HELLO_NO_REGION);
	assert_non_null(strstr(err.text, "'pool'"));
	assert_non_null(strstr(err.text, "'other'"));
	refuse_with(HELLO_SECRET_NEEDED, &err);
	assert_int_equal(err.cause, HELLO_SECRET_NEEDED);
	refuse_with(HELLO_FILE_REMOVED, &err);
	assert_int_equal(err.cause, HELLO_FILE_REMOVED);
	refuse_with((enum hello_status)(HELLO_STATUS_COUNT + 5), &err);
	assert_int_equal(err.cause, HELLO_BAD_VERSION);
}

static void a_server_of_another_kind_is_recognised(void **state)
{
	struct server sv = {.answer = "good morning", .answer_len = 12};
	struct session_opts opts;
	struct error err;
	struct session s;

	server_listen(&sv);
	server_start(&sv);
	opts = opts_for(&sv.at);
	opts.timeout_ms = SLACK_MS;
	assert_int_equal(session_open(&s, &opts, &err), ERROR_REFUSED);
	assert_non_null(strstr(err.text, "is of an unknown version"));
	server_stop(&sv);
}

static void a_rejection_by_an_application_is_a_refusal(void **state)
{
	struct server sv = {.reject = true};
	struct session_opts opts;
	struct error err;
	struct session s;

	server_listen(&sv);
	server_start(&sv);
	opts = opts_for(&sv.at);
	opts.timeout_ms = opts.retry_ms = SLACK_MS;
	assert_int_equal(session_open(&s, &opts, &err), ERROR_REFUSED);
	assert_int_equal(err.cause, HELLO_BUSY);
	server_stop(&sv);
}

static struct hello_reply listing_reply(void)
{
	return (struct hello_reply){.version = HELLO_VERSION, .status = HELLO_OK};
}

/* The server begins to listen only after the client has begun to connect. */
static void a_server_that_is_being_started_is_waited_for(void **state)
{
	struct hello_reply reply = listing_reply();
	struct server sv = {.delay_ms = 700};
	struct session_opts opts;
	struct error err;
	struct session s;
	int fd = tcp_socket(false, &sv.at);

	close(fd); /* the port is free now, and very likely stays free */
	sv.answer_len = (uint8_t)hello_reply_encode(&reply, sv.answer);
	server_start(&sv);
	opts = opts_for(&sv.at);
	opts.access = HELLO_LIST;
	opts.timeout_ms = SLACK_MS;
	opts.retry_ms = SLACK_MS;
	if (session_open(&s, &opts, &err))
		fail_msg("%s", err.text);
	session_close(&s);
	server_stop(&sv);
}

#define TWO_ADDRESSES "two.invalid" /* a name that resolves to 127.0.0.2 and 127.0.0.1 */

/* Replaces the C library's getaddrinfo(), and adds TWO_ADDRESSES. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		struct addrinfo **list)
{
	int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
		(__typeof__(next))dlsym(RTLD_NEXT, "getaddrinfo");
	int rc;

	if (!node || strcmp(node, TWO_ADDRESSES) != 0)
		return next(node, service, hints, list);
	rc = next("127.0.0.2", service, hints, list);
	return rc ? rc : next("127.0.0.1", service, hints, &(*list)->ai_next);
}

static void each_address_of_a_name_is_tried(void **state)
{
	struct hello_reply reply = listing_reply();
	struct server sv = {.delay_ms = 0};
	struct session_opts opts;
	struct error err;
	struct session s;

	sv.answer_len = (uint8_t)hello_reply_encode(&reply, sv.answer);
	server_listen(&sv);
	server_start(&sv);
	opts = opts_for(&sv.at);
	strcpy(opts.server.host, TWO_ADDRESSES);
	opts.access = HELLO_LIST;
	opts.timeout_ms = SLACK_MS;
	if (session_open(&s, &opts, &err))
		fail_msg("%s", err.text);
	session_close(&s);
	server_stop(&sv);
}

static void waiting_for_a_server_ends_at_the_limit(void **state)
{
	struct session_opts opts;
	uint64_t begun = now_ms();
	struct session s;
	struct address at;
	int fd = tcp_socket(false, &at);

	opts = opts_for(&at);
	opts.timeout_ms = SLACK_MS;
	opts.retry_ms = LIMIT_MS;
	assert_int_equal(session_open(&s, &opts, NULL), ERROR_UNREACHED);
	assert_in_range(now_ms() - begun, LIMIT_MS, LIMIT_MS + SLACK_MS);
	close(fd);
}

static void an_answer_that_does_not_come_is_an_error_at_the_limit(void **state)
{
	struct hello_reply reply = listing_reply();
	struct server sv = {.delay_ms = 0};
	struct session_opts opts;
	struct hello_list list;
	struct session s;
	struct error err;
	uint64_t begun;

	sv.answer_len = (uint8_t)hello_reply_encode(&reply, sv.answer);
	server_listen(&sv);
	server_start(&sv);
	opts = opts_for(&sv.at);
	opts.access = HELLO_LIST;
	opts.timeout_ms = SLACK_MS;
	assert_int_equal(session_open(&s, &opts, &err), 0);
	s.timeout_ms = LIMIT_MS;
	begun = now_ms();
	assert_int_equal(session_list(&s, &list, &err), ERROR_FAILED);
	assert_in_range(now_ms() - begun, LIMIT_MS, LIMIT_MS + SLACK_MS);
	session_close(&s);
	server_stop(&sv);
}

static void the_end_of_a_connection_ends_a_wait(void **state)
{
	struct hello_reply reply = listing_reply();
	struct server sv = {.delay_ms = 0};
	struct session_opts opts;
	struct session s;
	struct ibv_wc wc;

	sv.answer_len = (uint8_t)hello_reply_encode(&reply, sv.answer);
	server_listen(&sv);
	server_start(&sv);
	opts = opts_for(&sv.at);
	opts.access = HELLO_LIST;
	opts.timeout_ms = SLACK_MS;
	assert_int_equal(session_open(&s, &opts, NULL), 0);
	assert_int_equal(completions_next(&s.completions, 10, 0, &wc), COMPLETIONS_TIMEOUT);
	assert_int_equal(rpma_conn_disconnect(s.conn), 0);
	while (completions_next(&s.completions, SLACK_MS, 0, &wc) == COMPLETIONS_ONE)
		/* receives that still wait must fail at the end */
		assert_int_not_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(completions_next(&s.completions, SLACK_MS, 0, &wc), COMPLETIONS_CLOSED);
	session_close(&s);
	server_stop(&sv);
}

/* A descriptor has an address, a length and an STag. */
#define DESC_LENGTH_AT 8
#define DESC_STAG_AT   16

/* Read the second page of a region that has only one page, through a changed descriptor. */
static void read_with(void (*spoil)(uint8_t *desc), struct error *err)
{
	static uint8_t memory[4096], page[4096];
	struct hello_reply reply = listing_reply();
	struct server sv = {.delay_ms = 0};
	struct rpma_mr_local *served, *mr;
	struct session_opts opts;
	struct session s;
	size_t len;

	server_listen(&sv);
	assert_int_equal(
		rpma_mr_reg(sv.peer, memory, sizeof(memory), RPMA_MR_USAGE_READ_SRC, &served), 0);
	assert_int_equal(rpma_mr_get_descriptor_size(served, &len), 0);
	assert_int_equal(rpma_mr_get_descriptor(served, reply.mr), 0);
	spoil(reply.mr);
	reply.mr_len = (uint8_t)len;
	reply.pcfg_len = 1;
	reply.size = 2 * sizeof(memory);
	sv.answer_len = (uint8_t)hello_reply_encode(&reply, sv.answer);
	server_start(&sv);
	opts = opts_for(&sv.at);
	opts.timeout_ms = SLACK_MS;
	if (session_open(&s, &opts, err))
		fail_msg("%s", err->text);
	assert_int_equal(session_register(&s, page, sizeof(page), &mr, err), 0);
	assert_int_equal(rpma_read(s.conn, mr, 0, s.remote, sizeof(memory), 4096,
				   RPMA_F_COMPLETION_ALWAYS, NULL),
			 0);
	assert_int_equal(session_reap(&s, 0, NULL, err), ERROR_FAILED);
	rpma_mr_dereg(&mr);
	session_close(&s);
	assert_int_equal(rpma_mr_dereg(&served), 0);
	server_stop(&sv);
}

static void spoil_length(uint8_t *desc)
{
	desc[DESC_LENGTH_AT + 1] = 0x20; /* claims twice the region's length */
}

static void spoil_stag(uint8_t *desc)
{
	spoil_length(desc);
	desc[DESC_STAG_AT + 1] ^= 0xff;
}

static void only_a_range_that_is_refused_means_lost_memory(void **state)
{
	struct error err;

	read_with(spoil_length, &err);
	assert_int_equal(err.cause, EFAULT);
	assert_non_null(strstr(err.text, "is gone"));
	read_with(spoil_stag, &err);
	assert_int_equal(err.cause, 0);
	assert_null(strstr(err.text, "is gone"));
}

static void write_secret(const char *name, const char *text, mode_t mode)
{
	FILE *f = fopen(name, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	assert_int_equal(chmod(name, mode), 0);
}

static void a_bad_secret_file_is_an_error_that_names_it(void **state)
{
	static const char good[] = "0123456789abcdef\n";
	struct secret secret, same;
	struct error err;

	write_secret("session-secret", good, 0600);
	assert_int_equal(secret_load(&secret, "session-secret", &err), 0);
	write_secret("session-secret", "0123456789abcdef", 0600);
	assert_int_equal(secret_load(&same, "session-secret", &err), 0);
	/* the key file may end with a newline or without one */
	assert_memory_equal(&same, &secret, sizeof(same));
	write_secret("session-secret", good, 0644);
	assert_int_equal(secret_load(&secret, "session-secret", &err), ERROR_LOCAL);
	assert_non_null(strstr(err.text, "session-secret is open to others"));
	write_secret("session-secret", "short", 0600);
	assert_int_equal(secret_load(&secret, "session-secret", &err), ERROR_LOCAL);
	assert_non_null(strstr(err.text, "less than 16"));
	unlink("session-secret");
	assert_int_equal(secret_load(&secret, "session-secret", &err), ERROR_LOCAL);
	assert_int_equal(err.cause, ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_server_that_never_answers_is_unreached_at_the_limit),
		cmocka_unit_test(nobody_there_is_reported_and_without_a_text_as_well),
		cmocka_unit_test(a_refusal_names_its_reason),
		cmocka_unit_test(a_server_of_another_kind_is_recognised),
		cmocka_unit_test(a_rejection_by_an_application_is_a_refusal),
		cmocka_unit_test(a_server_that_is_being_started_is_waited_for),
		cmocka_unit_test(each_address_of_a_name_is_tried),
		cmocka_unit_test(waiting_for_a_server_ends_at_the_limit),
		cmocka_unit_test(an_answer_that_does_not_come_is_an_error_at_the_limit),
		cmocka_unit_test(the_end_of_a_connection_ends_a_wait),
		cmocka_unit_test(only_a_range_that_is_refused_means_lost_memory),
		cmocka_unit_test(a_bad_secret_file_is_an_error_that_names_it),
	};

	/* This test does not concern RDMA devices, so do not use one. */
	setenv("RPMA_PROVIDER", "softrnic", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
