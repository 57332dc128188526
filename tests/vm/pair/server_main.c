/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server_main.c -- arguments ADDRESS PORT [CONNECTIONS]: carry out the requests of clients, and
 * exit after the last client.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pair.h"

#define PDATA_MAX 251

/*
 * Private data of a client: the first byte is the length, and all other bytes have this value, too.
 * The server's private data are the same, followed by two descriptors.
 */
static void check_private_data(const struct rpma_conn_private_data *pdata)
{
	const uint8_t *p = pdata->ptr;

	if (!pdata->len || p[0] > pdata->len || !is_filled(p + 1, p[0] - 1u, p[0]))
		errx(1, "%u bytes of private data came and are wrong", pdata->len);
	/* rdma_cm can pad private data with zeros up to the transport's length. */
	for (unsigned i = p[0]; i < pdata->len; i++)
		if (p[i])
			errx(1, "private data have more than was given");
	printf("private data: %u bytes given, %u came\n", p[0], pdata->len);
}

static void accept_one(struct end *e, struct rpma_ep *ep)
{
	uint8_t answer[PDATA_MAX];
	struct rpma_conn_private_data pdata, mine = {.ptr = answer};
	size_t at = 1 + 2 * e->desc_size;
	struct rpma_conn_req *req;

	must(rpma_ep_next_conn_req(ep, e->cfg, &req), "next request");
	must(rpma_conn_req_get_private_data(req, &pdata), "private data");
	check_private_data(&pdata);
	mine.len = answer[0] = (uint8_t)(*(uint8_t *)pdata.ptr < at ? at : *(uint8_t *)pdata.ptr);
	memcpy(answer + 1, e->self.region, e->desc_size);
	memcpy(answer + 1 + e->desc_size, e->self.read_only, e->desc_size);
	fill(answer + at, mine.len - at, mine.len);
	must(rpma_conn_req_recv(req, e->in_mr, 0, PAIR_MSG_MAX, e), "post a receive");
	must(rpma_conn_req_connect(&req, &mine, &e->conn), "accept");
	end_connected(e);
}

static void do_ask(struct end *e, const struct ask_msg *m, size_t len)
{
	switch (m->what) {
	case ASK_CHECK:
		if (!is_filled(e->region + m->at, m->len, m->seed))
			errx(1, "what was written is not there: %llu bytes at %llu",
			     (unsigned long long)m->len, (unsigned long long)m->at);
		break;
	case ASK_FILL:
		fill(e->region + m->at, m->len, m->seed);
		break;
	case ASK_WRITE:
		do_write(e, m->region, m->at, m->len, m->seed);
		break;
	case ASK_READ:
		do_read(e, m->region, m->at, m->len, m->seed);
		break;
	case ASK_ECHO:
		if (!is_filled((const uint8_t *)(m + 1), len - sizeof(*m), m->seed))
			errx(1, "the message is not what was sent");
		memcpy(e->msg_out + sizeof(*m), m + 1, len - sizeof(*m));
		break;
	default:
		errx(1, "asked for %u", m->what);
	}
}

/* Serve one request. Returns 0 at the end of the connection. */
static int serve_one(struct end *e)
{
	const struct ask_msg *m = (const struct ask_msg *)e->msg_in;
	struct ask_msg done = {.what = ASK_DONE};
	struct ibv_wc wc = {0};
	size_t len;

	do
		end_next_wc(e, &wc);
	while (wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_SEND);
	if (wc.status == IBV_WC_WR_FLUSH_ERR)
		return 0; /* the client has disconnected */
	if (wc.status != IBV_WC_SUCCESS || wc.opcode != IBV_WC_RECV)
		errx(1, "receive: %s", ibv_wc_status_str(wc.status));
	if (m->what == ASK_STAY)
		return 0;
	if (m->what == ASK_LEAVE) {
		must(rpma_conn_disconnect(e->conn), "disconnect");
		return 0;
	}
	len = m->what == ASK_ECHO ? wc.byte_len : sizeof(*m);
	if (m->what == ASK_ERROR || m->what == ASK_EXPECT_LOSS) {
		struct ask_msg asked = *m;

		/* The client's mistake can be a Send (MISTAKE_LENGTH), so post a receive for it. */
		end_receive(e);
		end_send(e, &done, sizeof(done));
		if (asked.what == ASK_ERROR)
			make_mistake(e, &asked, (enum mistake)asked.at);
		else
			expect_loss(e);
		return -1;
	}
	do_ask(e, m, wc.byte_len);
	end_receive(e);
	end_send(e, &done, len);
	return 1;
}

int main(int argc, char **argv)
{
	int connections = argc > 3 ? atoi(argv[3]) : 1;
	struct rpma_ep *ep;
	struct end e;
	int more;

	if (argc < 3)
		errx(2, "ADDRESS PORT [CONNECTIONS]");
	setvbuf(stdout, NULL, _IOLBF, 0);
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_NOTICE);
	alarm(300);
	end_open(&e, argv[1], argv[2], 1);
	must(rpma_ep_listen(e.peer, e.addr, e.port, &ep), "listen");
	printf("listening\n");
	for (int i = 0; i < connections; i++) {
		accept_one(&e, ep);
		while ((more = serve_one(&e)) > 0)
			;
		if (!more) {
			end_expect(&e, RPMA_CONN_CLOSED);
			rpma_conn_disconnect(e.conn);
		}
		must(rpma_conn_delete(&e.conn), "delete the connection");
	}
	must(rpma_ep_shutdown(&ep), "stop listening");
	end_close(&e);
	printf("server: all is well\n");
	return 0;
}
