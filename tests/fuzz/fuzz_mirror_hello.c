/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Input: private data of a connection to a member's daemon. Decoded data have only one encoding,
 * except for the zeros of the padding and the additions of newer programs.
 */
#include "fuzz/fuzz.h"

#include <string.h>

#include "mirror/wire/greeting.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct greeting g;
	struct greeting_reply reply;
	uint8_t buf[GREETING_REPLY];

	if (!greeting_decode(data, len, &g)) {
		EXPECT(version_agree(g.versions, version_ours()));
		greeting_encode(&g, version_newest(), buf);
		if (version_is_known(g.versions.newest))
			EXPECT(buf[6] <= len && !memcmp(buf, data, buf[6]));
		EXPECT(g.to < MIRROR_MEMBERS_MAX && g.kind < GREETING_KIND_END);
	}
	if (!greeting_reply_decode(data, len, &reply)) {
		EXPECT(version_agree(reply.versions, version_ours()));
		greeting_reply_encode(&reply, version_newest(), buf);
		if (version_is_known(reply.versions.newest))
			EXPECT(buf[6] <= len && !memcmp(buf, data, buf[6]));
	}
	return 0;
}
