/* SPDX-License-Identifier: BSD-3-Clause */
/* Input: a message of a control connection. A decoded message has only one encoding in each
 * version. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "mirror/wire/message.h"

static void try_version(const uint8_t *data, size_t len, unsigned version)
{
	struct message m;
	uint8_t buf[MESSAGE_SIZE];

	if (message_decode(data, len, version, &m))
		return;
	message_encode(&m, version, buf);
	EXPECT(len == MESSAGE_SIZE && !memcmp(buf, data, len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	for (unsigned v = version_ours().lowest; v <= version_newest(); v++)
		try_version(data, len, v);
	return 0;
}
