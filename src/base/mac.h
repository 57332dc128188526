/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mac.h -- computes a message authentication code (keyed BLAKE2b-256 over several parts), by which
 * an end proves that it knows a key. The protocol decides what the code covers. Thread-safe.
 */
#ifndef BASE_MAC_H
#define BASE_MAC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAC_KEY   32
#define MAC_LABEL 16
#define MAC_SIZE  32

struct mac_part {
	const void *bytes;
	size_t len; /* length of the key; 0: no key */
};

/*
 * Computes the code over the parts, in their order. The label (MAC_LABEL characters) makes the
 * codes of different uses of a key differ. Each part has a fixed length or contains its length, so
 * that two different lists of parts never give the same bytes.
 */
void mac_make(const uint8_t key[MAC_KEY], const char *label, const struct mac_part *parts,
	      unsigned count, uint8_t mac[MAC_SIZE]);
/* Compare in constant time. */
bool mac_is_equal(const uint8_t a[MAC_SIZE], const uint8_t b[MAC_SIZE]);

#endif
