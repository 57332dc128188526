/* SPDX-License-Identifier: BSD-3-Clause */
#include "regions/proof.h"

#define LABEL_PROOF "rpma serve proof"
_Static_assert(sizeof(LABEL_PROOF) - 1 == MAC_LABEL, "length");
_Static_assert(HELLO_MAC == MAC_SIZE && HELLO_NONCE == SECRET_NONCE, "one length");

static void hello_proof_mac(const struct secret *secret, char role,
			    const struct hello_exchange *exchange,
			    const struct hello_reply *granted, uint8_t mac[HELLO_MAC])
{
	uint8_t request[HELLO_MAX], grant[HELLO_MAX];
	const struct mac_part parts[] = {
		{&role, 1},
		{exchange->client_nonce, HELLO_NONCE},
		{exchange->server_nonce, HELLO_NONCE},
		{request, hello_request_encode(&exchange->request, request)},
		{grant, granted ? hello_reply_encode(granted, grant) : 0}};

	mac_make(secret->key, LABEL_PROOF, parts, sizeof(parts) / sizeof(parts[0]), mac);
}

void proof_of_client(const struct secret *secret, const struct hello_exchange *exchange,
		     uint8_t mac[HELLO_MAC])
{
	hello_proof_mac(secret, 'C', exchange, NULL, mac);
}

void proof_of_server(const struct secret *secret, const struct hello_exchange *exchange,
		     const struct hello_reply *granted, uint8_t mac[HELLO_MAC])
{
	hello_proof_mac(secret, 'S', exchange, granted, mac);
}
