/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/core/candidate.h"

#include <string.h>

void candidate_init(struct candidate *c, uint32_t lease_ms)
{
	memset(c, 0, sizeof(*c));
	c->lease_ms = lease_ms;
}

static void candidate_begin(struct candidate *c, struct mirror_epoch epoch, uint64_t counter,
			    uint64_t revision, uint64_t since_ms)
{
	c->has_seen = true;
	c->epoch = epoch;
	c->counter = counter;
	c->revision = revision;
	c->since_ms = since_ms;
}

void candidate_on_sight(struct candidate *c, struct mirror_epoch epoch, uint64_t counter,
			uint64_t revision, uint64_t done_ms)
{
	if (!c->has_seen || revision > c->revision)
		candidate_begin(c, epoch, counter, revision, done_ms);
}

bool candidate_on_alive(struct candidate *c, struct mirror_epoch epoch, uint64_t counter,
			uint64_t revision, struct candidate_read read)
{
	if (!c->has_seen || c->counter != counter || c->revision != revision ||
	    !mirror_epoch_is_equal(c->epoch, epoch))
		candidate_begin(c, epoch, counter, revision, read.done_ms);
	return read.sent_ms >= c->since_ms && read.sent_ms - c->since_ms >= c->lease_ms;
}

bool candidate_on_cleared(struct candidate *c)
{
	c->has_seen = false;
	return true;
}

uint64_t candidate_due(const struct candidate *c)
{
	return c->has_seen ? c->since_ms + c->lease_ms : UINT64_MAX;
}
