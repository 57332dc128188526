/* SPDX-License-Identifier: BSD-3-Clause */
/* Input: any bytes as the private data by which two queue pairs connect without rdma_cm. An
 * accepted message encodes to the same bytes. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "softrnic/proto/meet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t again[MEET_LEN];
	struct meet_data meet;
	const char *why;

	if (meet_data_decode(data, len, &meet, &why)) {
		EXPECT(why);
		return 0;
	}
	EXPECT(!why && len == MEET_LEN);
	EXPECT(meet.from.qpn <= MEET_QPN_MAX && meet.to.qpn <= MEET_QPN_MAX);
	EXPECT(meet.path_mtu <= MEET_MTU_MAX && meet.reason <= MEET_MALFORMED);
	EXPECT(meet_data_encode(again, sizeof(again), &meet) == MEET_LEN);
	EXPECT(!memcmp(again, data, MEET_LEN));
	return 0;
}
