/* SPDX-License-Identifier: BSD-3-Clause */
/* die.h -- ends a benchmark with one line that explains the failure. */
#ifndef BENCH_DIE_H
#define BENCH_DIE_H

#define EXIT_SKIPPED 77

/* Report which call failed, and errno. */
_Noreturn void die_errno(const char *what);
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* End the program, because this machine or this build does not permit the measurement. */
_Noreturn void skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
