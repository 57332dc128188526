/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proof.h -- for sessions without ssh: both ends prove that they have the secret, and derive the
 * keys of the session from the secret.
 *
 * A proof is a code (base/mac.h) over a label, the role of the proving end, the whole greeting and
 * the initiator's nonce; the daemon's proof also covers its PROVEN. The keys are made in the same
 * way with other labels, so each session has its own keys, and no key is ever sent. doc/security.md
 * lists the properties that the proofs do not give (secrecy). secret.h reads the file.
 */
#ifndef RPMEM_WIRE_PROOF_H
#define RPMEM_WIRE_PROOF_H

#include "rpmem/wire/message.h"
#include "service/secret.h"

struct wire_key {
	uint8_t bytes[WIRE_KEY];
};

/* The messages that both ends have sent before the proofs. */
struct wire_exchange {
	struct wire_greeting greeting;
	uint8_t nonce[WIRE_NONCE]; /* nonce of the initiator */
};

/* Keys of the two directions of the stream (frame.h), and of the lanes (lane.h). */
struct wire_keys {
	struct wire_key to_daemon, to_initiator, lanes;
};

void wire_prove_initiator(const struct secret *secret, const struct wire_exchange *exchange,
			  uint8_t mac[WIRE_MAC]);
/* Make the proof, which covers the error and the text of the answer. */
void wire_prove_daemon(const struct secret *secret, const struct wire_exchange *exchange,
		       const struct wire_proven *proven, uint8_t mac[WIRE_MAC]);
void wire_keys_derive(const struct secret *secret, const struct wire_exchange *exchange,
		      struct wire_keys *keys);
/* Make random bytes, for nonces and for the lane key over ssh. */
void wire_random(uint8_t *bytes, size_t len);

#endif
