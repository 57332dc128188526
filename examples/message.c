/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * message -- a client sends words, the server sends each of them back in capital letters.
 *
 * A message, unlike a read or a write, needs the other program, which must have posted a receive
 * for it. So each end must post a receive before the other end sends.
 */
#include <ctype.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

#define WORD_MAX 64

/* One piece of memory, registered once, with a part for each direction. */
struct box {
	char in[WORD_MAX];
	char out[WORD_MAX];
};

static struct box box;
#define IN  offsetof(struct box, in)
#define OUT offsetof(struct box, out)

static struct rpma_mr_local *register_box(struct rpma_peer *peer)
{
	struct rpma_mr_local *mr;

	must(rpma_mr_reg(peer, &box, sizeof(box), RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &mr),
	     "register");
	return mr;
}

static void answer(struct rpma_conn *conn, struct rpma_mr_local *mr, struct rpma_cq *cq,
		   uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		box.out[i] = (char)toupper((unsigned char)box.in[i]);
	printf("%.*s -> %.*s\n", (int)len, box.in, (int)len, box.out);
	/*
	 * Post a receive before the answer: the next word may come as soon as the answer arrives.
	 */
	must(rpma_recv(conn, mr, IN, WORD_MAX, NULL), "receive");
	must(rpma_send(conn, mr, OUT, len, RPMA_F_COMPLETION_ALWAYS, NULL), "send");
	await(cq, "send");
}

static void server(char **args)
{
	struct rpma_peer *peer = open_peer(args[0], RPMA_UTIL_IBV_CONTEXT_LOCAL);
	struct rpma_mr_local *mr = register_box(peer);
	struct rpma_ep *ep = listen_at(peer, args[0], args[1]);
	struct rpma_conn_cfg *cfg;
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	struct rpma_cq *cq, *rcq;
	struct ibv_wc wc;

	/* Receives get their own queue, so that received words and sent answers are not mixed
	 * up. */
	must(rpma_conn_cfg_new(&cfg), "configure");
	must(rpma_conn_cfg_set_rcq_size(cfg, 10), "configure");
	must(rpma_ep_next_conn_req(ep, cfg, &req), "wait for a client");
	must(rpma_conn_req_recv(req, mr, IN, WORD_MAX, NULL), "receive");
	conn = accept_request(&req, NULL);
	if (!conn)
		exit(EXIT_FAILURE);
	must(rpma_conn_get_cq(conn, &cq), "completion queue");
	must(rpma_conn_get_rcq(conn, &rcq), "completion queue of receives");
	while ((wc = next_completion(rcq)).status == IBV_WC_SUCCESS)
		answer(conn, mr, cq, wc.byte_len);
	/* A receive that gets no message ends with this status. */
	if (wc.status != IBV_WC_WR_FLUSH_ERR)
		errx(EXIT_FAILURE, "receive: %s", ibv_wc_status_str(wc.status));

	see_off(&conn);
	rpma_conn_cfg_delete(&cfg);
	must(rpma_ep_shutdown(&ep), "stop listening");
	must(rpma_mr_dereg(&mr), "deregister");
	must(rpma_peer_delete(&peer), "delete the peer");
}

static void ask(struct session *s, struct rpma_mr_local *mr, const char *word)
{
	size_t len = strlen(word);
	struct ibv_wc wc;

	if (len > WORD_MAX)
		errx(EXIT_FAILURE, "'%s' is longer than %d bytes", word, WORD_MAX);
	memcpy(box.out, word, len);
	must(rpma_recv(s->conn, mr, IN, WORD_MAX, NULL), "receive");
	must(rpma_send(s->conn, mr, OUT, len, RPMA_F_COMPLETION_ALWAYS, NULL), "send");
	/* The send and the answer complete in the same queue, in either order. */
	wc = await(s->cq, "exchange");
	if (wc.opcode == IBV_WC_RECV)
		len = wc.byte_len;
	wc = await(s->cq, "exchange");
	if (wc.opcode == IBV_WC_RECV)
		len = wc.byte_len;
	printf("%s -> %.*s\n", word, (int)len, box.in);
}

static void client(char **args)
{
	struct rpma_mr_local *mr;
	struct session s;

	session_open(&s, args, NULL);
	mr = register_box(s.peer);
	for (char **word = args + 2; *word; word++)
		ask(&s, mr, *word);
	session_close(&s, &mr);
}

int main(int argc, char **argv)
{
	static const struct role roles[] = {{"server", "ADDRESS PORT", server},
					    {"client", "ADDRESS PORT WORD...", client},
					    {0}};

	return play(argc, argv, roles);
}
