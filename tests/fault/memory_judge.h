/* SPDX-License-Identifier: BSD-3-Clause */
/* memory_judge.h -- a judge of a life (life.h) that permits only the results that librpma is
 * allowed to return when memory or descriptors run out. */
#ifndef FAULT_MEMORY_JUDGE_H
#define FAULT_MEMORY_JUDGE_H

#include "fault/allocs.h"
#include "fault/life.h"

extern const struct life_judge memory_judge;

/* Let the nth request of this kind from now fail (0: none). If for_good is set, all later requests
 * fail, too. */
void memory_judge_start(enum alloc_kind kind, unsigned int nth, bool for_good);

#endif
