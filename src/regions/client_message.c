/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>

#include "regions/server_impl.h"

int message_open(struct server *s, struct client *client, struct rpma_conn_req *req)
{
	int rc = rpma_mr_reg(s->peer, &client->messages, sizeof(client->messages),
			     RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &client->message_mr);

	return rc ? rc
		  : rpma_conn_req_recv(req, client->message_mr,
				       offsetof(struct client_messages, in),
				       sizeof(client->messages.in), NULL);
}

int message_expect(struct client *client)
{
	return rpma_recv(client->conn, client->message_mr, offsetof(struct client_messages, in),
			 sizeof(client->messages.in), NULL);
}

int message_send(struct client *client, size_t len)
{
	return rpma_send(client->conn, client->message_mr, offsetof(struct client_messages, out),
			 len, RPMA_F_COMPLETION_ALWAYS, NULL);
}

int message_send_begun(struct client *client, const struct hello_begun *begun)
{
	size_t len = hello_begun_encode(begun, client->messages.begun);

	return rpma_send(client->conn, client->message_mr, offsetof(struct client_messages, begun),
			 len, RPMA_F_COMPLETION_ALWAYS, NULL);
}

int message_send_verdict(struct client *client, enum hello_status status)
{
	size_t len = hello_verdict_encode(status, client->messages.verdict);

	client->has_verdict = true;
	return rpma_send(client->conn, client->message_mr,
			 offsetof(struct client_messages, verdict), len, RPMA_F_COMPLETION_ALWAYS,
			 NULL);
}
