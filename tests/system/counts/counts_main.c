/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * counts N WORK wait|poll|both: make N operations between two processes. The program repeats only
 * these operations, so that counts.sh can compute the cost of one. The program uses only calls of
 * librpma 1.2. With "both", one thread is initiator and target and polls both in turn, so that only
 * the cost of the round trip is measured.
 *
 *   write  write 64 bytes, and flush
 *   batch  write 64 bytes 63 times, and flush once
 *   read   read 64 bytes
 *   send   send 64 bytes; the other end sends 64 bytes back
 */
#include <librpma.h>

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LEN = 64, BATCH = 63, QUEUE = 128, MEMORY = 8192 };

#define HOST "127.0.0.1"

static void must(int ret, const char *what)
{
	if (!ret)
		return;
	fprintf(stderr, "counts: %s: %s\n", what, rpma_err_2str(ret));
	exit(1);
}

static void must_be(bool so, const char *what)
{
	if (so)
		return;
	fprintf(stderr, "counts: %s\n", what);
	exit(1);
}

struct end {
	struct rpma_peer *peer;
	struct rpma_conn *conn;
	struct rpma_cq *cq;
	struct rpma_mr_local *mr;
	struct rpma_mr_remote *remote; /* the server's region */
	char *memory;
	bool polls;
	struct end *other; /* the other end, if this thread also polls it */
};

static void end_open(struct end *e, enum rpma_util_ibv_context_type type)
{
	struct ibv_context *ctx;

	must(rpma_utils_get_ibv_context(HOST, type, &ctx), "the device");
	must(rpma_peer_new(ctx, &e->peer), "the peer");
	e->memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must_be(e->memory != MAP_FAILED, "no memory");
	memset(e->memory, 1, MEMORY);
	must(rpma_mr_reg(e->peer, e->memory, MEMORY,
			 RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC |
				 RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV |
				 RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY,
			 &e->mr),
	     "the region");
}

static struct rpma_conn_cfg *end_cfg(void)
{
	struct rpma_conn_cfg *cfg;

	must(rpma_conn_cfg_new(&cfg), "the configuration");
	must(rpma_conn_cfg_set_sq_size(cfg, QUEUE), "the send queue");
	must(rpma_conn_cfg_set_rq_size(cfg, QUEUE), "the receive queue");
	must(rpma_conn_cfg_set_cq_size(cfg, 2 * QUEUE), "the completion queue");
	return cfg;
}

/* Both ends get the same event, no matter which of them disconnects first. */
static void end_close(struct end *e)
{
	enum rpma_conn_event event;

	must(rpma_conn_next_event(e->conn, &event), "the last event");
	must(rpma_conn_delete(&e->conn), "the end of the connection");
	must(rpma_mr_dereg(&e->mr), "the end of the region");
	must(rpma_peer_delete(&e->peer), "the end of the peer");
}

static void expect_established(struct end *e)
{
	enum rpma_conn_event event;

	must(rpma_conn_next_event(e->conn, &event), "the next event");
	must_be(event == RPMA_CONN_ESTABLISHED, rpma_utils_conn_event_2str(event));
	must(rpma_conn_get_cq(e->conn, &e->cq), "the completion queue");
}

static void pong_back(struct end *e);

/* Each completion at the other end must be a received message. */
static void poll_other(struct end *e)
{
	struct ibv_wc wc;
	int ret;

	if (!e->other)
		return;
	ret = rpma_cq_get_wc(e->other->cq, 1, &wc, NULL);
	if (ret == RPMA_E_NO_COMPLETION)
		return;
	must(ret, "the completion at the other end");
	must_be(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV, "a receive");
	pong_back(e->other);
}

static void await(struct end *e)
{
	struct ibv_wc wc;
	int ret;

	poll_other(e);
	while ((ret = rpma_cq_get_wc(e->cq, 1, &wc, NULL)) == RPMA_E_NO_COMPLETION) {
		if (!e->polls)
			must(rpma_cq_wait(e->cq), "waiting");
		poll_other(e);
	}
	must(ret, "the completion");
	must_be(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
}

/* --- the operations ------------------------------------------------------------------------- */

static void post_write(struct end *e, int i)
{
	size_t at = (size_t)i * LEN;

	must(rpma_write(e->conn, e->remote, at, e->mr, at, LEN, RPMA_F_COMPLETION_ON_ERROR, NULL),
	     "a write");
}

static void write_and_flush(struct end *e, int writes)
{
	for (int i = 0; i < writes; i++)
		post_write(e, i);
	must(rpma_flush(e->conn, e->remote, 0, LEN, RPMA_FLUSH_TYPE_VISIBILITY,
			RPMA_F_COMPLETION_ALWAYS, NULL),
	     "a flush");
	await(e);
}

static void read_once(struct end *e)
{
	must(rpma_read(e->conn, e->mr, 0, e->remote, 0, LEN, RPMA_F_COMPLETION_ALWAYS, NULL),
	     "a read");
	await(e);
}

static void post_recv(struct end *e)
{
	must(rpma_recv(e->conn, e->mr, 0, LEN, NULL), "a receive");
}

static void send_once(struct end *e)
{
	must(rpma_send(e->conn, e->mr, LEN, LEN, RPMA_F_COMPLETION_ON_ERROR, NULL), "a send");
}

/* Post the receive before the message, so that it is posted when the answer arrives. */
static void ping(struct end *e)
{
	post_recv(e);
	send_once(e);
	await(e);
}

static void pong_back(struct end *e)
{
	post_recv(e);
	send_once(e);
}

static void pong(struct end *e)
{
	await(e);
	pong_back(e);
}

/* --- client and server in two processes ----------------------------------------------------- */

static struct rpma_ep *serve_listen(struct end *e, const char *port)
{
	struct rpma_ep *ep;

	end_open(e, RPMA_UTIL_IBV_CONTEXT_LOCAL);
	must(rpma_ep_listen(e->peer, HOST, port, &ep), "listening");
	return ep;
}

static void serve_accept(struct end *e, struct rpma_ep *ep, bool receives)
{
	struct rpma_conn_private_data pdata;
	struct rpma_conn_cfg *cfg = end_cfg();
	struct rpma_conn_req *req;
	char descriptor[128];
	size_t len;

	must(rpma_mr_get_descriptor_size(e->mr, &len), "the descriptor's size");
	must(rpma_mr_get_descriptor(e->mr, descriptor), "the descriptor");
	must(rpma_ep_next_conn_req(ep, cfg, &req), "a request");
	must(rpma_conn_cfg_delete(&cfg), "the configuration");
	if (receives)
		must(rpma_conn_req_recv(req, e->mr, 0, LEN, NULL), "the first receive");
	pdata = (struct rpma_conn_private_data){.ptr = descriptor, .len = (uint8_t)len};
	must(rpma_conn_req_connect(&req, &pdata, &e->conn), "accepting");
}

static void serve(const char *port, int ready, long pongs)
{
	struct end e = {0};
	struct rpma_ep *ep = serve_listen(&e, port);

	must_be(write(ready, "", 1) == 1, "no pipe");
	serve_accept(&e, ep, pongs > 0);
	expect_established(&e);
	while (pongs-- > 0)
		pong(&e);
	must(rpma_ep_shutdown(&ep), "the end of the endpoint");
	end_close(&e);
}

static void client_dial(struct end *e, const char *port)
{
	struct rpma_conn_cfg *cfg = end_cfg();
	struct rpma_conn_req *req;

	end_open(e, RPMA_UTIL_IBV_CONTEXT_REMOTE);
	must(rpma_conn_req_new(e->peer, HOST, port, cfg, &req), "a request");
	must(rpma_conn_cfg_delete(&cfg), "the configuration");
	must(rpma_conn_req_connect(&req, NULL, &e->conn), "connecting");
}

static void client_expect(struct end *e)
{
	struct rpma_conn_private_data pdata;

	expect_established(e);
	must(rpma_conn_get_private_data(e->conn, &pdata), "the private data");
	must(rpma_mr_remote_from_descriptor(pdata.ptr, pdata.len, &e->remote), "the descriptor");
}

static void work_once(struct end *e, const char *work)
{
	if (!strcmp(work, "write"))
		write_and_flush(e, 1);
	else if (!strcmp(work, "batch"))
		write_and_flush(e, BATCH);
	else if (!strcmp(work, "read"))
		read_once(e);
	else
		ping(e);
}

static void client_work(struct end *e, const char *work, long n)
{
	for (long i = 0; i < n; i++)
		work_once(e, work);
	must(rpma_mr_remote_delete(&e->remote), "the remote region");
	must(rpma_conn_disconnect(e->conn), "disconnecting");
}

/* --- client and server in one thread -------------------------------------------------------- */

static int both(const char *port, const char *work, long n)
{
	struct end server = {0}, client = {.polls = true};
	struct rpma_ep *ep = serve_listen(&server, port);

	client_dial(&client, port);
	serve_accept(&server, ep, !strcmp(work, "send"));
	client_expect(&client);
	expect_established(&server);
	client.other = &server;
	client_work(&client, work, n);
	must(rpma_ep_shutdown(&ep), "the end of the endpoint");
	end_close(&server);
	end_close(&client);
	return 0;
}

static int two(const char *port, const char *work, const char *how, long n)
{
	struct end e = {.polls = !strcmp(how, "poll")};
	int ready[2], status;
	pid_t server;
	char byte;

	if (pipe(ready))
		return 2;
	server = fork();
	if (server == 0) {
		serve(port, ready[1], strcmp(work, "send") ? 0 : n);
		exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		return 1;
	client_dial(&e, port);
	client_expect(&e);
	client_work(&e, work, n);
	end_close(&e);
	return waitpid(server, &status, 0) == server && status == 0 ? 0 : 1;
}

int main(int argc, char *argv[])
{
	const char *port = getenv("PORT");

	if (argc != 4 || !port)
		return 2;
	if (!strcmp(argv[3], "both"))
		return both(port, argv[2], atol(argv[1]));
	return two(port, argv[2], argv[3], atol(argv[1]));
}
