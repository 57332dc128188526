/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cases.h -- cases that wait more than they work, several at the same time: each in a process of
 * its own, which has the program's variables as they are when the cases begin.
 */
#ifndef SYSTEM_CASES_H
#define SYSTEM_CASES_H

#include "system/lib/check.h"

#define CASES_AT_ONCE_MAX 16

/* cmocka_run_group_tests(), with at most so many cases at a time; what each prints comes when it
 * has ended. The caller has no thread yet. Returns how many have failed. */
#define cases_run(cases, at_once) cases_run_all(cases, ARRAY_LEN(cases), at_once)
int cases_run_all(const struct CMUnitTest *cases, size_t count, unsigned at_once);
/* The same, but only what failed cases print comes. on_end is called after each. */
int cases_run_many(const struct CMUnitTest *cases, size_t count, unsigned at_once,
		   void (*on_end)(size_t ended));

#endif
