/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cases.h -- runs several cases at the same time, if they wait more than they work. Each case has a
 * process of its own, with the program's variables as they are when the cases begin.
 */
#ifndef SYSTEM_CASES_H
#define SYSTEM_CASES_H

#include "system/lib/check.h"

#define CASES_AT_ONCE_MAX 16

/*
 * Like cmocka_run_group_tests(), with at most that many cases at a time. The output of a case is
 * printed after its end. The caller must have no other thread. Returns the number of failed cases.
 */
#define cases_run(cases, at_once) cases_run_all(cases, ARRAY_LEN(cases), at_once)
int cases_run_all(const struct CMUnitTest *cases, size_t count, unsigned at_once);
/* Like cases_run_all(), but only the output of failed cases is printed. on_end is called after
 * each case. */
int cases_run_many(const struct CMUnitTest *cases, size_t count, unsigned at_once,
		   void (*on_end)(size_t ended));

#endif
