/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/digest.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/crc32c.h"

uint32_t digest_pick(uint32_t alg, size_t len)
{
	if (alg != DIGEST_AUTO)
		return alg;
	return len <= DIGEST_SMALL ? DIGEST_CRC32C : DIGEST_BLAKE2B;
}

/* Selects code for this CPU. Where it fails, digests are slower and no less correct. */
static void digest_select_code(void)
{
	if (sodium_init() < 0)
		return;
}

int digest_init(struct digest *d, uint32_t alg)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (alg != DIGEST_CRC32C && alg != DIGEST_BLAKE2B)
		return -EINVAL;
	d->alg = alg;
	d->crc = CRC32C_INIT;
	if (alg == DIGEST_BLAKE2B) {
		pthread_once(&once, digest_select_code);
		crypto_generichash_init(&d->blake2b, NULL, 0, DIGEST_BYTES);
	}
	return 0;
}

void digest_update(struct digest *d, const void *buf, size_t len)
{
	if (d->alg == DIGEST_CRC32C)
		d->crc = crc32c_update(d->crc, buf, len);
	else
		crypto_generichash_update(&d->blake2b, buf, len);
}

void digest_final(struct digest *d, uint8_t bytes[DIGEST_BYTES])
{
	uint32_t crc = crc32c_final(d->crc);

	if (d->alg == DIGEST_BLAKE2B) {
		crypto_generichash_final(&d->blake2b, bytes, DIGEST_BYTES);
		return;
	}
	memset(bytes, 0, DIGEST_BYTES);
	for (int i = 0; i < 4; i++)
		bytes[i] = (uint8_t)(crc >> (24 - 8 * i));
}
