/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * penalty.h -- how often a remote address has reached for memory that is not its own.
 *
 * A wrong STag ends its connection, so guessing goes no faster than connecting. An address that
 * has done it more often than an honest program's mistakes explain has to wait before it may
 * connect again: a bucket of PENALTY_BURST, which refills at a fixed rate. It may run into debt,
 * because connections that exist already are not touched, so the rate holds in the long run
 * however many of them guess at once.
 *
 * Pure: time goes in. IPv6 addresses count by /64, which is what one host can easily have; IPv4
 * ones that come mapped into IPv6 count as what they are.
 */
#ifndef ENGINE_PENALTY_H
#define ENGINE_PENALTY_H

#include <stdint.h>
#include <sys/socket.h>

#define PENALTY_BURST 100
/* Remembered; beyond that the one with the least to wait is forgotten. */
#define PENALTY_HOSTS 1024

struct penalty {
	uint64_t interval_ns; /* between two violations at the sustained rate; 0: nobody waits */
	struct penalty_host {
		uint64_t prefix[2];
		uint64_t full_at; /* its bucket is full again then; unused if that has passed */
	} host[PENALTY_HOSTS];
};

/* per_s: violations that an address may go on with; 0: any number. */
void penalty_init(struct penalty *p, uint64_t per_s);
void penalty_add(struct penalty *p, const struct sockaddr *peer, uint64_t now);
/* When that address may connect: now, or later. */
uint64_t penalty_until(const struct penalty *p, const struct sockaddr *peer, uint64_t now);

#endif
