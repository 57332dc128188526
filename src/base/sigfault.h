/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sigfault.h -- one function is called first for each SIGBUS and SIGSEGV of this process.
 *
 * A fault that it does not resolve goes on to the handler that the application had installed, and
 * without one kills the process as it would have without the library.
 */
#ifndef BASE_SIGFAULT_H
#define BASE_SIGFAULT_H

#include <signal.h>
#include <stdbool.h>

/*
 * Runs in the signal handler, for faults raised by an instruction of this thread
 * only (never for signals that were sent). True: execution may resume with *uctx,
 * which it may have changed. It may leave by siglongjmp() as well.
 */
typedef bool sigfault_fn(const siginfo_t *info, void *uctx);

/*
 * Install the handlers, or install them again when the application has replaced
 * them; costs two system calls when nothing changed. Always called with the
 * same function. 0 or -errno. Thread-safe.
 */
int sigfault_setup(sigfault_fn *fn);

#endif
