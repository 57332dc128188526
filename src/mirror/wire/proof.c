/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/wire/proof.h"

#include <sodium.h>
#include <string.h>

#define PROOF_LABEL "rpma mirrorproof"
_Static_assert(sizeof(PROOF_LABEL) - 1 == crypto_generichash_blake2b_PERSONALBYTES, "length");
_Static_assert(MESSAGE_MAC == crypto_verify_32_BYTES, "compared by crypto_verify_32()");

enum proof_role { PROOF_ASKING = 'C', PROOF_DAEMON = 'S' };

/* Every part has a fixed length, so that no two exchanges look alike. */
static void proof_hash(const uint8_t *key, enum proof_role role,
		       const struct proof_exchange *exchange, const uint8_t *grant,
		       uint8_t mac[MESSAGE_MAC])
{
	crypto_generichash_blake2b_state state;
	uint8_t greeting[GREETING_SIZE], reply[GREETING_REPLY], who = (uint8_t)role;

	greeting_encode(&exchange->greeting, exchange->version, greeting);
	greeting_reply_encode(&exchange->reply, exchange->version, reply);
	crypto_generichash_blake2b_init_salt_personal(&state, key, PROOF_KEY, MESSAGE_MAC, NULL,
						      (const uint8_t *)PROOF_LABEL);
	crypto_generichash_blake2b_update(&state, &who, 1);
	crypto_generichash_blake2b_update(&state, greeting, sizeof(greeting));
	crypto_generichash_blake2b_update(&state, reply, sizeof(reply));
	crypto_generichash_blake2b_update(&state, exchange->nonce, GREETING_NONCE);
	if (grant)
		crypto_generichash_blake2b_update(&state, grant, MESSAGE_SIZE);
	crypto_generichash_blake2b_final(&state, mac, MESSAGE_MAC);
	sodium_memzero(&state, sizeof(state));
}

void proof_make(const uint8_t key[PROOF_KEY], const struct proof_exchange *exchange,
		uint8_t mac[MESSAGE_MAC])
{
	proof_hash(key, PROOF_ASKING, exchange, NULL, mac);
}

void proof_make_grant(const uint8_t key[PROOF_KEY], const struct proof_exchange *exchange,
		      const struct message_grant *grant, uint8_t mac[MESSAGE_MAC])
{
	struct message m = {.type = MESSAGE_GRANT, .grant = *grant};
	uint8_t buf[MESSAGE_SIZE];

	memset(m.grant.mac, 0, MESSAGE_MAC);
	message_encode(&m, exchange->version, buf);
	proof_hash(key, PROOF_DAEMON, exchange, buf, mac);
}

bool proof_is_equal(const uint8_t a[MESSAGE_MAC], const uint8_t b[MESSAGE_MAC])
{
	return !crypto_verify_32(a, b);
}

void proof_nonce(uint8_t nonce[GREETING_NONCE])
{
	randombytes_buf(nonce, GREETING_NONCE);
}
