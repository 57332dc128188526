/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sigfault.h -- calls one function first for each SIGBUS and SIGSEGV of this process.
 *
 * If the function does not resolve the fault, the handler that the application had installed gets
 * the fault. Without such a handler, the fault kills the process, as it would without the library.
 */
#ifndef BASE_SIGFAULT_H
#define BASE_SIGFAULT_H

#include <signal.h>

enum sigfault_verdict {
	SIGFAULT_PASS,   /* pass the fault to the displaced handlers */
	SIGFAULT_RESUME, /* continue with *uctx, which the function may have changed */
	/*
	 * Like PASS, but the access would succeed now. The process still ends if no handler was
	 * displaced.
	 */
	SIGFAULT_RAISE
};

/*
 * Called in the signal handler, only for faults that an instruction of this thread raised (never
 * for sent signals). The function may leave by siglongjmp().
 */
typedef enum sigfault_verdict sigfault_fn(const siginfo_t *info, void *uctx);

/*
 * Install the handlers, or install them again if the application has replaced them. Without a
 * change this costs two system calls. Always call this with the same function. Returns 0 or -errno.
 * Thread-safe.
 */
int sigfault_setup(sigfault_fn *fn);

#endif
