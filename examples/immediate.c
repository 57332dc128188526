/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * immediate -- a client fills slots of the server's memory, and notifies the server of each.
 *
 * The server can notice a plain write only by polling its memory. A write with immediate data also
 * takes one of the server's receives. The completion of the receive has 32 bits, here the number of
 * the filled slot. The receive needs no memory, because the data are in the slot.
 */
#include <arpa/inet.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

#define SLOTS    8u
#define SLOT_MAX 64

static char slots[SLOTS][SLOT_MAX];

/* Each notification takes a receive, which must be posted beforehand. */
static void hang_bells(struct rpma_conn_req *req, struct rpma_mr_local *mr)
{
	for (unsigned i = 0; i < SLOTS; i++)
		must(rpma_conn_req_recv(req, mr, 0, 0, NULL), "receive");
}

/* A client may send any number, so check it like all input. */
static void show(const struct ibv_wc *wc)
{
	uint32_t slot = ntohl(wc->imm_data);

	if (!(wc->wc_flags & IBV_WC_WITH_IMM) || slot >= SLOTS)
		errx(EXIT_FAILURE, "the client named a slot that does not exist");
	printf("slot %u: %.*s\n", slot, SLOT_MAX, slots[slot]);
}

static void serve_bells(struct rpma_conn *conn, struct rpma_mr_local *mr)
{
	struct rpma_cq *cq;
	struct ibv_wc wc;

	must(rpma_conn_get_cq(conn, &cq), "completion queue");
	while ((wc = next_completion(cq)).status == IBV_WC_SUCCESS) {
		show(&wc);
		must(rpma_recv(conn, mr, 0, 0, NULL), "receive");
	}
	/* A receive that gets no message ends with this status. */
	if (wc.status != IBV_WC_WR_FLUSH_ERR)
		errx(EXIT_FAILURE, "receive: %s", ibv_wc_status_str(wc.status));
}

static void server(char **args)
{
	struct rpma_peer *peer = open_peer(args[0], RPMA_UTIL_IBV_CONTEXT_LOCAL);
	struct rpma_ep *ep = listen_at(peer, args[0], args[1]);
	struct rpma_mr_local *mr;
	struct rpma_conn_req *req;
	struct rpma_conn *conn;

	must(rpma_mr_reg(peer, slots, sizeof(slots), RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_RECV,
			 &mr),
	     "register");
	must(rpma_ep_next_conn_req(ep, NULL, &req), "wait for a client");
	hang_bells(req, mr);
	conn = accept_request(&req, mr);
	if (!conn)
		exit(EXIT_FAILURE);
	serve_bells(conn, mr);
	see_off(&conn);
	must(rpma_ep_shutdown(&ep), "stop listening");
	must(rpma_mr_dereg(&mr), "deregister");
	must(rpma_peer_delete(&peer), "delete the peer");
}

static void fill(struct session *s, struct rpma_mr_local *mr, char *text, uint32_t slot)
{
	if (strlen(text) >= SLOT_MAX)
		errx(EXIT_FAILURE, "'%s' is longer than %d bytes", text, SLOT_MAX - 1);
	strcpy(slots[slot], text);
	must(rpma_write_with_imm(s->conn, s->region, slot * SLOT_MAX, mr, slot * SLOT_MAX, SLOT_MAX,
				 RPMA_F_COMPLETION_ALWAYS, slot, NULL),
	     "write with immediate data");
	await(s->cq, "write with immediate data");
}

static void client(char **args)
{
	struct rpma_mr_local *mr;
	struct session s;
	uint32_t slot = 0;

	session_open(&s, args, NULL);
	session_take_offer(&s, sizeof(slots));
	must(rpma_mr_reg(s.peer, slots, sizeof(slots), RPMA_MR_USAGE_WRITE_SRC, &mr), "register");
	/* The client is not informed when a slot may be filled again, so it uses each slot once. */
	for (char **text = args + 2; *text && slot < SLOTS; text++)
		fill(&s, mr, *text, slot++);
	printf("%u slots filled\n", slot);
	session_close(&s, &mr);
}

int main(int argc, char **argv)
{
	static const struct role roles[] = {{"server", "ADDRESS PORT", server},
					    {"client", "ADDRESS PORT TEXT...", client},
					    {0}};

	return play(argc, argv, roles);
}
