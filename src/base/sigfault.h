/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sigfault.h -- be asked first when this process takes a SIGBUS or SIGSEGV.
 *
 * The handler offers each fault to one function; faults that it does not know go
 * on to whatever the application had installed, and by default kill the process
 * exactly as they would have without us.
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
 * Install the handlers, or put them back on top when the application replaced
 * them since; costs two system calls when nothing changed. Always called with the
 * same function. 0 or -errno. Thread-safe.
 */
int sigfault_setup(sigfault_fn *fn);

#endif
