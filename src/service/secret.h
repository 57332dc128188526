/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * secret.h -- what two ends share, and the codes by which each proves to the other that it has it.
 *
 * The key is derived from the content of a file. What a proof covers is the protocol's: see
 * regions/proof.h. What it does not give is in doc/security.md.
 */
#ifndef SERVICE_SECRET_H
#define SERVICE_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define SECRET_MIN   16
#define SECRET_MAX   4096
#define SECRET_NONCE 32
#define SECRET_MAC   32
#define SECRET_LABEL 16

struct secret {
	uint8_t key[32];
};

/* The file's bytes without one newline at the end. ERROR_LOCAL: it cannot be read, is no regular
 * file, is open to others than its owner, or is too short or too long. */
int secret_load(struct secret *secret, const char *path, struct error *err);
/* Overwrite it. */
void secret_forget(struct secret *secret);
/* Fill a nonce with random bytes. */
void secret_nonce(uint8_t nonce[SECRET_NONCE]);

struct secret_part {
	const void *bytes;
	size_t len;
};

/* Keyed BLAKE2b-256 of the parts, one after the other. The label keeps one use of a key from
 * another: SECRET_LABEL characters. Each part has a fixed length or carries its own, so that no two
 * lists of parts look alike. */
void secret_mac(const struct secret *secret, const char *label, const struct secret_part *parts,
		unsigned count, uint8_t mac[SECRET_MAC]);
/* In a time that does not depend on the bytes. */
bool secret_is_equal(const uint8_t a[SECRET_MAC], const uint8_t b[SECRET_MAC]);

#endif
