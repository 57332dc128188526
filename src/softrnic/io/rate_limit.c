/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/rate_limit.h"

#include <stdbool.h>
#include <string.h>

#include "base/clock.h"

#define IPV6_PREFIX 8 /* length of a host's prefix in bytes */

/* Returns the prefix by which an address is counted. For IPv4 it is the last 12 bytes of the mapped
 * form, which equal no IPv6 prefix. */
static bool rate_limit_prefix(const struct link_addr *peer, uint64_t prefix[2])
{
	uint8_t bytes[16] = {[10] = 0xff, [11] = 0xff};

	if (peer->family == LINK_NONE)
		return false;
	if (peer->family == LINK_IPV4)
		memcpy(bytes + 12, peer->bytes, 4);
	else if (link_addr_is_mapped(peer))
		memcpy(bytes, peer->bytes, sizeof(bytes));
	else
		memcpy(memset(bytes, 0, sizeof(bytes)), peer->bytes, IPV6_PREFIX);
	memcpy(prefix, bytes, sizeof(bytes));
	return true;
}

static int rate_limit_find(const struct rate_limit *p, const uint64_t prefix[2], uint64_t now)
{
	for (int i = 0; i < RATE_LIMIT_HOSTS; i++)
		if (p->host[i].full_at > now && p->host[i].prefix[0] == prefix[0] &&
		    p->host[i].prefix[1] == prefix[1])
			return i;
	return -1;
}

static int rate_limit_first_to_forget(const struct rate_limit *p)
{
	int least = 0;

	for (int i = 1; i < RATE_LIMIT_HOSTS; i++)
		if (p->host[i].full_at < p->host[least].full_at)
			least = i;
	return least;
}

void rate_limit_init(struct rate_limit *p, uint64_t per_s)
{
	memset(p, 0, sizeof(*p));
	p->interval_ns = per_s ? NSEC_PER_SEC / per_s : 0;
}

void rate_limit_count(struct rate_limit *p, const struct link_addr *peer, uint64_t now)
{
	uint64_t prefix[2];
	int i;

	if (!p->interval_ns || !rate_limit_prefix(peer, prefix))
		return;
	i = rate_limit_find(p, prefix, now);
	if (i < 0) {
		i = rate_limit_first_to_forget(p);
		p->host[i] = (struct rate_limit_host){{prefix[0], prefix[1]}, now};
	}
	p->host[i].full_at += p->interval_ns;
}

uint64_t rate_limit_until(const struct rate_limit *p, const struct link_addr *peer, uint64_t now)
{
	uint64_t prefix[2], slack = p->interval_ns * RATE_LIMIT_BURST;
	int i;

	if (!p->interval_ns || !rate_limit_prefix(peer, prefix))
		return now;
	i = rate_limit_find(p, prefix, now);
	if (i < 0 || p->host[i].full_at - now < slack)
		return now;
	/* the time at which the bucket has room for one violation again */
	return p->host[i].full_at - slack + 1;
}
