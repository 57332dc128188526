/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles received messages: a proof, a question for the list, a writer's announcements and
 * questions. */
#include <inttypes.h>
#include <string.h>

#include "regions/proof.h"
#include "regions/server_impl.h"

/* Make the client's registration only after its proof, with no more rights than the client
 * needs. */
static int protocol_prepare(struct server *s, struct client *client)
{
	enum hello_access access = (enum hello_access)client->request.access;
	int rc = 0;

	if (access == HELLO_LIST || access == HELLO_WRITE)
		rc = message_expect(client);
	if (!rc && access != HELLO_LIST)
		rc = region_export_new(s, client->region, access, &client->own);
	if (rc)
		server_note_limited(s, LOG_LVL_WARNING, &s->not_served,
				    "client %" PRIu64 " from %s could not be served: %s",
				    client->id, client->addr, rpma_err_last());
	return rc;
}

static int protocol_grant(struct server *s, struct client *client, struct hello_reply *reply)
{
	bool lists = client->request.access == HELLO_LIST;
	int rc = protocol_prepare(s, client);

	if (rc)
		return rc;
	admission_make_reply(HELLO_OK, lists ? NULL : client->region, lists ? NULL : &client->own,
			     reply);
	client_enter(s, client, lists ? CLIENT_LISTING : CLIENT_SERVED);
	if (!lists)
		client_note_served(s, client);
	return 0;
}

static void protocol_refuse(struct server *s, struct client *client, enum hello_status status,
			    struct hello_reply *reply)
{
	admission_note_refusal(s, status, client);
	admission_make_reply(status, client->region, NULL, reply);
	client_enter(s, client, CLIENT_REFUSED);
}

static enum hello_status protocol_check_proof(struct server *s, struct client *client,
					      const struct hello_exchange *exchange,
					      const uint8_t mac[HELLO_MAC])
{
	uint8_t expected[HELLO_MAC];

	proof_of_client(s->opts->secret, exchange, expected);
	if (!mac_is_equal(expected, mac))
		return HELLO_SECRET_WRONG;
	return admission_check(s, &client->request, client->addr, &client->region);
}

static int protocol_on_proof(struct server *s, struct client *client, size_t len)
{
	struct hello_exchange exchange = {.request = client->request};
	struct hello_grant answer = {0};
	struct hello_proof proof;
	enum hello_status status;
	int rc = 0;

	if (!hello_proof_decode(client->messages.in, len, &proof))
		return RPMA_E_INVAL;
	memcpy(exchange.client_nonce, proof.nonce, HELLO_NONCE);
	memcpy(exchange.server_nonce, client->nonce, HELLO_NONCE);
	status = protocol_check_proof(s, client, &exchange, proof.mac);
	if (status == HELLO_OK)
		rc = protocol_grant(s, client, &answer.reply);
	else
		protocol_refuse(s, client, status, &answer.reply);
	if (rc)
		return rc;
	/* A client that lacks the key gets no code that was computed with the key. */
	if (status != HELLO_SECRET_WRONG)
		proof_of_server(s->opts->secret, &exchange, &answer.reply, answer.mac);
	return message_send(client, hello_grant_encode(&answer, client->messages.out));
}

static int protocol_on_ask(struct server *s, struct client *client, size_t len)
{
	struct hello_list list = {.count = (uint8_t)s->region_count};

	if (hello_ask_counts_decode(client->messages.in, len)) {
		struct hello_counts counts;

		counts_make(s, &counts);
		return message_send(client, hello_counts_encode(&counts, client->messages.out));
	}
	if (!hello_ask_decode(client->messages.in, len))
		return RPMA_E_INVAL;
	for (unsigned i = 0; i < s->region_count; i++) {
		const struct region *r = &s->regions[i];

		memcpy(list.entries[i].region, r->name, strlen(r->name));
		list.entries[i].size = r->data.size;
		list.entries[i].durability = (uint8_t)r->data.durability;
		list.entries[i].content = r->content;
	}
	return message_send(client, hello_list_encode(&list, client->messages.out));
}

/* Only a client with write access may send announcements. */
static int protocol_on_writer(struct server *s, struct client *client, size_t len)
{
	struct hello_content content;
	struct hello_begin begin;

	if (client->request.access != HELLO_WRITE)
		return RPMA_E_INVAL;
	if (hello_begin_decode(client->messages.in, len, &begin))
		return content_begin(s, client, &begin);
	if (hello_end_decode(client->messages.in, len, &content))
		return content_end(client, &content);
	if (!hello_confirm_decode(client->messages.in, len) || client->begin_ticket ||
	    client->waits_ms || client->confirm)
		return RPMA_E_INVAL;
	if (!content_confirm(client))
		name_confirm(client);
	return 0;
}

static int protocol_on_message(struct server *s, struct client *client, size_t len)
{
	switch (client->state) {
	case CLIENT_PROVING:
		return protocol_on_proof(s, client, len);
	case CLIENT_LISTING:
		return protocol_on_ask(s, client, len);
	case CLIENT_SERVED:
		return protocol_on_writer(s, client, len);
	default:
		return RPMA_E_INVAL; /* there is no receive for a further message */
	}
}

static int protocol_on_completion(struct server *s, struct client *client, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS) /* the event reports the end of the connection */
		return client->state == CLIENT_SERVED ? 0 : RPMA_E_UNKNOWN;
	if (wc->opcode & IBV_WC_RECV)
		return protocol_on_message(s, client, wc->byte_len);
	if (client->state == CLIENT_REFUSED)
		/* the refusal and its reason were sent, so end the connection */
		rpma_conn_disconnect(client->conn);
	return 0;
}

void protocol_on_ready(struct server *s, struct client *client)
{
	struct ibv_wc wc;
	int rc;

	/* arms the queue again; a wake-up without a completion is harmless */
	rpma_cq_wait(client->cq);
	while (!(rc = rpma_cq_get_wc(client->cq, 1, &wc, NULL))) {
		rc = protocol_on_completion(s, client, &wc);
		if (rc)
			break;
	}
	if (rc != RPMA_E_NO_COMPLETION)
		client_forget(s, client);
}
