/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * secret.h -- what two ends share, and how each proves to the other that it knows it.
 *
 * The key is derived from the content of a file. A proof is a keyed BLAKE2b-256 of a label, the
 * role of the proving end, both nonces, the client's request, and, from the server, its grant.
 * Neither end's proof can therefore be turned back on it, or be used a second time, or for another
 * region. What this does not give is in doc/security.md.
 */
#ifndef SESSION_SECRET_H
#define SESSION_SECRET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "session/hello.h"

#define SECRET_MIN 16
#define SECRET_MAX 4096

struct secret {
	uint8_t key[32];
};

/* What both ends have sent before the proofs. */
struct secret_exchange {
	struct hello_request request;
	uint8_t client_nonce[HELLO_NONCE], server_nonce[HELLO_NONCE];
};

/* The file's bytes without one newline at the end. ERROR_LOCAL: it cannot be read, is no regular
 * file, is open to others than its owner, or is too short or too long. */
int secret_load(struct secret *secret, const char *path, struct error *err);
/* Overwrite it. */
void secret_forget(struct secret *secret);
/* Fill a nonce with random bytes. */
void secret_nonce(uint8_t nonce[HELLO_NONCE]);

void secret_prove_client(const struct secret *secret, const struct secret_exchange *exchange,
			 uint8_t mac[HELLO_MAC]);
/* Covers what is granted, hence the descriptor. */
void secret_prove_server(const struct secret *secret, const struct secret_exchange *exchange,
			 const struct hello_reply *granted, uint8_t mac[HELLO_MAC]);
/* In a time that does not depend on the bytes. */
bool secret_is_equal(const uint8_t a[HELLO_MAC], const uint8_t b[HELLO_MAC]);

#endif
