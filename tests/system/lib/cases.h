/* SPDX-License-Identifier: BSD-3-Clause */
/* cases.h -- runs several test cases at the same time, for cases that mostly wait. Each case has
 * its own process, which starts with a copy of the program's variables. */
#ifndef SYSTEM_CASES_H
#define SYSTEM_CASES_H

#include "system/lib/check.h"

#define CASES_AT_ONCE_MAX 16

/*
 * Like cmocka_run_group_tests(), but runs up to `at_once` cases at the same time, and prints the
 * output of each case after it ends. The calling process must have only one thread. Returns the
 * number of failed cases.
 */
#define cases_run(cases, at_once) cases_run_all(cases, ARRAY_LEN(cases), at_once)
int cases_run_all(const struct CMUnitTest *cases, size_t count, unsigned at_once);
/* Like cases_run_all(), but prints only the output of failed cases, and calls on_end after each
 * case. */
int cases_run_many(const struct CMUnitTest *cases, size_t count, unsigned at_once,
		   void (*on_end)(size_t ended));

#endif
