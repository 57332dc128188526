/* SPDX-License-Identifier: BSD-3-Clause */
/* Input: any bytes at the UDP port of datagram queue pairs. An accepted message encodes to the same
 * bytes. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "softrnic/proto/ud.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t again[UD_HEADER_LEN];
	struct ud_header h;

	if (ud_header_decode(data, len, &h))
		return 0;
	EXPECT(len >= UD_HEADER_LEN && len <= UD_DATAGRAM_MAX);
	EXPECT(h.from_qpn <= UD_QPN_MAX && h.to_qpn <= UD_QPN_MAX);
	EXPECT(ud_header_encode(again, sizeof(again), &h) == UD_HEADER_LEN);
	EXPECT(!memcmp(again, data, UD_HEADER_LEN));
	return 0;
}
