/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * secret.h -- what two ends share, the key of the codes (base/mac.h) by which each proves to the
 * other that it has it.
 *
 * The key is derived from the content of a file. What a proof covers is the protocol's: see
 * regions/proof.h. What it does not give is in doc/security.md.
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

/* The file's bytes without one newline at the end. ERROR_LOCAL: it cannot be read, is no regular
 * file, is open to others than its owner, or is too short or too long. */
int secret_load(struct secret *secret, const char *path, struct error *err);
/* Overwrite it. */
void secret_forget(struct secret *secret);
/* Fill a nonce with random bytes. */
void secret_nonce(uint8_t nonce[SECRET_NONCE]);

#endif
