/* SPDX-License-Identifier: BSD-3-Clause */
/* die.h -- a failure ends a benchmark with one line that explains it. */
#ifndef BENCH_DIE_H
#define BENCH_DIE_H

#define EXIT_SKIPPED 77

/* Report the failed call and errno. */
_Noreturn void die_errno(const char *what);
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The measurement is not possible on this machine or with this build. */
_Noreturn void skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
