/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends the client's proof of the shared secret, and checks the server's proof. */
#include <stdio.h>
#include <string.h>

#include "regions/proof.h"
#include "regions/session_impl.h"

/*
 * Accept a region's name or a refusal only with a valid proof of the server. Only the answer "the
 * secrets differ" cannot have a proof.
 */
static int proof_check_grant(struct session *s, const struct secret *secret,
			     const struct hello_exchange *exchange, const uint8_t *in, size_t len,
			     struct error *err)
{
	struct hello_grant grant;
	uint8_t expected[HELLO_MAC];

	if (!hello_grant_decode(in, len, &grant) || grant.reply.version != HELLO_VERSION)
		return error_set(err, ERROR_REFUSED, HELLO_BAD_REQUEST,
				 "%s answers the proof with an unexpected message", s->server);
	if (grant.reply.status == HELLO_SECRET_WRONG)
		return error_set(err, ERROR_REFUSED, HELLO_SECRET_WRONG,
				 "the secrets differ: %s does not accept the proof; both ends need "
				 "the same secret file",
				 s->server);
	proof_of_server(secret, exchange, &grant.reply, expected);
	if (!mac_is_equal(expected, grant.mac))
		return error_set(
			err, ERROR_REFUSED, HELLO_SECRET_WRONG,
			"the secrets differ: %s cannot prove this client's secret; it may be the "
			"server of another owner",
			s->server);
	s->region = grant.reply;
	return 0;
}

int session_prove(struct session *s, const struct session_opts *opts, struct error *err)
{
	struct hello_exchange exchange = {.request = {.version = HELLO_VERSION,
						      .access = (uint8_t)opts->access,
						      .has_secret = true}};
	struct hello_proof proof;
	const uint8_t *in = NULL;
	size_t len = 0;
	int rc;

	snprintf(exchange.request.region, sizeof(exchange.request.region), "%s", opts->region);
	memcpy(exchange.server_nonce, s->region.nonce, HELLO_NONCE);
	secret_nonce(proof.nonce);
	memcpy(exchange.client_nonce, proof.nonce, HELLO_NONCE);
	proof_of_client(opts->secret, &exchange, proof.mac);
	rc = session_ask(s, hello_proof_encode(&proof, s->messages.out), &in, &len, err);
	return rc ? rc : proof_check_grant(s, opts->secret, &exchange, in, len, err);
}
