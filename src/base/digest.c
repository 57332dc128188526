/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/digest.h"

#include <pthread.h>
#include <string.h>

#include "base/crc32c.h"

/* Let libsodium select the code for this CPU. If the selection fails, digests are slower, but
 * correct. */
static void digest_select_code(void)
{
	if (sodium_init() < 0)
		return;
}

void digest_init(struct digest *d, bool strong)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	d->strong = strong;
	d->crc = CRC32C_INIT;
	if (!strong)
		return;
	pthread_once(&once, digest_select_code);
	crypto_generichash_init(&d->blake2b, NULL, 0, DIGEST_BYTES);
}

void digest_update(struct digest *d, const void *buf, size_t len)
{
	if (d->strong)
		crypto_generichash_update(&d->blake2b, buf, len);
	else
		d->crc = crc32c_update(d->crc, buf, len);
}

void digest_final(struct digest *d, uint8_t bytes[DIGEST_BYTES])
{
	uint32_t crc = crc32c_final(d->crc);

	if (d->strong) {
		crypto_generichash_final(&d->blake2b, bytes, DIGEST_BYTES);
		return;
	}
	memset(bytes, 0, DIGEST_BYTES);
	for (int i = 0; i < 4; i++)
		bytes[i] = (uint8_t)(crc >> (24 - 8 * i));
}
