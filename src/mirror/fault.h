/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fault.h -- SIGSEGV and SIGBUS at addresses of mapped sets.
 *
 * A watch has a function that is called for the faults of one signal in a range of addresses.
 * Faults that no watch resolves go to the handlers that the application had installed
 * (base/sigfault.h), and so do faults of forked children and signals that were sent.
 */
#ifndef MIRROR_FAULT_H
#define MIRROR_FAULT_H

#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct fault {
	int sig;               /* SIGSEGV or SIGBUS */
	void *at;              /* the address */
	const siginfo_t *info; /* si_addr_lsb, si_code */
	void *uctx;
	sigjmp_buf *leave; /* out: resolved, by a jump there instead of a repeated access */
	bool raises;       /* out: not resolved, though the access would succeed now */
};

/*
 * Runs in the signal handler, on the alternate stack if there is one, with the signal mask that the
 * interrupted thread had: only async-signal-safe calls, no lock that this thread may hold, and no
 * jump (but fault->leave). True: the fault is resolved, the access is repeated.
 */
typedef bool fault_fn(void *arg, struct fault *fault);

struct fault_watch;

/*
 * Call fn(arg) for those faults from now on. The handlers are installed, or installed again if the
 * application has replaced them. Several watches of a range are asked until one resolves the
 * fault. 0 or -errno. Thread-safe, as are all here.
 */
int fault_watch(struct fault_watch **out, int sig, void *base, size_t len, fault_fn *fn, void *arg);
/* Install the handlers again if the application has replaced them. 0 or -errno. */
int fault_renew(void);
/* When this returns no thread runs fn. The watch is NULL then; a watch that is NULL is no error. */
void fault_unwatch(struct fault_watch **watch);

#endif
