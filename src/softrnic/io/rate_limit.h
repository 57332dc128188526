/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rate_limit.h -- limits how often a remote address may access memory without permission (a
 * "violation").
 *
 * A wrong STag ends its connection, so a peer cannot guess STags faster than it can connect. An
 * address with more violations than programming errors can explain has to wait before it may
 * connect again. Each address has a bucket of RATE_LIMIT_BURST violations, which refills at a fixed
 * rate. The number in the bucket may become negative, because existing connections are not ended.
 * So the rate holds in the long run, no matter how many connections guess at the same time.
 *
 * Pure: the caller passes the time. IPv6 addresses are counted by their /64 prefix, because one
 * host can easily use all addresses of a prefix. Mapped IPv4 addresses are counted as IPv4.
 */
#ifndef IO_RATE_LIMIT_H
#define IO_RATE_LIMIT_H

#include <stdint.h>

#include "softrnic/io/link_addr.h"

#define RATE_LIMIT_BURST 100
/* Number of addresses that are kept. If one more is needed, the address with the shortest wait is
 * dropped. */
#define RATE_LIMIT_HOSTS 1024

struct rate_limit {
	uint64_t interval_ns; /* time between two violations at the permitted rate; 0: no limit */
	struct rate_limit_host {
		uint64_t prefix[2];
		/* time at which the bucket is full again; if the time is past, the row is free */
		uint64_t full_at;
	} host[RATE_LIMIT_HOSTS];
};

/* per_s is the permitted rate of violations of one address; 0: no limit. */
void rate_limit_init(struct rate_limit *p, uint64_t per_s);
void rate_limit_count(struct rate_limit *p, const struct link_addr *peer, uint64_t now);
/* Returns the time from which this address may connect, or `now` if it may connect already. */
uint64_t rate_limit_until(const struct rate_limit *p, const struct link_addr *peer, uint64_t now);

#endif
