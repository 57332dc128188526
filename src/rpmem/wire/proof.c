/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmem/wire/proof.h"

#include <sodium.h>
#include <string.h>

#define LABEL_PROOF "rpmem proof    1"
#define LABEL_KEYS  "rpmem keys     1"
_Static_assert(sizeof(LABEL_PROOF) - 1 == MAC_LABEL, "length");
_Static_assert(sizeof(LABEL_KEYS) - 1 == MAC_LABEL, "length");

enum proof_role {
	PROOF_INITIATOR = 'I',
	PROOF_DAEMON = 'D',
	PROOF_KEY_TO_DAEMON = 1,
	PROOF_KEY_TO_INITIATOR,
	PROOF_KEY_LANES,
};

/* Every part has a fixed length or contains its length, so two different exchanges never give the
 * same bytes. */
static void proof_make(const struct secret *secret, const char *label, enum proof_role role,
		       const struct wire_exchange *exchange, const struct wire_proven *proven,
		       uint8_t out[WIRE_MAC])
{
	uint8_t greeting[WIRE_BODY_MAX], body[WIRE_BODY_MAX], who = (uint8_t)role;
	struct mac_part parts[] = {{&who, 1},
				   {exchange->nonce, WIRE_NONCE},
				   {greeting, wire_greeting_encode(&exchange->greeting, greeting)},
				   {body, 0}};

	if (proven) {
		struct wire_proven sent = *proven;

		memset(sent.mac, 0, sizeof(sent.mac));
		parts[3].len = wire_proven_encode(&sent, body);
	}
	mac_make(secret->key, label, parts, sizeof(parts) / sizeof(parts[0]), out);
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
