/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of control connections: what decodes has one encoding. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "mirror/wire/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct message m;
	uint8_t buf[MESSAGE_SIZE];

	if (message_decode(data, len, version_newest(), &m))
		return 0;
	message_encode(&m, version_newest(), buf);
	EXPECT(len == MESSAGE_SIZE && !memcmp(buf, data, len));
	return 0;
}
