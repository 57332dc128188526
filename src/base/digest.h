/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * digest.h -- digests of a range of bytes, in pieces: CRC32C for short ranges, and for long
 * ones BLAKE2b-256 (RFC 7693).
 *
 *   digest_init(&d, digest_pick(DIGEST_AUTO, len));
 *   digest_update(&d, a, alen);
 *   digest_update(&d, b, blen);
 *   digest_final(&d, bytes);
 */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include <sodium.h>
#include <stddef.h>
#include <stdint.h>

#define DIGEST_BYTES 32             /* room for any; what an algorithm does not fill is zero */
#define DIGEST_SMALL ((size_t)4096) /* AUTO: CRC32C up to here */

/* The numbers of the wire and of librpma. */
enum digest_alg { DIGEST_AUTO, DIGEST_CRC32C, DIGEST_BLAKE2B };

/* libsodium wants it aligned to 64 bytes, as malloc() does not. */
struct digest {
	crypto_generichash_state blake2b;
	uint32_t alg;
	uint32_t crc;
};

/* What AUTO stands for with so many bytes; any other alg is returned as it is. */
uint32_t digest_pick(uint32_t alg, size_t len);
/* 0, or -EINVAL: no such algorithm (AUTO is none). */
int digest_init(struct digest *d, uint32_t alg);
void digest_update(struct digest *d, const void *buf, size_t len);
/* CRC32C: four bytes, the highest first. */
void digest_final(struct digest *d, uint8_t bytes[DIGEST_BYTES]);

#endif
