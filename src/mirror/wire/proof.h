/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proof.h -- the proofs by which both ends of a connection show that they have a set's secret.
 *
 * A proof is a keyed code (base/mac.h) of a label, the role of the proving end, the greeting, the
 * reply with the daemon's nonce, the other end's nonce and, in the daemon's proof, the grant. So a
 * proof cannot be sent back to its maker, nor used again for another set, epoch, kind or
 * registration.
 */
#ifndef MIRROR_WIRE_PROOF_H
#define MIRROR_WIRE_PROOF_H

#include "base/mac.h"
#include "mirror/wire/message.h"

#define PROOF_KEY 32

/* The data that both ends have sent before the proofs. */
struct proof_exchange {
	unsigned version; /* version in which both ends write from then on */
	struct greeting greeting;
	struct greeting_reply reply;
	uint8_t nonce[GREETING_NONCE]; /* nonce of the end that connected */
};

/* Make the proof of the end that connected. */
void proof_make(const uint8_t key[PROOF_KEY], const struct proof_exchange *exchange,
		uint8_t mac[MESSAGE_MAC]);
/* Make the daemon's proof, which covers the grant except for the mac in it. */
void proof_make_grant(const uint8_t key[PROOF_KEY], const struct proof_exchange *exchange,
		      const struct message_grant *grant, uint8_t mac[MESSAGE_MAC]);
/* Fill the nonce with random bytes. */
void proof_nonce(uint8_t nonce[GREETING_NONCE]);

#endif
