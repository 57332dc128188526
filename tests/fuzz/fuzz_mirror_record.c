/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Input: the record of a set as bytes. A record that decodes has permitted values and encodes to
 * the same bytes. If the first byte is odd, magic, format, length and checksum are corrected first.
 */
#include "fuzz/fuzz.h"

#include <string.h>

#include "base/crc32c.h"
#include "mirror/core/record.h"
#include "mirror/core/version.h"

static uint8_t bytes[RECORD_BYTES], again[RECORD_BYTES];

static void seal(size_t len)
{
	uint32_t length = (uint32_t)len, format = version_ours().lowest, crc;

	memcpy(bytes, "RPMRECRD", 8);
	memcpy(bytes + 8, &format, 4);
	memcpy(bytes + 12, &length, 4);
	crc = crc32c_final(crc32c_update(CRC32C_INIT, bytes, len - 4));
	memcpy(bytes + len - 4, &crc, 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct mirror_record rec;

	if (!len || len - 1 > sizeof(bytes))
		return 0;
	memcpy(bytes, data + 1, len - 1);
	if (data[0] & 1 && len > 20)
		seal(len - 1);
	if (record_decode(&rec, bytes, len - 1))
		return 0;
	EXPECT(!record_check(&rec));
	EXPECT(record_encode(&rec, again, sizeof(again)) == len - 1);
	EXPECT(!memcmp(bytes, again, len - 1));
	return 0;
}
