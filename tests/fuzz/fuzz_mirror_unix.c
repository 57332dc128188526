/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of the UNIX socket: what decodes has one encoding. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "mirror/wire/packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct packet p;
	static uint8_t buf[PACKET_MAX];

	if (packet_decode(data, len, &p))
		return 0;
	EXPECT(packet_encode(&p, buf) == len && !memcmp(buf, data, len));
	return 0;
}
