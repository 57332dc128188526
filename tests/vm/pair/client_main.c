/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client_main.c -- arguments ADDRESS PORT [ib]: use one connection for all successful operations,
 * and one for each error that ends a connection, 13 in all. With "ib", test only the features that
 * InfiniBand shares with iWARP, on 3 connections.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pair.h"

/* The last two lengths are too long for InfiniBand. */
static const uint8_t pdata_lens[] = {2, 56, 196, 251};
static const uint64_t lens[] = {1, 8, 1427, 1460, 4096, 65537, 1u << 20};
/* Only long operations cross the end of a page, because siw sends short operations wrongly there
 * (doc/wire.md). */
static const uint64_t begins[] = {0, 3, 4092};

#define N(array) (sizeof(array) / sizeof((array)[0]))

static struct ask_msg server; /* the server's descriptors */

static void check_answer(struct end *e, uint8_t asked)
{
	size_t at = 1 + 2 * e->desc_size;
	struct rpma_conn_private_data pdata;
	const uint8_t *p;

	must(rpma_conn_get_private_data(e->conn, &pdata), "private data");
	p = pdata.ptr;
	if (pdata.len < at || p[0] != (asked < at ? at : asked) || pdata.len < p[0] ||
	    !is_filled(p + at, p[0] - at, p[0]))
		errx(1, "the answer's %u bytes of private data are wrong", pdata.len);
	memcpy(server.region, p + 1, e->desc_size);
	memcpy(server.read_only, p + 1 + e->desc_size, e->desc_size);
}

static void open_connection(struct end *e, uint8_t pdata_len)
{
	uint8_t given[UINT8_MAX] = {pdata_len};
	struct rpma_conn_private_data pdata = {.ptr = given, .len = pdata_len};
	struct rpma_conn_req *req;

	fill(given + 1, pdata_len - 1u, pdata_len);
	must(rpma_conn_req_new(e->peer, e->addr, e->port, e->cfg, &req), "request");
	must(rpma_conn_req_recv(req, e->in_mr, 0, PAIR_MSG_MAX, e), "post a receive");
	must(rpma_conn_req_connect(&req, &pdata, &e->conn), "connect");
	end_connected(e);
	check_answer(e, pdata_len);
}

/* If the peer breaks the connection right after its answer, siw can report the answered Send as
 * failed: siw's transmitting thread finds the queue pair stopped before it counts the Send. */
static void check_send(const struct ibv_wc *wc, uint32_t what)
{
	if (wc->status == IBV_WC_SUCCESS)
		return;
	if (what != ASK_ERROR || wc->opcode == IBV_WC_RECV)
		errx(1, "asking for %u: %s", what, ibv_wc_status_str(wc->status));
	printf("asking for %u: %s\n", what, ibv_wc_status_str(wc->status));
}

/* Post the receive for the answer, then ask. The two completions arrive in either order. */
static void ask_len(struct end *e, uint32_t what, uint32_t seed, uint64_t at, uint64_t len,
		    size_t msg_len)
{
	struct ask_msg m = e->self;
	struct ibv_wc wc;
	int answers = 0;

	m.what = what;
	m.seed = seed;
	m.at = at;
	m.len = len;
	end_send(e, &m, msg_len);
	for (int i = 0; i < 2; i++) {
		memset(&wc, 0, sizeof(wc));
		end_next_wc(e, &wc);
		check_send(&wc, what);
		answers += wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV;
		if (wc.opcode == IBV_WC_RECV && wc.byte_len != msg_len)
			errx(1, "an answer of %u bytes, not %zu", wc.byte_len, msg_len);
	}
	if (answers != 1 || ((const struct ask_msg *)e->msg_in)->what != ASK_DONE)
		errx(1, "that is no answer");
}

static void ask(struct end *e, uint32_t what, uint32_t seed, uint64_t at, uint64_t len)
{
	ask_len(e, what, seed, at, len, sizeof(struct ask_msg));
	end_receive(e);
}

static void try_memory(struct end *e, uint64_t at, uint64_t len, uint32_t seed)
{
	do_write(e, server.region, at, len, seed);
	ask(e, ASK_CHECK, seed, at, len);
	ask(e, ASK_FILL, seed + 1, at, len);
	do_read(e, server.region, at, len, seed + 1);
	ask(e, ASK_WRITE, seed + 2, at, len);
	if (!is_filled(e->region + at, len, seed + 2))
		errx(1, "what the server wrote is not there");
	fill(e->region + at, len, seed + 3);
	ask(e, ASK_READ, seed + 3, at, len);
}

static void try_message(struct end *e, size_t len, uint32_t seed)
{
	fill(e->msg_out + sizeof(struct ask_msg), len, seed);
	ask_len(e, ASK_ECHO, seed, 0, len, sizeof(struct ask_msg) + len);
	if (!is_filled(e->msg_in + sizeof(struct ask_msg), len, seed))
		errx(1, "the echo is not what was sent");
	end_receive(e);
}

/* Post far more Reads than both ends have credits for; all complete in order. */
static void try_many(struct end *e)
{
	struct rpma_mr_remote *r;

	ask(e, ASK_FILL, 7, 0, 8 * 100);
	must(rpma_mr_remote_from_descriptor(server.region, e->desc_size, &r), "descriptor");
	memset(e->sink, 0, 8 * 100);
	for (size_t i = 0; i < 100; i += 5) {
		for (size_t k = i; k < i + 5; k++)
			must(rpma_read(e->conn, e->sink_mr, 8 * k, r, 8 * k, 8,
				       RPMA_F_COMPLETION_ALWAYS, e),
			     "read");
		for (size_t k = i; k < i + 5; k++)
			end_expect_wc(e, IBV_WC_RDMA_READ, 0);
	}
	if (!is_filled(e->sink, 8 * 100, 7))
		errx(1, "many reads brought something else");
	must(rpma_mr_remote_delete(&r), "forget");
}

static void leave(struct end *e)
{
	struct ask_msg m = {.what = ASK_STAY};

	end_send(e, &m, sizeof(m));
	end_expect_wc(e, IBV_WC_SEND, 0);
	must(rpma_conn_disconnect(e->conn), "disconnect");
	end_expect(e, RPMA_CONN_CLOSED);
	must(rpma_conn_delete(&e->conn), "delete the connection");
}

static void be_left(struct end *e)
{
	struct ask_msg m = {.what = ASK_LEAVE};

	end_send(e, &m, sizeof(m));
	end_expect_left(e);
	must(rpma_conn_disconnect(e->conn), "disconnect");
	must(rpma_conn_delete(&e->conn), "delete the connection");
}

static void try_everything(struct end *e)
{
	uint32_t seed = 1;

	open_connection(e, 50);
	for (size_t l = 0; l < N(lens); l++)
		for (size_t b = 0; b < N(begins); b++, seed += 4)
			try_memory(e, begins[b], lens[l], seed);
	for (size_t len = 0; len + sizeof(struct ask_msg) <= PAIR_MSG_MAX; len = len * 3 + 1)
		try_message(e, len, (uint32_t)len);
	try_many(e);
	leave(e);
	printf("memory and messages: right\n");
}

static void try_mistake(struct end *e, enum mistake m, int ours)
{
	printf("mistake %u of the %s\n", m, ours ? "client" : "server");
	open_connection(e, 2);
	ask(e, ours ? ASK_EXPECT_LOSS : ASK_ERROR, 0, m, 0);
	if (ours)
		make_mistake(e, &server, m);
	else
		expect_loss(e);
	must(rpma_conn_delete(&e->conn), "delete the connection");
}

int main(int argc, char **argv)
{
	int ib = argc == 4 && !strcmp(argv[3], "ib");
	struct end e;

	if (argc != 3 + ib)
		errx(2, "ADDRESS PORT [ib]");
	setvbuf(stdout, NULL, _IOLBF, 0);
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_NOTICE);
	alarm(300);
	end_open(&e, argv[1], argv[2], 0);
	try_everything(&e);
	for (size_t i = 0; i < (ib ? 2 : N(pdata_lens)); i++) {
		open_connection(&e, pdata_lens[i]);
		i % 2 ? leave(&e) : be_left(&e);
	}
	printf("private data and disconnects: right\n");
	for (unsigned m = 0; !ib && m < MISTAKES; m++) {
		try_mistake(&e, (enum mistake)m, 1);
		try_mistake(&e, (enum mistake)m, 0);
	}
	end_close(&e);
	printf("client: all is well\n");
	return 0;
}
