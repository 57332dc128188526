/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's messages: its proof, the check of the server's, the list of regions, the question
 * whether what it wrote is kept. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "liblog.h"
#include "session.h"

int session_mail_open(struct session *s, struct rpma_conn_req *req)
{
	int rc = rpma_mr_reg(s->peer, &s->mail, sizeof(s->mail),
			     RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &s->mail_mr);

	for (unsigned i = 0; i < 2 && !rc; i++)
		rc = rpma_conn_req_recv(req, s->mail_mr, offsetof(struct session_mail, in[i]),
					sizeof(s->mail.in[i]), NULL);
	return rc;
}

/* Send what is in mail.out; *len is the answer's in *in. */
static int exchange(struct session *s, size_t out_len, const uint8_t **in, size_t *len)
{
	struct ibv_wc wc = {0};
	int rc = rpma_send(s->conn, s->mail_mr, offsetof(struct session_mail, out), out_len,
			   RPMA_F_COMPLETION_ON_ERROR, NULL);

	if (rc)
		return session_post_failed(s, "send a message to", rc);
	s->expects_mail = true;
	rc = session_reap(s, 0, &wc);
	s->expects_mail = false;
	*in = s->mail.in[s->mails++ % 2];
	*len = wc.byte_len;
	return rc;
}

/* The server's name for our region, or a refusal, is believed only if its proof is right; that
 * the secrets differ is the one thing that nobody can prove. */
static int check_grant(struct session *s, const struct secret_talk *talk, const uint8_t *in,
		       size_t len)
{
	struct hello_grant grant;
	uint8_t expected[HELLO_MAC];

	if (!hello_grant_decode(in, len, &grant) || grant.reply.version != HELLO_VERSION)
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
	const uint8_t *in = NULL;
	size_t len = 0;
	int rc;

	snprintf(talk.request.region, sizeof(talk.request.region), "%s", wish->region);
	memcpy(talk.server_nonce, s->region.nonce, HELLO_NONCE);
	secret_nonce(proof.nonce);
	memcpy(talk.client_nonce, proof.nonce, HELLO_NONCE);
	secret_prove_client(&s->secret, &talk, proof.mac);
	rc = exchange(s, hello_proof_encode(&proof, s->mail.out), &in, &len);
	return rc ? rc : check_grant(s, &talk, in, len);
}

int session_list(struct session *s, struct hello_list *list)
{
	const uint8_t *in = NULL;
	size_t len = 0;
	int rc = exchange(s, hello_ask_encode(s->mail.out), &in, &len);

	if (rc)
		return rc;
	if (!hello_list_decode(in, len, list))
		return cli_fail(CLI_REFUSED, "%s sends no list of regions", s->server);
	for (unsigned i = 0; i < list->count; i++)
		cli_make_printable(list->entries[i].region);
	return CLI_OK;
}

int session_say_lost(const struct session *s, enum hello_status status)
{
	static const char *const reasons[HELLO_STATUS_COUNT] = {
		[HELLO_FILE_REMOVED] = "was removed or renamed",
		[HELLO_FILE_REPLACED] = "was replaced by another file",
		[HELLO_FILE_TRUNCATED] = "was truncated",
	};

	if (status == HELLO_FILE_UNKNOWN)
		return cli_fail(
			CLI_REFUSED,
			"%s cannot look at the file of region '%s', so nobody knows whether "
			"what is written would be found; its log says more",
			s->server, s->region.region);
	return cli_fail(CLI_REFUSED,
			"the file of region '%s' of %s %s while it was served: what is written "
			"there would be lost; 'rpma get' saves what it holds, then start "
			"'rpma serve' anew",
			s->region.region, s->server, reasons[status]);
}

static int heed(struct session *s, const uint8_t *in, size_t len)
{
	enum hello_status status;

	if (!hello_verdict_decode(in, len, &status) ||
	    (status != HELLO_OK && status < HELLO_FILE_REMOVED))
		return cli_fail(CLI_REFUSED,
				"%s does not say whether what was written will be found",
				s->server);
	return status == HELLO_OK ? CLI_OK : session_say_lost(s, status);
}

int session_take_verdict(struct session *s, size_t len)
{
	int rc = heed(s, s->mail.in[s->mails++ % 2], len);

	return rc ? rc : cli_fail(CLI_REFUSED, "%s answers what was not asked", s->server);
}

int session_confirm(struct session *s)
{
	const uint8_t *in = NULL;
	size_t len = 0;
	int rc = exchange(s, hello_confirm_encode(s->mail.out), &in, &len);

	return rc ? rc : heed(s, in, len);
}
