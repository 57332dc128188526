/* SPDX-License-Identifier: BSD-3-Clause */
/* test_opening.c -- connect and wait in one call. The attempt is repeated until a listener exists,
 * at most until the deadline; a rejection by the application is not repeated. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "ends.h"
#include "timing.h"

enum { LIMIT_MS = 400, LATE_MS = 700 };

struct opening {
	struct ends d; /* the server's ends */
	struct rpma_peer *peer;
	unsigned delay_ms; /* the server listens after this delay */
	/* true: the server rejects the request; false: it accepts */
	bool rejects;
	const struct rpma_conn_private_data *pdata; /* private data of the server's answer */
	unsigned requests;                          /* requests that reached the server */
	pthread_t thread;
};

static struct rpma_peer *active_peer(void)
{
	struct rpma_peer *peer;
	struct ibv_context *ctx;

	OK(rpma_utils_get_ibv_context(ends_addr(), RPMA_UTIL_IBV_CONTEXT_REMOTE, &ctx));
	OK(rpma_peer_new(ctx, &peer));
	return peer;
}

static struct rpma_conn_open_attr attr_to(const char *port)
{
	return (struct rpma_conn_open_attr){.size = sizeof(struct rpma_conn_open_attr),
					    .addr = ends_addr(),
					    .port = port,
					    .timeout_ms = SLACK_MS};
}

static void *serve_one(void *arg)
{
	struct opening *o = arg;
	enum rpma_conn_event event;
	struct rpma_conn_req *req;

	if (o->delay_ms) {
		usleep(o->delay_ms * 1000);
		OK(rpma_ep_listen(o->d.peer, ends_addr(), o->d.port, &o->d.ep));
	}
	OK(rpma_ep_next_conn_req_timeout(o->d.ep, NULL, SLACK_MS, &req));
	o->requests++;
	if (o->rejects) {
		OK(rpma_conn_req_reject(&req, o->pdata));
		return NULL;
	}
	OK(rpma_conn_req_connect(&req, o->pdata, &o->d.srv));
	OK(rpma_conn_next_event_timeout(o->d.srv, SLACK_MS, &event));
	assert_int_equal(event, RPMA_CONN_ESTABLISHED);
	return NULL;
}

static void opening_begin(struct opening *o)
{
	if (o->delay_ms) {
		struct ibv_context *ctx;

		ends_free_port(o->d.port);
		OK(rpma_utils_get_ibv_context(ends_addr(), RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx));
		OK(rpma_peer_new(ctx, &o->d.peer));
	} else {
		ends_listen(&o->d, NULL);
	}
	o->peer = active_peer();
	assert_int_equal(pthread_create(&o->thread, NULL, serve_one, o), 0);
}

static void opening_end(struct opening *o)
{
	assert_int_equal(pthread_join(o->thread, NULL), 0);
	OK(rpma_conn_delete(&o->d.cli));
	OK(rpma_conn_delete(&o->d.srv));
	OK(rpma_ep_shutdown(&o->d.ep));
	OK(rpma_peer_delete(&o->peer));
	OK(rpma_peer_delete(&o->d.peer));
}

static void it_returns_the_connection_when_it_is_established(void **state)
{
	const struct rpma_conn_private_data word = {(char[]){"welcome"}, 8};
	struct opening o = {.pdata = &word};
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	struct rpma_conn_private_data got;
	struct rpma_conn_open_attr attr;

	opening_begin(&o);
	attr = attr_to(o.d.port);
	OK(rpma_conn_open(o.peer, &attr, &event, &o.d.cli));
	assert_int_equal(event, RPMA_CONN_ESTABLISHED);
	OK(rpma_conn_get_private_data(o.d.cli, &got));
	assert_memory_equal(got.ptr, "welcome", 8);
	opening_end(&o);
}

static void a_server_that_starts_later_is_waited_for(void **state)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	struct opening o = {.delay_ms = LATE_MS};
	struct rpma_conn_open_attr attr;
	uint64_t begin = now_ms();

	opening_begin(&o);
	attr = attr_to(o.d.port);
	attr.retry_ms = -1;
	OK(rpma_conn_open(o.peer, &attr, &event, &o.d.cli));
	assert_int_equal(event, RPMA_CONN_ESTABLISHED);
	assert_true(now_ms() - begin >= LATE_MS - 1);
	opening_end(&o);
}

static void no_call_waits_until_the_deadline(void **state)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	struct rpma_peer *peer = active_peer();
	struct rpma_conn_open_attr attr;
	struct rpma_conn *conn = NULL;
	char port[8];

	ends_free_port(port);
	attr = attr_to(port);
	TAKES(0, RPMA_E_AGAIN, rpma_conn_open(peer, &attr, &event, &conn));
	attr.retry_ms = LIMIT_MS;
	TAKES(LIMIT_MS, RPMA_E_AGAIN, rpma_conn_open(peer, &attr, &event, &conn));
	attr.retry_ms = -1;
	attr.timeout_ms = LIMIT_MS;
	TAKES(LIMIT_MS, RPMA_E_AGAIN, rpma_conn_open(peer, &attr, &event, &conn));
	assert_int_equal(event, RPMA_CONN_UNDEFINED);
	assert_null(conn);
	OK(rpma_peer_delete(&peer));
}

static void no_answer_is_something_else_and_ends_at_the_deadline(void **state)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	struct rpma_peer *peer = active_peer();
	struct rpma_conn_open_attr attr;
	struct rpma_conn *conn = NULL;
	struct ends d = {0};

	ends_listen(&d, NULL); /* no program answers the request */
	attr = attr_to(d.port);
	attr.timeout_ms = LIMIT_MS;
	TAKES(LIMIT_MS, RPMA_E_NO_EVENT, rpma_conn_open(peer, &attr, &event, &conn));
	assert_int_equal(event, RPMA_CONN_UNDEFINED);
	assert_null(conn);
	OK(rpma_peer_delete(&peer));
	ends_close(&d);
}

static void reject_with(const struct rpma_conn_private_data *word)
{
	struct opening o = {.rejects = true, .pdata = word};
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	struct rpma_conn_private_data got;
	struct rpma_conn_open_attr attr;

	opening_begin(&o);
	attr = attr_to(o.d.port);
	attr.retry_ms = -1;
	OK(rpma_conn_open(o.peer, &attr, &event, &o.d.cli));
	assert_int_equal(event, RPMA_CONN_REJECTED);
	OK(rpma_conn_get_private_data(o.d.cli, &got));
	if (word)
		assert_memory_equal(got.ptr, word->ptr, word->len);
	assert_int_equal(o.requests, 1);
	opening_end(&o);
}

static void a_refusal_of_the_application_is_final(void **state)
{
	const struct rpma_conn_private_data word = {(char[]){"not today"}, 10};

	reject_with(&word);
	if (ends_is_kernels() && ends_is_tcp())
		return; /* on siw a rejection without private data has another reason */
	reject_with(NULL);
}

struct preparation {
	struct rpma_mr_local *mr;
	unsigned calls;
	int ret;
};

static int prepare(struct rpma_conn_req *req, void *arg)
{
	struct preparation *p = arg;

	p->calls++;
	return p->ret ? p->ret : rpma_conn_req_recv(req, p->mr, 0, 8, p);
}

static void each_attempt_is_prepared(void **state)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	struct opening o = {.delay_ms = LATE_MS};
	struct rpma_conn_open_attr attr;
	struct preparation p = {0};
	char buf[8] = "";
	struct ibv_wc wc;

	opening_begin(&o);
	OK(rpma_mr_reg(o.peer, buf, sizeof(buf), RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &p.mr));
	attr = attr_to(o.d.port);
	attr.retry_ms = -1;
	attr.prepare = prepare;
	attr.arg = &p;
	OK(rpma_conn_open(o.peer, &attr, &event, &o.d.cli));
	assert_true(p.calls > 1);
	OK(rpma_conn_disconnect(o.d.cli));
	/* only the receive of the successful attempt has a completion */
	ends_wait_wc(o.d.cli, &wc);
	assert_ptr_equal((void *)(uintptr_t)wc.wr_id, &p);
	p = (struct preparation){.mr = p.mr, .ret = RPMA_E_NOMEM};
	OK(rpma_conn_delete(&o.d.cli));
	assert_int_equal(rpma_conn_open(o.peer, &attr, &event, &o.d.cli), RPMA_E_NOMEM);
	assert_int_equal(p.calls, 1);
	assert_null(o.d.cli);
	OK(rpma_mr_dereg(&p.mr));
	opening_end(&o);
}

static void a_lost_server_is_found_again_with_the_same_description(void **state)
{
	struct opening o = {.delay_ms = 1}, again = {.delay_ms = LATE_MS};
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	struct rpma_conn_open_attr attr;

	opening_begin(&o);
	attr = attr_to(o.d.port);
	attr.retry_ms = -1;
	OK(rpma_conn_open(o.peer, &attr, &event, &o.d.cli));
	strcpy(again.d.port, o.d.port);
	assert_int_equal(pthread_join(o.thread, NULL), 0);
	OK(rpma_conn_delete(&o.d.srv));
	OK(rpma_ep_shutdown(&o.d.ep));
	again.d.peer = o.d.peer;
	assert_int_equal(pthread_create(&again.thread, NULL, serve_one, &again), 0);
	OK(rpma_conn_delete(&o.d.cli));
	OK(rpma_conn_open(o.peer, &attr, &event, &again.d.cli));
	assert_int_equal(event, RPMA_CONN_ESTABLISHED);
	again.peer = o.peer;
	opening_end(&again);
}

/* Members that this version does not define must be zero: a program of a later version can set
 * them. */
static void what_a_later_version_asks_for_is_not_ignored(void **state)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	struct rpma_peer *peer = active_peer();
	struct rpma_conn *conn = NULL;
	struct {
		struct rpma_conn_open_attr attr;
		long later;
	} larger = {.later = 0};
	char port[8];

	ends_free_port(port);
	larger.attr = attr_to(port);
	larger.attr.size = sizeof(larger);
	assert_int_equal(rpma_conn_open(peer, &larger.attr, &event, &conn), RPMA_E_AGAIN);
	larger.later = 1;
	assert_int_equal(rpma_conn_open(peer, &larger.attr, &event, &conn), RPMA_E_NOSUPP);
	OK(rpma_peer_delete(&peer));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_returns_the_connection_when_it_is_established),
		cmocka_unit_test(a_server_that_starts_later_is_waited_for),
		cmocka_unit_test(no_call_waits_until_the_deadline),
		cmocka_unit_test(no_answer_is_something_else_and_ends_at_the_deadline),
		cmocka_unit_test(a_refusal_of_the_application_is_final),
		cmocka_unit_test(each_attempt_is_prepared),
		cmocka_unit_test(a_lost_server_is_found_again_with_the_same_description),
		cmocka_unit_test(what_a_later_version_asks_for_is_not_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
