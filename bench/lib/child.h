/* SPDX-License-Identifier: BSD-3-Clause */
/* child.h -- child processes of a measurement. */
#ifndef BENCH_LIB_CHILD_H
#define BENCH_LIB_CHILD_H

#include <sys/types.h>

/* fork(), with a child that is killed when this process ends for any reason. Does not fail. */
pid_t child_fork(void);

#endif
