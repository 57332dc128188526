/* SPDX-License-Identifier: BSD-3-Clause */
/* gate.h -- an msync() that the test controls. All calls really write back. */
#ifndef PERSIST_GATE_H
#define PERSIST_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * While the gate is shut, a call writes all its pages back but does not return. Shutting the gate
 * begins a new count.
 */
void gate_set(bool shut);
/* From now on calls fail with that errno; 0: they succeed. */
void gate_fail(int err);
/* Returns the number of calls that have begun. */
unsigned gate_begun(void);
/* Wait until that many calls have written everything back. */
void gate_await(unsigned n);
/* Returns the thread of the last call. */
pid_t gate_thread(void);
/* Returns the longest range of a call. */
size_t gate_longest(void);
void gate_forget_longest(void);

#endif
