/* SPDX-License-Identifier: BSD-3-Clause */
#include "payload.h"

#include <stdlib.h>
#include <sys/random.h>

#include "die.h"

#define PAYLOAD_PIECE 256u /* getrandom() is never interrupted for up to 256 bytes */

char *payload_new(size_t size)
{
	char *payload = malloc(size);

	if (!payload)
		die_errno("memory");
	for (size_t at = 0; at < size; at += PAYLOAD_PIECE) {
		size_t len = size - at < PAYLOAD_PIECE ? size - at : PAYLOAD_PIECE;

		if (getrandom(payload + at, len, 0) != (ssize_t)len)
			die_errno("getrandom");
	}
	return payload;
}
