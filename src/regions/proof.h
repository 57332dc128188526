/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proof.h -- the proofs by which client and server of named regions show each other that they have
 * the same secret.
 *
 * A proof is a code (service/secret.h) over the role of the proving end, both nonces, the client's
 * request and, in the server's proof, its grant. So a proof cannot be sent back to its maker, used
 * a second time, or used for another region.
 */
#ifndef REGIONS_PROOF_H
#define REGIONS_PROOF_H

#include "regions/hello.h"
#include "service/secret.h"

/* The messages that both ends have sent before the proofs. */
struct hello_exchange {
	struct hello_request request;
	uint8_t client_nonce[HELLO_NONCE], server_nonce[HELLO_NONCE];
};

void proof_of_client(const struct secret *secret, const struct hello_exchange *exchange,
		     uint8_t mac[HELLO_MAC]);
/* The server's proof covers the grant, including its descriptor. */
void proof_of_server(const struct secret *secret, const struct hello_exchange *exchange,
		     const struct hello_reply *granted, uint8_t mac[HELLO_MAC]);

#endif
