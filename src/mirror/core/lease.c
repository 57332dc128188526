/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/core/lease.h"

#include <string.h>

void lease_init(struct lease *l, uint32_t lease_ms)
{
	memset(l, 0, sizeof(*l));
	l->lease_ms = lease_ms;
}

void lease_on_confirmed(struct lease *l, uint64_t sent_ms)
{
	/* Subtract a tenth, because the clocks of two hosts differ in speed. */
	uint64_t until = sent_ms + l->lease_ms - l->lease_ms / 10;

	if (until > l->valid_until)
		l->valid_until = until;
}

void lease_end(struct lease *l)
{
	l->ended = true;
}

bool lease_holds(const struct lease *l, uint64_t now_ms)
{
	return !l->ended && now_ms < l->valid_until;
}
