/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmem/wire/proof.h"

#include <sodium.h>
#include <string.h>

/* As long as BLAKE2b's personalization, which keeps one use of a key from another. */
#define LABEL_PROOF "rpmem proof    1"
#define LABEL_KEYS  "rpmem keys     1"
_Static_assert(sizeof(LABEL_PROOF) - 1 == crypto_generichash_blake2b_PERSONALBYTES, "length");
_Static_assert(sizeof(LABEL_KEYS) - 1 == crypto_generichash_blake2b_PERSONALBYTES, "length");

enum proof_role {
	PROOF_INITIATOR = 'I',
	PROOF_DAEMON = 'D',
	PROOF_KEY_TO_DAEMON = 1,
	PROOF_KEY_TO_INITIATOR,
	PROOF_KEY_LANES,
};

/* Every part has a fixed length or carries its own, so that no two exchanges look alike. */
static void proof_make(const struct secret *secret, const char *label, enum proof_role role,
		       const struct wire_exchange *exchange, const struct wire_proven *proven,
		       uint8_t out[WIRE_MAC])
{
	crypto_generichash_blake2b_state state;
	uint8_t body[WIRE_BODY_MAX], who = (uint8_t)role;
	size_t len = wire_greeting_encode(&exchange->greeting, body);

	crypto_generichash_blake2b_init_salt_personal(&state, secret->key, sizeof(secret->key),
						      WIRE_MAC, NULL, (const uint8_t *)label);
	crypto_generichash_blake2b_update(&state, &who, 1);
	crypto_generichash_blake2b_update(&state, exchange->nonce, WIRE_NONCE);
	crypto_generichash_blake2b_update(&state, body, len);
	if (proven) {
		struct wire_proven sent = *proven;

		memset(sent.mac, 0, sizeof(sent.mac));
		len = wire_proven_encode(&sent, body);
		crypto_generichash_blake2b_update(&state, body, len);
	}
	crypto_generichash_blake2b_final(&state, out, WIRE_MAC);
}

void wire_prove_initiator(const struct secret *secret, const struct wire_exchange *exchange,
			  uint8_t mac[WIRE_MAC])
{
	proof_make(secret, LABEL_PROOF, PROOF_INITIATOR, exchange, NULL, mac);
}

void wire_prove_daemon(const struct secret *secret, const struct wire_exchange *exchange,
		       const struct wire_proven *proven, uint8_t mac[WIRE_MAC])
{
	proof_make(secret, LABEL_PROOF, PROOF_DAEMON, exchange, proven, mac);
}

void wire_keys_derive(const struct secret *secret, const struct wire_exchange *exchange,
		      struct wire_keys *keys)
{
	proof_make(secret, LABEL_KEYS, PROOF_KEY_TO_DAEMON, exchange, NULL, keys->to_daemon.bytes);
	proof_make(secret, LABEL_KEYS, PROOF_KEY_TO_INITIATOR, exchange, NULL,
		   keys->to_initiator.bytes);
	proof_make(secret, LABEL_KEYS, PROOF_KEY_LANES, exchange, NULL, keys->lanes.bytes);
}

void wire_random(uint8_t *bytes, size_t len)
{
	randombytes_buf(bytes, len);
}
