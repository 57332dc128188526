/* SPDX-License-Identifier: BSD-3-Clause */
/* environment.h -- sets variables of this process and of the programs that it executes. */
#ifndef BENCH_ENVIRONMENT_H
#define BENCH_ENVIRONMENT_H

#include <stdbool.h>

#include "case.h"

void environment_set(const char *name, const char *value);
/* Set softrnic's variables for this end, as the case requires. Call this before softrnic is first
 * used. */
void environment_softrnic(const struct bench_case *c, bool target);

#endif
