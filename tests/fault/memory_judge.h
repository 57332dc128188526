/* SPDX-License-Identifier: BSD-3-Clause */
/* memory_judge.h -- the results that librpma may return when memory or descriptors run out. */
#ifndef FAULT_MEMORY_JUDGE_H
#define FAULT_MEMORY_JUDGE_H

#include "fault/allocs.h"
#include "fault/life.h"

extern const struct life_judge memory_judge;

/* From now on the nth request of that kind fails (0: none), and with for_good all later
 * requests, too. */
void memory_judge_start(enum alloc_kind kind, unsigned int nth, bool for_good);

#endif
