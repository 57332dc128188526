/* SPDX-License-Identifier: BSD-3-Clause */
/* test_threads.c -- several threads use one peer at the same time. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "ends.h"

#define THREADS 4
#define ROUNDS  300

/* A failed cmocka assertion jumps, which a thread must not do: the thread counts failures
 * instead. */
struct worker {
	struct ends *d;
	struct rpma_conn *conn;
	size_t at; /* the thread's part of both buffers */
	unsigned failures;
};

static int wait_ok(struct rpma_conn *conn, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc = {0};
	struct rpma_cq *cq;
	int ret;

	if (rpma_conn_get_cq(conn, &cq))
		return -1;
	while ((ret = rpma_cq_get_wc(cq, 1, &wc, NULL)) == RPMA_E_NO_COMPLETION)
		if (rpma_cq_wait(cq))
			return -1;
	return ret || wc.status != IBV_WC_SUCCESS || wc.opcode != opcode ? -1 : 0;
}

static int write_flush_read(struct worker *w, unsigned round)
{
	struct ends *d = w->d;

	ends_fill(d->cli_buf + w->at, 1000, round);
	if (rpma_write(w->conn, d->at_srv, w->at, d->cli_mr, w->at, 1000,
		       RPMA_F_COMPLETION_ON_ERROR, NULL) ||
	    rpma_flush(w->conn, d->at_srv, w->at, 1000, RPMA_FLUSH_TYPE_VISIBILITY,
		       RPMA_F_COMPLETION_ALWAYS, NULL) ||
	    wait_ok(w->conn, ends_flush_opcode()))
		return -1;
	memset(d->cli_buf + w->at, 0, 1000);
	if (rpma_read(w->conn, d->cli_mr, w->at, d->at_srv, w->at, 1000, RPMA_F_COMPLETION_ALWAYS,
		      NULL) ||
	    wait_ok(w->conn, IBV_WC_RDMA_READ))
		return -1;
	return ends_is_filled(d->cli_buf + w->at, 1000, round) ? 0 : -1;
}

static void *write_rounds(void *arg)
{
	struct worker *w = arg;

	for (unsigned i = 0; i < ROUNDS; i++)
		w->failures += write_flush_read(w, i) != 0;
	return NULL;
}

static void run_all(void *(*fn)(void *), struct worker *w, int n)
{
	pthread_t thread[THREADS];

	for (int i = 0; i < n; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, fn, &w[i]), 0);
	for (int i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < n; i++)
		assert_int_equal(w[i].failures, 0);
}

static void threads_use_connections_of_the_same_peer(void **state)
{
	struct rpma_conn *srv[THREADS];
	struct worker w[THREADS] = {0};
	struct ends d;

	ends_open(&d, NULL);
	for (int i = 0; i < THREADS; i++) {
		w[i].d = &d;
		w[i].at = (size_t)i * 8192;
		ends_connect(&d, NULL, &w[i].conn, &srv[i]);
	}
	run_all(write_rounds, w, THREADS);
	for (int i = 0; i < THREADS; i++) {
		OK(rpma_conn_delete(&w[i].conn));
		OK(rpma_conn_delete(&srv[i]));
	}
	ends_close(&d);
}

static void *register_rounds(void *arg)
{
	struct worker *w = arg;
	uint8_t *mem = malloc(4096);

	for (unsigned i = 0; mem && i < ROUNDS; i++) {
		struct rpma_mr_local *mr = NULL;

		w->failures += rpma_mr_reg(w->d->peer, mem, 4096, RPMA_MR_USAGE_WRITE_DST, &mr) ||
			       rpma_mr_dereg(&mr);
	}
	free(mem);
	return NULL;
}

static void threads_register_memory_while_others_transfer(void **state)
{
	struct worker w[THREADS] = {0};
	pthread_t thread[2];
	struct ends d;

	ends_open(&d, NULL);
	for (int i = 0; i < THREADS; i++)
		w[i].d = &d;
	w[0].conn = d.cli;
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, register_rounds, &w[i + 1]), 0);
	run_all(write_rounds, w, 1);
	for (int i = 0; i < 2; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(w[i + 1].failures, 0);
	}
	ends_close(&d);
}

static void *connect_rounds(void *arg)
{
	struct worker *w = arg;
	enum rpma_conn_event ev;

	for (unsigned i = 0; i < 25; i++) {
		struct rpma_conn_req *req = NULL;
		struct rpma_conn *conn = NULL;

		if (rpma_conn_req_new(w->d->peer, ends_addr(), w->d->port, NULL, &req) ||
		    rpma_conn_req_connect(&req, NULL, &conn) || rpma_conn_next_event(conn, &ev) ||
		    ev != RPMA_CONN_ESTABLISHED || rpma_conn_disconnect(conn) ||
		    rpma_conn_next_event(conn, &ev) || ev != RPMA_CONN_CLOSED)
			w->failures++;
		w->failures += rpma_conn_delete(&conn) != 0;
	}
	return NULL;
}

static void *serve_rounds(void *arg)
{
	struct worker *w = arg;
	enum rpma_conn_event ev = RPMA_CONN_UNDEFINED;

	for (unsigned i = 0; i < 25; i++) {
		struct rpma_conn_req *req = NULL;
		struct rpma_conn *conn = NULL;

		if (rpma_ep_next_conn_req(w->d->ep, NULL, &req) ||
		    rpma_conn_req_connect(&req, NULL, &conn)) {
			w->failures++;
			continue;
		}
		while (ev != RPMA_CONN_CLOSED && !rpma_conn_next_event(conn, &ev))
			;
		ev = RPMA_CONN_UNDEFINED;
		w->failures += rpma_conn_disconnect(conn) || rpma_conn_delete(&conn);
	}
	return NULL;
}

static void threads_connect_and_accept_at_the_same_time(void **state)
{
	struct worker servers[2] = {0}, clients[2] = {0};
	struct ends d = {0};
	pthread_t thread[2];

	ends_listen(&d, NULL);
	for (int i = 0; i < 2; i++) {
		servers[i].d = clients[i].d = &d;
		assert_int_equal(pthread_create(&thread[i], NULL, serve_rounds, &servers[i]), 0);
	}
	run_all(connect_rounds, clients, 2);
	for (int i = 0; i < 2; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(servers[i].failures, 0);
	}
	ends_close(&d);
}

struct waiter {
	struct rpma_conn *conn;
	int status;
};

static void *wait_for_message(void *arg)
{
	struct waiter *w = arg;

	w->status = wait_ok(w->conn, IBV_WC_RECV);
	return NULL;
}

/* One thread sleeps until a completion arrives, while another thread posts on the same
 * connection. */
static void posting_wakes_a_thread_that_waits(void **state)
{
	struct ends d;

	ends_open(&d, NULL);
	for (int i = 0; i < 50; i++) {
		struct waiter w = {.conn = d.srv, .status = -1};
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, wait_for_message, &w), 0);
		OK(rpma_recv(d.srv, d.srv_mr, 0, 64, NULL));
		OK(rpma_send(d.cli, d.cli_mr, 0, 64, RPMA_F_COMPLETION_ON_ERROR, NULL));
		pthread_join(thread, NULL);
		assert_int_equal(w.status, 0);
	}
	ends_close(&d);
}

struct scribbler {
	uint8_t *mem;
	size_t len;
	atomic_bool stop;
};

static void *scribble(void *arg)
{
	struct scribbler *s = arg;

	for (int c = 0; !atomic_load(&s->stop); c++)
		ends_fill(s->mem, s->len, (unsigned)c);
	return NULL;
}

/* Any mixture of old and new bytes can arrive, but the connection stays alive. */
static void changing_source_does_not_break_the_stream(void **state)
{
	struct ends_opts opts = {.buf_size = 1 << 20};
	struct scribbler s = {.len = 1 << 20};
	pthread_t thread;
	struct ends d;

	ends_open(&d, &opts);
	s.mem = d.cli_buf;
	assert_int_equal(pthread_create(&thread, NULL, scribble, &s), 0);
	for (int i = 0; i < 50; i++) {
		OK(rpma_write(d.cli, d.at_srv, 0, d.cli_mr, 0, s.len, RPMA_F_COMPLETION_ON_ERROR,
			      NULL));
		ends_flush(d.cli, d.at_srv, 0, s.len);
	}
	atomic_store(&s.stop, true);
	pthread_join(thread, NULL);
	OK(rpma_write(d.cli, d.at_srv, 0, d.cli_mr, 0, s.len, RPMA_F_COMPLETION_ON_ERROR, NULL));
	ends_flush(d.cli, d.at_srv, 0, s.len);
	assert_memory_equal(d.srv_buf, d.cli_buf, s.len);
	ends_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_use_connections_of_the_same_peer),
		cmocka_unit_test(threads_register_memory_while_others_transfer),
		cmocka_unit_test(threads_connect_and_accept_at_the_same_time),
		cmocka_unit_test(posting_wakes_a_thread_that_waits),
		cmocka_unit_test(changing_source_does_not_break_the_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
