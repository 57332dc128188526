/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmemd/direct.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/poll.h"

#define DIRECT_SEND_MS 5000 /* time limit for sending an answer */

int direct_greet(struct wire_stream *stream, struct wire_exchange *exchange, struct error *err)
{
	uint8_t buf[WIRE_BODY_MAX];
	int rc;

	exchange->greeting = (struct wire_greeting){.flags = WIRE_GREETING_PROVE};
	wire_random(exchange->greeting.nonce, sizeof(exchange->greeting.nonce));
	/* The send buffer of a new connection has room for the greeting, so this call never
	 * waits. */
	rc = wire_stream_send(stream, WIRE_GREETING, buf,
			      wire_greeting_encode(&exchange->greeting, buf), poll_deadline(0));
	return rc ? wire_stream_explain(stream, rc, "the initiator", err) : 0;
}

static int direct_send(struct wire_stream *stream, const struct wire_proven *proven, int timeout_ms,
		       struct error *err)
{
	uint8_t buf[WIRE_BODY_MAX];
	int rc = wire_stream_send(stream, WIRE_PROVEN, buf, wire_proven_encode(proven, buf),
				  poll_deadline(timeout_ms));

	return rc ? wire_stream_explain(stream, rc, "the initiator", err) : 0;
}

int direct_receive_proof(struct wire_stream *stream, struct wire_proof *proof, struct error *err)
{
	struct wire_frame frame;
	int rc = wire_stream_try_receive(stream, &frame);

	if (rc == -EAGAIN)
		return rc;
	if (rc)
		return wire_stream_explain(stream, rc, "the initiator", err);
	/*
	 * Refuse further bytes after the proof, because they would be lost with this process's
	 * buffer.
	 */
	if (frame.type != WIRE_PROOF || stream->have != stream->used ||
	    !wire_proof_decode(frame.body, frame.len, proof))
		return error_set(err, ERROR_FAILED, EPROTO, "the initiator sent no proof");
	return 0;
}

int direct_check_proof(struct wire_stream *stream, const struct secret *secret,
		       const struct wire_proof *proof, struct wire_exchange *exchange,
		       struct error *err)
{
	struct wire_proven refusal = {.error = EACCES, .text = "the secret is another one here"};
	uint8_t mac[WIRE_MAC];

	memcpy(exchange->nonce, proof->nonce, sizeof(exchange->nonce));
	wire_prove_initiator(secret, exchange, mac);
	if (mac_is_equal(mac, proof->mac))
		return 0;
	/* Send no proof: an initiator without the key gets nothing that was made with the key. */
	direct_send(stream, &refusal, 0, NULL);
	return error_set(err, ERROR_REFUSED, EACCES, "the initiator has another secret");
}

int direct_answer(struct wire_stream *stream, const struct direct_start *start,
		  const struct error *failure, struct error *err)
{
	struct wire_proven proven = {.error = 0};

	if (failure) {
		proven.error = failure->cause > 0 ? (uint32_t)failure->cause : EIO;
		snprintf(proven.text, sizeof(proven.text), "%s", failure->text);
	}
	wire_prove_daemon(&start->secret, &start->exchange, &proven, proven.mac);
	return direct_send(stream, &proven, failure ? 0 : DIRECT_SEND_MS, err);
}

void direct_seal(struct wire_stream *stream, const struct direct_start *start,
		 struct wire_key *lane_key)
{
	struct wire_keys keys;

	wire_keys_derive(&start->secret, &start->exchange, &keys);
	wire_stream_seal(stream, &keys.to_initiator, &keys.to_daemon);
	*lane_key = keys.lanes;
	sodium_memzero(&keys, sizeof(keys));
}
