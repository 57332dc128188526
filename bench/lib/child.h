/* SPDX-License-Identifier: BSD-3-Clause */
/* child.h -- makes child processes of a measurement. */
#ifndef BENCH_LIB_CHILD_H
#define BENCH_LIB_CHILD_H

#include <sys/types.h>

/* Like fork(), but the child is killed when this process exits for any reason. If the fork fails,
 * the program exits. */
pid_t child_fork(void);

#endif
