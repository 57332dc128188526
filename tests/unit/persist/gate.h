/* SPDX-License-Identifier: BSD-3-Clause */
/* gate.h -- replaces msync() by a function that the test can hold. Every call really writes
 * back. */
#ifndef PERSIST_GATE_H
#define PERSIST_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * While the gate is shut, a call writes its pages back but does not return. Shutting the gate
 * resets the count of calls.
 */
void gate_set(bool shut);
/* Let calls fail with this errno from now on; 0: let them succeed. */
void gate_fail(int err);
/* Returns how many calls have begun. */
unsigned gate_begun(void);
/* Wait until n calls have written their pages back. */
void gate_await(unsigned n);
/* Returns the thread that made the last call. */
pid_t gate_thread(void);
/* Returns the length of the longest range in a call. */
size_t gate_longest(void);
void gate_forget_longest(void);

#endif
