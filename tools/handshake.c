/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's messages: its proof, the check of the server's, the list of regions. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "liblog.h"
#include "session.h"

static int expect_mail(struct session *s)
{
	return rpma_recv(s->conn, s->mail_mr, offsetof(struct session_mail, in), sizeof(s->mail.in),
			 NULL);
}

int session_mail_open(struct session *s, struct rpma_conn_req *req)
{
	int rc = rpma_mr_reg(s->peer, &s->mail, sizeof(s->mail),
			     RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &s->mail_mr);

	return rc ? rc
		  : rpma_conn_req_recv(req, s->mail_mr, offsetof(struct session_mail, in),
				       sizeof(s->mail.in), NULL);
}

/* Send what is in mail.out; *len is the answer's in mail.in. */
static int exchange(struct session *s, size_t out_len, size_t *len)
{
	struct ibv_wc wc = {0};
	int rc = rpma_send(s->conn, s->mail_mr, offsetof(struct session_mail, out), out_len,
			   RPMA_F_COMPLETION_ON_ERROR, NULL);

	if (rc)
		return session_post_failed(s, "send a message to", rc);
	rc = session_reap(s, 0, &wc);
	*len = wc.byte_len;
	return rc;
}

/* The server's name for our region, or a refusal, is believed only if its proof is right; that
 * the secrets differ is the one thing that nobody can prove. */
static int check_grant(struct session *s, const struct secret_talk *talk, size_t len)
{
	struct hello_grant grant;
	uint8_t expected[HELLO_MAC];

	if (!hello_grant_decode(s->mail.in, len, &grant) || grant.reply.version != HELLO_VERSION)
		return cli_fail(CLI_REFUSED, "%s answers the proof with something else", s->server);
	if (grant.reply.status == HELLO_SECRET_WRONG)
		return cli_fail(CLI_REFUSED,
				"the secrets differ: %s does not accept the proof; both ends need "
				"the same --secret-file",
				s->server);
	secret_prove_server(&s->secret, talk, &grant.reply, expected);
	if (!secret_is_equal(expected, grant.mac))
		return cli_fail(CLI_REFUSED,
				"the secrets differ: %s cannot prove that it knows ours; it may be "
				"somebody else's server",
				s->server);
	s->region = grant.reply;
	return CLI_OK;
}

int session_prove(struct session *s, const struct session_wish *wish)
{
	struct secret_talk talk = {.request = {.version = HELLO_VERSION,
					       .access = (uint8_t)wish->access,
					       .has_secret = true}};
	struct hello_proof proof;
	size_t len = 0;
	int rc;

	snprintf(talk.request.region, sizeof(talk.request.region), "%s", wish->region);
	memcpy(talk.server_nonce, s->region.nonce, HELLO_NONCE);
	secret_nonce(proof.nonce);
	memcpy(talk.client_nonce, proof.nonce, HELLO_NONCE);
	secret_prove_client(&s->secret, &talk, proof.mac);
	rc = exchange(s, hello_proof_encode(&proof, s->mail.out), &len);
	return rc ? rc : check_grant(s, &talk, len);
}

int session_list(struct session *s, struct hello_list *list)
{
	size_t len = 0;
	int rc = 0;

	if (s->has_secret)
		rc = expect_mail(s); /* the first receive took the grant */
	if (rc)
		return session_post_failed(s, "receive from", rc);
	rc = exchange(s, hello_ask_encode(s->mail.out), &len);
	if (rc)
		return rc;
	if (!hello_list_decode(s->mail.in, len, list))
		return cli_fail(CLI_REFUSED, "%s sends no list of regions", s->server);
	for (unsigned i = 0; i < list->count; i++)
		cli_make_printable(list->entries[i].region);
	return CLI_OK;
}
