/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * secret.h -- a key that two ends share. By a code made with the key (base/mac.h), each end proves
 * to the other end that it has the key.
 *
 * The key is derived from the content of a file. The protocol decides what a proof covers: see
 * regions/proof.h. doc/security.md lists the properties that a proof does not give.
 */
#ifndef SERVICE_SECRET_H
#define SERVICE_SECRET_H

#include <stdint.h>

#include "base/error.h"
#include "base/mac.h"

#define SECRET_MIN   16
#define SECRET_MAX   4096
#define SECRET_NONCE 32

struct secret {
	uint8_t key[MAC_KEY];
};

/*
 * Load a file and derive the key from its bytes, without one newline at the end. ERROR_LOCAL: the
 * file cannot be read, is not a regular file, can be read by other users, or is too short or too
 * long.
 */
int secret_load(struct secret *secret, const char *path, struct error *err);
/* Overwrite the secret. */
void secret_forget(struct secret *secret);
/* Fill a nonce with random bytes. */
void secret_nonce(uint8_t nonce[SECRET_NONCE]);

#endif
