/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * srq -- two clients send messages, which arrive in one shared receive queue.
 *
 * With a receive queue for each connection, a server needs memory for the busiest moment of every
 * client. A shared receive queue (SRQ) needs memory only for the messages of all clients together.
 * The server's private data contain each client's credits, the number of messages that the client
 * may send, so that all messages fit.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

#define CLIENTS  2
#define CREDITS  8 /* messages that a client may send, including the empty one at the end */
#define WORD_MAX 64

static char words[CLIENTS * CREDITS][WORD_MAX];

static struct rpma_srq *share_receives(struct rpma_peer *peer, struct rpma_mr_local *mr)
{
	struct rpma_srq_cfg *cfg;
	struct rpma_srq *srq;

	must(rpma_srq_cfg_new(&cfg), "configure");
	must(rpma_srq_cfg_set_rq_size(cfg, CLIENTS * CREDITS), "configure");
	must(rpma_srq_cfg_set_rcq_size(cfg, CLIENTS * CREDITS), "configure");
	must(rpma_srq_new(peer, cfg, &srq), "make a shared receive queue");
	rpma_srq_cfg_delete(&cfg);
	for (size_t i = 0; i < CLIENTS * CREDITS; i++)
		must(rpma_srq_recv(srq, mr, i * WORD_MAX, WORD_MAX, words[i]), "receive");
	return srq;
}

static struct rpma_conn *accept_client(struct rpma_ep *ep, struct rpma_srq *srq, uint32_t *qp_num)
{
	uint8_t credits = CREDITS;
	struct rpma_conn_private_data pdata = {.ptr = &credits, .len = sizeof(credits)};
	enum rpma_conn_event event;
	struct rpma_conn_cfg *cfg;
	struct rpma_conn_req *req;
	struct rpma_conn *conn;

	must(rpma_conn_cfg_new(&cfg), "configure");
	must(rpma_conn_cfg_set_srq(cfg, srq), "configure");
	must(rpma_ep_next_conn_req(ep, cfg, &req), "wait for a client");
	must(rpma_conn_req_connect(&req, &pdata, &conn), "accept");
	must(rpma_conn_next_event(conn, &event), "wait for the connection");
	if (event != RPMA_CONN_ESTABLISHED)
		errx(EXIT_FAILURE, "accept: %s", rpma_utils_conn_event_2str(event));
	must(rpma_conn_get_qp_num(conn, qp_num), "number of the connection");
	rpma_conn_cfg_delete(&cfg);
	return conn;
}

static void take_messages(struct rpma_srq *srq, const uint32_t qp_num[CLIENTS])
{
	struct rpma_cq *rcq;

	must(rpma_srq_get_rcq(srq, &rcq), "completion queue");
	for (int left = CLIENTS; left;) {
		struct ibv_wc wc = await(rcq, "receive");
		int from = 0;

		/* The shared queue does not show which client sent a message, but the completion
		 * does. */
		while (from < CLIENTS && wc.qp_num != qp_num[from])
			from++;
		if (wc.byte_len)
			printf("client %d: %.*s\n", from, (int)wc.byte_len,
			       (const char *)(uintptr_t)wc.wr_id);
		else
			left--;
	}
}

static void server(char **args)
{
	struct rpma_peer *peer = open_peer(args[0], RPMA_UTIL_IBV_CONTEXT_LOCAL);
	struct rpma_ep *ep = listen_at(peer, args[0], args[1]);
	struct rpma_conn *conns[CLIENTS];
	uint32_t qp_num[CLIENTS];
	struct rpma_mr_local *mr;
	struct rpma_srq *srq;

	must(rpma_mr_reg(peer, words, sizeof(words), RPMA_MR_USAGE_RECV, &mr), "register");
	srq = share_receives(peer, mr);
	for (int i = 0; i < CLIENTS; i++) {
		conns[i] = accept_client(ep, srq, &qp_num[i]);
		printf("client %d is here\n", i);
	}
	take_messages(srq, qp_num);
	for (int i = 0; i < CLIENTS; i++)
		see_off(&conns[i]);
	/* delete the queue after the connections that use it */
	must(rpma_srq_delete(&srq), "delete the shared receive queue");
	must(rpma_ep_shutdown(&ep), "stop listening");
	must(rpma_mr_dereg(&mr), "deregister");
	must(rpma_peer_delete(&peer), "delete the peer");
}

static int credits_of(const struct rpma_conn *conn)
{
	struct rpma_conn_private_data pdata;

	must(rpma_conn_get_private_data(conn, &pdata), "private data");
	if (!pdata.len)
		errx(EXIT_FAILURE, "the server grants no messages");
	return *(const uint8_t *)pdata.ptr;
}

static void client(char **args)
{
	struct rpma_mr_local *mr;
	struct session s;
	int n = 0, credits;

	session_open(&s, args, NULL);
	credits = credits_of(s.conn);
	must(rpma_mr_reg(s.peer, words, sizeof(words), RPMA_MR_USAGE_SEND, &mr), "register");
	for (char **word = args + 2; *word; word++, n++) {
		size_t len = strlen(*word);

		if (n + 1 == credits || n + 1 == CREDITS)
			errx(EXIT_FAILURE, "the server takes %d words at most", credits - 1);
		if (!len || len > WORD_MAX)
			errx(EXIT_FAILURE, "a word has 1 to %d bytes", WORD_MAX);
		memcpy(words[n], *word, len);
		must(rpma_send(s.conn, mr, (size_t)n * WORD_MAX, len, RPMA_F_COMPLETION_ON_ERROR,
			       NULL),
		     "send");
	}
	/* The empty message is the last one. Its completion proves that all earlier messages have
	 * succeeded. */
	must(rpma_send(s.conn, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS, NULL), "send");
	await(s.cq, "send");
	printf("sent %d words\n", n);
	session_close(&s, &mr);
}

int main(int argc, char **argv)
{
	static const struct role roles[] = {{"server", "ADDRESS PORT", server},
					    {"client", "ADDRESS PORT WORD...", client},
					    {0}};

	return play(argc, argv, roles);
}
