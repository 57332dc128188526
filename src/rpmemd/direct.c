/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmemd/direct.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/poll.h"

static int direct_send_greeting(struct wire_stream *stream, struct wire_exchange *exchange,
				uint64_t deadline, struct error *err)
{
	uint8_t buf[WIRE_BODY_MAX];
	int rc;

	exchange->greeting = (struct wire_greeting){.flags = WIRE_GREETING_PROVE};
	wire_random(exchange->greeting.nonce, sizeof(exchange->greeting.nonce));
	rc = wire_stream_send(stream, WIRE_GREETING, buf,
			      wire_greeting_encode(&exchange->greeting, buf), deadline);
	return rc ? wire_stream_explain(stream, rc, "the initiator", err) : 0;
}

static int direct_receive_proof(struct wire_stream *stream, struct wire_proof *proof,
				uint64_t deadline, struct error *err)
{
	struct wire_frame frame;
	int rc = wire_stream_receive(stream, &frame, deadline);

	if (rc)
		return wire_stream_explain(stream, rc, "the initiator", err);
	if (frame.type != WIRE_PROOF || !wire_proof_decode(frame.body, frame.len, proof))
		return error_set(err, ERROR_FAILED, EPROTO, "the initiator sent no proof");
	return 0;
}

static int direct_answer(struct wire_stream *stream, const struct wire_proven *proven,
			 uint64_t deadline, struct error *err)
{
	uint8_t buf[WIRE_BODY_MAX];
	int rc = wire_stream_send(stream, WIRE_PROVEN, buf, wire_proven_encode(proven, buf),
				  deadline);

	return rc ? wire_stream_explain(stream, rc, "the initiator", err) : 0;
}

static int direct_check(struct wire_stream *stream, const struct secret *secret,
			const struct direct_admission *admission, struct wire_exchange *exchange,
			uint64_t deadline, struct error *err)
{
	struct wire_proven proven = {.error = 0};
	struct wire_proof proof;
	uint8_t mac[WIRE_MAC];
	int rc = direct_receive_proof(stream, &proof, deadline, err);

	if (rc)
		return rc;
	memcpy(exchange->nonce, proof.nonce, sizeof(exchange->nonce));
	wire_prove_initiator(secret, exchange, mac);
	if (!secret_is_equal(mac, proof.mac)) {
		proven.error = EACCES;
		snprintf(proven.text, sizeof(proven.text), "the secret is another one here");
		direct_answer(stream, &proven, deadline, NULL);
		return error_set(err, ERROR_REFUSED, EACCES, "the initiator has another secret");
	}
	if (admission && admission->ask)
		proven.error = (uint32_t)admission->ask(admission->arg, err);
	if (proven.error)
		snprintf(proven.text, sizeof(proven.text), "%s", err->text);
	wire_prove_daemon(secret, exchange, &proven, proven.mac);
	rc = direct_answer(stream, &proven, deadline, proven.error ? NULL : err);
	return proven.error ? ERROR_REFUSED : rc;
}

int direct_authenticate(struct wire_stream *stream, const struct secret *secret,
			const struct direct_admission *admission, struct wire_key *lane_key,
			struct error *err)
{
	uint64_t deadline = poll_deadline(DIRECT_PROOF_MS);
	struct wire_exchange exchange;
	struct wire_keys keys;
	int rc = direct_send_greeting(stream, &exchange, deadline, err);

	if (!rc)
		rc = direct_check(stream, secret, admission, &exchange, deadline, err);
	if (rc)
		return rc;
	wire_keys_derive(secret, &exchange, &keys);
	wire_stream_seal(stream, &keys.to_initiator, &keys.to_daemon);
	*lane_key = keys.lanes;
	sodium_memzero(&keys, sizeof(keys));
	return 0;
}
