/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A server that does not have the secret: impostor trusting | lying. It prints its port and serves
 * one client. "trusting" accepts the client without a proof. "lying" returns the client's proof as
 * the server's proof.
 */
#include <librpma.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "regions/hello.h"

static struct {
	uint8_t in[HELLO_TO_MAX], out[HELLO_FROM_MAX];
} buffer;

static void must(const char *what, int rc)
{
	if (rc) {
		fprintf(stderr, "impostor: %s: %s\n", what, rpma_err_2str(rc));
		exit(2);
	}
}

static struct rpma_ep *listen_anywhere(struct rpma_peer **peer)
{
	struct ibv_context *context;
	struct rpma_ep *ep;
	uint16_t port;

	must("device",
	     rpma_utils_get_ibv_context("127.0.0.1", RPMA_UTIL_IBV_CONTEXT_LOCAL, &context));
	must("peer", rpma_peer_new(context, peer));
	must("listen", rpma_ep_listen(*peer, "127.0.0.1", "0", &ep));
	must("port", rpma_ep_get_port(ep, &port));
	printf("%u\n", port);
	fflush(stdout);
	return ep;
}

static struct rpma_conn *welcome(struct rpma_conn_req *req, enum hello_status status)
{
	struct hello_reply reply = {.version = HELLO_VERSION, .status = (uint8_t)status};
	uint8_t buf[HELLO_MAX];
	struct rpma_conn_private_data pdata = {buf, (uint8_t)hello_reply_encode(&reply, buf)};
	enum rpma_conn_event event;
	struct rpma_conn *conn;

	must("accept", rpma_conn_req_connect(&req, &pdata, &conn));
	must("event", rpma_conn_next_event(conn, &event));
	return conn;
}

static void lie(struct rpma_conn *conn, struct rpma_mr_local *mr)
{
	struct hello_grant grant = {.reply = {.version = HELLO_VERSION, .status = HELLO_OK}};
	struct hello_proof proof;
	struct rpma_cq *cq;
	struct ibv_wc wc;
	size_t len;

	must("cq", rpma_conn_get_cq(conn, &cq));
	must("wait", rpma_cq_wait(cq));
	must("message", rpma_cq_get_wc(cq, 1, &wc, NULL));
	if (!hello_proof_decode(buffer.in, wc.byte_len, &proof))
		must("proof", RPMA_E_INVAL);
	memcpy(grant.mac, proof.mac, sizeof(grant.mac));
	len = hello_grant_encode(&grant, buffer.out);
	must("send", rpma_send(conn, mr, sizeof(buffer.in), len, RPMA_F_COMPLETION_ON_ERROR, NULL));
}

int main(int argc, char **argv)
{
	bool lying = argc == 2 && !strcmp(argv[1], "lying");
	enum rpma_conn_event event;
	struct rpma_mr_local *mr;
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	struct rpma_peer *peer;
	struct rpma_ep *ep = listen_anywhere(&peer);

	must("memory", rpma_mr_reg(peer, &buffer, sizeof(buffer),
				   RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &mr));
	must("request", rpma_ep_next_conn_req(ep, NULL, &req));
	must("receive", rpma_conn_req_recv(req, mr, 0, sizeof(buffer.in), NULL));
	conn = welcome(req, lying ? HELLO_PROVE : HELLO_OK);
	if (lying)
		lie(conn, mr);
	must("close", rpma_conn_next_event(conn, &event));
	must("disconnect", rpma_conn_disconnect(conn));
	must("delete", rpma_conn_delete(&conn));
	must("memory", rpma_mr_dereg(&mr));
	must("shutdown", rpma_ep_shutdown(&ep));
	must("peer", rpma_peer_delete(&peer));
	return 0;
}
