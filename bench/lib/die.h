/* SPDX-License-Identifier: BSD-3-Clause */
/* die.h -- whatever goes wrong ends a benchmark with one line that says what. */
#ifndef BENCH_DIE_H
#define BENCH_DIE_H

#define EXIT_SKIPPED 77

/* What failed with which errno. */
_Noreturn void die_errno(const char *what);
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* This machine or this build cannot do it. */
_Noreturn void skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
