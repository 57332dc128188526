/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/register/alive.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void alive_encode(struct mirror_epoch epoch, uint64_t counter, char text[ALIVE_MAX])
{
	snprintf(text, ALIVE_MAX,
		 "{\"epoch\":%" PRIu64 ",\"nonce\":\"%016" PRIx64 "\",\"counter\":%" PRIu64 "}",
		 epoch.number, epoch.nonce, counter);
}

int alive_decode(const char *text, size_t len, struct mirror_epoch *epoch, uint64_t *counter)
{
	char copy[ALIVE_MAX], again[ALIVE_MAX];

	if (len >= sizeof(copy))
		return -EPROTO;
	memcpy(copy, text, len);
	copy[len] = '\0';
	if (sscanf(copy,
		   "{\"epoch\":%" SCNu64 ",\"nonce\":\"%" SCNx64 "\",\"counter\":%" SCNu64 "}",
		   &epoch->number, &epoch->nonce, counter) != 3)
		return -EPROTO;
	alive_encode(*epoch, *counter, again);
	return strlen(again) == len && !memcmp(again, text, len) ? 0 : -EPROTO;
}
