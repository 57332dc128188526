/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/mac.h"

#include <sodium.h>

_Static_assert(MAC_LABEL == crypto_generichash_blake2b_PERSONALBYTES, "length");
_Static_assert(MAC_SIZE == crypto_verify_32_BYTES, "compared by crypto_verify_32()");

void mac_make(const uint8_t key[MAC_KEY], const char *label, const struct mac_part *parts,
	      unsigned count, uint8_t mac[MAC_SIZE])
{
	crypto_generichash_blake2b_state state;

	crypto_generichash_blake2b_init_salt_personal(&state, key, MAC_KEY, MAC_SIZE, NULL,
						      (const uint8_t *)label);
	for (unsigned i = 0; i < count; i++)
		crypto_generichash_blake2b_update(&state, parts[i].bytes, parts[i].len);
	crypto_generichash_blake2b_final(&state, mac, MAC_SIZE);
	sodium_memzero(&state, sizeof(state));
}

bool mac_is_equal(const uint8_t a[MAC_SIZE], const uint8_t b[MAC_SIZE])
{
	return !crypto_verify_32(a, b);
}
