/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rate_limit.h -- how often a remote address has accessed memory that it has no right to.
 *
 * A wrong STag ends its connection, so guessing goes no faster than connecting. An address with
 * more violations than programming errors explain has to wait before it may connect again: a bucket
 * of RATE_LIMIT_BURST, which refills at a fixed rate. The bucket may go below empty, because
 * connections that exist already are not touched; so the rate holds in the long run however many of
 * them guess at once.
 *
 * Pure: the caller passes the time. IPv6 addresses count by /64, because one host can easily have
 * that many; mapped IPv4 addresses count as IPv4.
 */
#ifndef IO_RATE_LIMIT_H
#define IO_RATE_LIMIT_H

#include <stdint.h>

#include "softrnic/io/link_addr.h"

#define RATE_LIMIT_BURST 100
/* Number of addresses to keep; for a further one the address with the shortest wait is dropped. */
#define RATE_LIMIT_HOSTS 1024

struct rate_limit {
	uint64_t interval_ns; /* between two violations at the sustained rate; 0: no limit */
	struct rate_limit_host {
		uint64_t prefix[2];
		/* time at which the bucket is full again; a row with a past time is free */
		uint64_t full_at;
	} host[RATE_LIMIT_HOSTS];
};

/* per_s: sustained rate of violations of one address; 0: no limit. */
void rate_limit_init(struct rate_limit *p, uint64_t per_s);
void rate_limit_count(struct rate_limit *p, const struct link_addr *peer, uint64_t now);
/* Time from which this address may connect; now, if it may connect already. */
uint64_t rate_limit_until(const struct rate_limit *p, const struct link_addr *peer, uint64_t now);

#endif
