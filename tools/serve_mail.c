/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages that some connections begin with: proof and grant, ask and list. */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "liblog.h"
#include "note_limit.h"
#include "serve.h"

int serve_mail_open(struct serve *s, struct serve_client *client, struct rpma_conn_req *req)
{
	int rc = rpma_mr_reg(s->peer, &client->mail, sizeof(client->mail),
			     RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &client->mail_mr);

	return rc ? rc
		  : rpma_conn_req_recv(req, client->mail_mr, offsetof(struct serve_mail, in),
				       sizeof(client->mail.in), NULL);
}

static int send_mail(struct serve_client *client, size_t len)
{
	return rpma_send(client->conn, client->mail_mr, offsetof(struct serve_mail, out), len,
			 RPMA_F_COMPLETION_ALWAYS, NULL);
}

int serve_mail_tell(struct serve_client *client, enum hello_status status)
{
	size_t len = hello_verdict_encode(status, client->mail.verdict);

	client->is_told = true;
	return rpma_send(client->conn, client->mail_mr, offsetof(struct serve_mail, verdict), len,
			 RPMA_F_COMPLETION_ALWAYS, NULL);
}

static int expect_mail(struct serve_client *client)
{
	return rpma_recv(client->conn, client->mail_mr, offsetof(struct serve_mail, in),
			 sizeof(client->mail.in), NULL);
}

/* Now, and not before, its own registration is made, with no more rights than it needs. */
static int grant(struct serve *s, struct serve_client *client, struct hello_reply *reply)
{
	static struct note_limit limit;
	int rc = 0;

	if (client->request.access == HELLO_LIST) {
		rc = expect_mail(client);
		serve_make_reply(HELLO_OK, NULL, NULL, reply);
	} else {
		if (client->request.access == HELLO_WRITE)
			rc = expect_mail(client);
		if (!rc)
			rc = serve_export_new(s, client->region,
					      (enum hello_access)client->request.access,
					      &client->own);
		serve_make_reply(HELLO_OK, client->region, &client->own, reply);
	}
	if (rc)
		note_limited(&limit, "client %" PRIu64 " from %s could not be served: %s",
			     client->id, client->addr, liblog_reason(rc));
	else
		serve_enter(s, client,
			    client->request.access == HELLO_LIST ? SERVE_LISTING : SERVE_SERVED);
	return rc;
}

static void refuse(struct serve *s, struct serve_client *client, enum hello_status status,
		   struct hello_reply *reply)
{
	serve_log_refusal(status, client->id, client->addr, &client->request);
	serve_make_reply(status, client->region, NULL, reply);
	serve_enter(s, client, SERVE_REFUSED);
}

static int on_proof(struct serve *s, struct serve_client *client, size_t len)
{
	struct secret_exchange talk = {.request = client->request};
	struct hello_grant answer = {0};
	struct hello_proof proof;
	enum hello_status status = HELLO_SECRET_WRONG;
	uint8_t expected[HELLO_MAC];
	int rc = 0;

	if (!hello_proof_decode(client->mail.in, len, &proof))
		return RPMA_E_INVAL;
	memcpy(talk.client_nonce, proof.nonce, HELLO_NONCE);
	memcpy(talk.server_nonce, client->nonce, HELLO_NONCE);
	secret_prove_client(&s->secret, &talk, expected);
	if (secret_is_equal(expected, proof.mac))
		status = serve_judge_wish(s, &client->request, client->addr, &client->region);
	if (status == HELLO_OK)
		rc = grant(s, client, &answer.reply);
	else
		refuse(s, client, status, &answer.reply);
	if (rc)
		return rc;
	/* Nothing keyed goes to somebody who does not know the key. */
	if (status != HELLO_SECRET_WRONG)
		secret_prove_server(&s->secret, &talk, &answer.reply, answer.mac);
	return send_mail(client, hello_grant_encode(&answer, client->mail.out));
}

static int on_ask(struct serve *s, struct serve_client *client, size_t len)
{
	struct hello_list list = {.count = (uint8_t)s->region_count};

	if (!hello_ask_decode(client->mail.in, len))
		return RPMA_E_INVAL;
	for (unsigned i = 0; i < s->region_count; i++) {
		const struct serve_region *r = &s->regions[i];

		strcpy(list.entries[i].region, r->name);
		list.entries[i].size = r->data.size;
		list.entries[i].durability = (uint8_t)r->data.durability;
	}
	return send_mail(client, hello_list_encode(&list, client->mail.out));
}

static int on_confirm(struct serve_client *client, size_t len)
{
	if (!hello_confirm_decode(client->mail.in, len))
		return RPMA_E_INVAL;
	serve_name_confirm(client);
	return 0;
}

static int take_mail(struct serve *s, struct serve_client *client, size_t len)
{
	switch (client->state) {
	case SERVE_PROVING:
		return on_proof(s, client, len);
	case SERVE_LISTING:
		return on_ask(s, client, len);
	case SERVE_SERVED:
		return on_confirm(client, len);
	default:
		return RPMA_E_INVAL; /* no receive is left for it */
	}
}

void serve_mail_on_ready(struct serve *s, struct serve_client *client)
{
	struct ibv_wc wc;
	int rc;

	rpma_cq_wait(client->cq); /* re-arms; a wake-up without a completion is harmless */
	while (!(rc = rpma_cq_get_wc(client->cq, 1, &wc, NULL))) {
		if (wc.status != IBV_WC_SUCCESS && client->state == SERVE_SERVED)
			continue; /* the connection is ending, its event says how */
		else if (wc.status != IBV_WC_SUCCESS)
			rc = RPMA_E_UNKNOWN;
		else if (wc.opcode & IBV_WC_RECV)
			rc = take_mail(s, client, wc.byte_len);
		else if (client->state == SERVE_REFUSED)
			rpma_conn_disconnect(client->conn); /* it has been told */
		if (rc)
			break;
	}
	if (rc != RPMA_E_NO_COMPLETION)
		serve_forget(s, client);
}
