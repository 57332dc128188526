/* SPDX-License-Identifier: BSD-3-Clause */
/* Private data of connections to a member's daemon: what decodes has one encoding, but for the
 * padding of zeros. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "mirror/wire/greeting.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct greeting g;
	struct greeting_reply reply;
	uint8_t buf[GREETING_REPLY];

	if (!greeting_decode(data, len, &g)) {
		EXPECT(greeting_encode(&g, buf) <= len && !memcmp(buf, data, GREETING_SIZE));
		EXPECT(g.to < MIRROR_MEMBERS_MAX && g.kind < GREETING_KIND_END);
	}
	if (!greeting_reply_decode(data, len, &reply)) {
		EXPECT(greeting_reply_encode(&reply, buf) <= len);
		EXPECT(!memcmp(buf, data, GREETING_REPLY));
	}
	return 0;
}
