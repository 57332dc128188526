/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Input: a packet of the UNIX socket. A decoded packet has only one encoding in its version, except
 * for questions and refusals of newer programs.
 */
#include "fuzz/fuzz.h"

#include <string.h>

#include "mirror/wire/packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct packet p;
	static uint8_t buf[PACKET_MAX];

	if (packet_decode(data, len, &p))
		return 0;
	/* An encoded packet contains this build's lowest version, whichever version the sender's
	 * packet contained. */
	if (!version_is_known(p.versions.newest) || p.versions.lowest != version_ours().lowest)
		return 0;
	EXPECT(packet_encode(&p, p.versions.newest, buf) == len && !memcmp(buf, data, len));
	return 0;
}
