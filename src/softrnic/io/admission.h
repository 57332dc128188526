/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * admission.h -- which connections a listener begins to serve now. Those from addresses that
 * exceed the rate limit of violations (rate_limit.h) are accepted and held, unread, until the
 * limit admits them. Thread-safe.
 */
#ifndef IO_ADMISSION_H
#define IO_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "softrnic/io/link.h"

/*
 * The number of links that are held at one listener. Beyond it the one that was held longest is
 * closed.
 */
#define ADMISSION_MAX 256

struct admission {
	struct list held;
	unsigned n_held;
};

void admission_init(struct admission *a);
/* Close all links that are held. */
void admission_fini(struct admission *a);
/* In a forked child: without any effect on parent and peers. */
void admission_forked(struct admission *a);

/* True: it is held until then, and the link belongs to the admission now. */
bool admission_hold(struct admission *a, struct link *link, const struct link_addr *peer,
		    uint64_t now, uint64_t *until);
/*
 * Returns a link that may be served now, or NULL. *next is the time to ask again (CLOCK_NEVER: none
 * is held).
 */
struct link *admission_next(struct admission *a, uint64_t now, uint64_t *next);

/* Count a violation: the peer accessed memory that it has no right to. Called from any thread. */
void admission_count_violation(const struct link_addr *peer, uint64_t now);

void admission_atfork_prepare(void);
void admission_atfork_release(void);

#endif
