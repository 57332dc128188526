/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sigmask.h -- what a library's own threads block: every signal that the application may
 * wait for or handle. Not those of faults, because the kernel kills a process whose fault
 * signal is blocked.
 */
#ifndef BASE_SIGMASK_H
#define BASE_SIGMASK_H

#include <signal.h>
#include <stddef.h>

static inline void sigmask_of_library_thread(sigset_t *mask)
{
	static const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP};

	sigfillset(mask);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(mask, faults[i]);
}

#endif
