/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/wire/proof.h"

#include <sodium.h>
#include <string.h>

#include "base/mac.h"

#define PROOF_LABEL "rpma mirrorproof"
_Static_assert(sizeof(PROOF_LABEL) - 1 == MAC_LABEL, "length");
_Static_assert(MESSAGE_MAC == MAC_SIZE && PROOF_KEY == MAC_KEY, "one length");

enum proof_role { PROOF_ASKING = 'C', PROOF_DAEMON = 'S' };

/* Every part has a fixed length, so that two different exchanges never give the same bytes. */
static void proof_hash(const uint8_t *key, enum proof_role role,
		       const struct proof_exchange *exchange, const uint8_t *grant,
		       uint8_t mac[MESSAGE_MAC])
{
	uint8_t greeting[GREETING_SIZE], reply[GREETING_REPLY], who = (uint8_t)role;
	const struct mac_part parts[] = {{&who, 1},
					 {greeting, sizeof(greeting)},
					 {reply, sizeof(reply)},
					 {exchange->nonce, GREETING_NONCE},
					 {grant, grant ? MESSAGE_SIZE : 0}};

	greeting_encode(&exchange->greeting, exchange->version, greeting);
	greeting_reply_encode(&exchange->reply, exchange->version, reply);
	mac_make(key, PROOF_LABEL, parts, sizeof(parts) / sizeof(parts[0]), mac);
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

void proof_nonce(uint8_t nonce[GREETING_NONCE])
{
	randombytes_buf(nonce, GREETING_NONCE);
}
