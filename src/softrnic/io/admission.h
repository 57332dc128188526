/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * admission.h -- decides which connections a listener begins to serve now. If an address exceeds
 * the rate limit of violations (rate_limit.h), its connections are accepted but held: no byte is
 * read from them until the limit admits them. Thread-safe.
 */
#ifndef IO_ADMISSION_H
#define IO_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "softrnic/io/link.h"

/* Greatest number of links that one listener holds. When one more is held, the link that was held
 * longest is closed. */
#define ADMISSION_MAX 256

struct admission {
	struct list held;
	unsigned n_held;
};

void admission_init(struct admission *a);
/* Close all held links. */
void admission_fini(struct admission *a);
/* In a forked child: drop the links without any effect on parent and peers. */
void admission_forked(struct admission *a);

/* Hold the link if its peer exceeds the rate limit. Returns true if the link is held; the admission
 * then owns it. *until is the time for the next admission_next(). */
bool admission_hold(struct admission *a, struct link *link, const struct link_addr *peer,
		    uint64_t now, uint64_t *until);
/* Returns a link that may be served now, or NULL. *next is the time of the next call, or
 * CLOCK_NEVER if no link is held. */
struct link *admission_next(struct admission *a, uint64_t now, uint64_t *next);

/* Count a violation: the peer accessed memory without permission. Called from any thread. */
void admission_count_violation(const struct link_addr *peer, uint64_t now);

void admission_atfork_prepare(void);
void admission_atfork_release(void);

#endif
