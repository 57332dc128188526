/* SPDX-License-Identifier: BSD-3-Clause */
/* child.h -- processes that take part in a measurement. */
#ifndef BENCH_LIB_CHILD_H
#define BENCH_LIB_CHILD_H

#include <sys/types.h>

/* fork(); the child is killed when this process ends, in whatever way. Does not fail. */
pid_t child_fork(void);

#endif
