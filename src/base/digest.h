/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * digest.h -- computes a digest of bytes that come in pieces: CRC32C, or BLAKE2b-256 (RFC 7693) if
 * collisions must be infeasible (`strong`).
 *
 *   digest_init(&d, strong);
 *   digest_update(&d, a, alen);
 *   digest_update(&d, b, blen);
 *   digest_final(&d, bytes);
 */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include <sodium.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* size of the longest digest; zeros follow a shorter digest */
#define DIGEST_BYTES 32

/* libsodium requires alignment to 64 bytes, which malloc() does not give. */
struct digest {
	crypto_generichash_state blake2b;
	bool strong;
	uint32_t crc;
};

void digest_init(struct digest *d, bool strong);
void digest_update(struct digest *d, const void *buf, size_t len);
/* A CRC32C has four bytes, the most significant first. */
void digest_final(struct digest *d, uint8_t bytes[DIGEST_BYTES]);

#endif
