/* SPDX-License-Identifier: BSD-3-Clause */
/* memory_judge.h -- the results that librpma may return when memory or descriptors run out. */
#ifndef FAULT_MEMORY_JUDGE_H
#define FAULT_MEMORY_JUDGE_H

#include "fault/allocs.h"
#include "fault/life.h"

extern const struct life_judge memory_judge;

/* The nth request of that kind will fail (0: none), and all later ones if for_good. */
void memory_judge_start(enum alloc_kind kind, unsigned int nth, bool for_good);

#endif
