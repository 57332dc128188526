/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * crc32c.h -- computes CRC32C (Castagnoli), as iSCSI and MPA use it, over bytes that come in
 * pieces.
 *
 *   uint32_t c = CRC32C_INIT;
 *   c = crc32c_update(c, a, alen);
 *   c = crc32c_update(c, b, blen);
 *   value = crc32c_final(c);       stored little-endian on the wire (RFC 5044 s4.4)
 */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

#define CRC32C_INIT 0xffffffffu

uint32_t crc32c_update(uint32_t crc, const void *buf, size_t len);

static inline uint32_t crc32c_final(uint32_t crc)
{
	return ~crc;
}

#endif
