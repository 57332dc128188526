/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fault.h -- handles SIGSEGV and SIGBUS at addresses of mapped sets.
 *
 * A watch has a function that is called for the faults of one signal in a range of addresses.
 * Faults that no watch resolves are passed to the handlers that the application had installed
 * (base/sigfault.h). These handlers also get faults of forked children, and signals that were sent.
 */
#ifndef MIRROR_FAULT_H
#define MIRROR_FAULT_H

#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct fault {
	int sig;               /* SIGSEGV or SIGBUS */
	void *at;              /* the address that faulted */
	const siginfo_t *info; /* has si_addr_lsb and si_code */
	void *uctx;
	/* output: the fault is resolved by a jump to this point, not by repeating the access */
	sigjmp_buf *leave;
	/* output: the fault is not resolved, although the access would succeed now */
	bool raises;
};

/*
 * Resolves a fault. Runs in the signal handler, on the alternate stack if there is one, with the
 * signal mask of the interrupted thread. The function may make only async-signal-safe calls, take
 * no lock that this thread may hold, and jump only by fault->leave. Returns true if the fault is
 * resolved; the access is then repeated.
 */
typedef bool fault_fn(void *arg, struct fault *fault);

struct fault_watch;

/*
 * Call fn(arg) for each later fault of this signal in the range. The call installs the handlers, or
 * installs them again if the application has replaced them. Several watches of a range are asked
 * until one resolves the fault. Returns 0 or -errno. All functions here are thread-safe.
 */
int fault_watch(struct fault_watch **out, int sig, void *base, size_t len, fault_fn *fn, void *arg);
/* Install the handlers again if the application has replaced them. Returns 0 or -errno. */
int fault_renew(void);
/* Stop the watch. On return no thread runs fn, and *watch is NULL. *watch may already be NULL. */
void fault_unwatch(struct fault_watch **watch);

#endif
