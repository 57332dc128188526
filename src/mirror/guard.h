/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * guard.h -- decides how to treat the application's mapping while the lease does not hold. A flag,
 * or the environment variable RPMIRROR_ON_FENCED, chooses error (only rpmirror_confirm() fails),
 * protect (neither loads nor stores) or kill. All calls need the set's lock.
 */
#ifndef MIRROR_GUARD_H
#define MIRROR_GUARD_H

#include <stdint.h>

struct rpmirror;

enum guard_policy { GUARD_ERROR, GUARD_PROTECT, GUARD_KILL };

/* Choose by RPMIRROR_MAP_FENCED_* in flags, else by the environment, else GUARD_PROTECT if a
 * register decides which member is the primary. */
enum guard_policy guard_choose(const struct rpmirror *m, unsigned flags);
#define GUARD_FLAGS                                                                                \
	(RPMIRROR_MAP_FENCED_ERROR | RPMIRROR_MAP_FENCED_PROTECT | RPMIRROR_MAP_FENCED_KILL)
/* The set's thread calls this in each pass. */
void guard_step(struct rpmirror *m, uint64_t now_ms);
/* Returns the time at which the lease ends; UINT64_MAX: the lease is over, or has not begun. */
uint64_t guard_deadline(const struct rpmirror *m);

#endif
