/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/sigfault.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The handlers that were installed before ours. An entry below `count` never changes, so the
 * signal handler reads entries without a lock.
 */
#define PREV_MAX 16

struct sigfault_prev {
	struct sigaction sa;
	/* value of `displaced` when this handler was displaced: the last displaced handler has the
	 * highest */
	atomic_uint order;
	atomic_bool spent; /* the handler has SA_RESETHAND, and has run */
};

struct sigfault_chain {
	int sig;
	atomic_uint count;
	unsigned displaced; /* number of displacements so far */
	struct sigfault_prev prev[PREV_MAX];
};

static struct sigfault_chain sigfault_chains[] = {{.sig = SIGBUS}, {.sig = SIGSEGV}};
static pthread_mutex_t sigfault_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(sigfault_fn *) sigfault_resolve;

/*
 * A displaced handler may itself call the handler that it displaced, which is our handler. Our
 * handler then gets the same ucontext again, in a frame further down the stack, and calls the next
 * older handler. The ucontext of a new fault may be at the same address, too, if the last handler
 * left by longjmp(), but the frame of that call is not further down. The variable is initial-exec,
 * because a handler must not touch thread-local storage that is allocated lazily.
 */
struct sigfault_walk {
	const void *uctx;
	uintptr_t frame;
	unsigned depth;
};
static __thread struct sigfault_walk sigfault_walk __attribute__((tls_model("initial-exec")));

static struct sigfault_chain *sigfault_chain_of(int sig)
{
	return sig == sigfault_chains[0].sig ? &sigfault_chains[0] : &sigfault_chains[1];
}

/* Returns the handler to try after `depth` handlers have passed the fault back. NULL: no handler
 * remains. */
static struct sigfault_prev *sigfault_pick(struct sigfault_chain *c, unsigned depth)
{
	unsigned count = atomic_load(&c->count), newer;

	for (unsigned i = 0; i < count; i++) {
		newer = 0;
		for (unsigned j = 0; j < count; j++)
			newer += atomic_load(&c->prev[j].order) > atomic_load(&c->prev[i].order);
		if (newer == depth)
			return &c->prev[i];
	}
	return NULL;
}

/*
 * Two libraries may have displaced each other's handlers repeatedly. Only one of the two has the
 * application's handler in its list. The other library passes the fault back by calling the first
 * library's handler again, which then continues with its older handlers.
 */
static struct sigfault_prev *sigfault_next(struct sigfault_chain *c, unsigned depth)
{
	unsigned count = atomic_load(&c->count);

	return count && depth < PREV_MAX ? sigfault_pick(c, depth % count) : NULL;
}

/* Returns true if an instruction of this thread raised the signal. Returning from the handler then
 * raises the signal again. */
static bool sigfault_is_synchronous(const siginfo_t *info)
{
	if (info->si_signo == SIGBUS && info->si_code == BUS_MCEERR_AO)
		return false;
	return info->si_code > 0;
}

static void sigfault_default(const siginfo_t *info)
{
	struct sigaction dfl = {.sa_handler = SIG_DFL};

	sigaction(info->si_signo, &dfl, NULL);
	if (!sigfault_is_synchronous(info))
		raise(info->si_signo);
}

static void sigfault_call(struct sigfault_prev *p, siginfo_t *info, void *uctx)
{
	const struct sigaction *sa = &p->sa;
	sigset_t block = sa->sa_mask, before;

	if (!(sa->sa_flags & SA_NODEFER))
		sigaddset(&block, info->si_signo);
	if (sa->sa_flags & SA_RESETHAND)
		atomic_store(&p->spent, true);
	pthread_sigmask(SIG_BLOCK, &block, &before);
	if (sa->sa_flags & SA_SIGINFO)
		sa->sa_sigaction(info->si_signo, info, uctx);
	else
		sa->sa_handler(info->si_signo);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void sigfault_pass_on(siginfo_t *info, void *uctx, uintptr_t frame)
{
	struct sigfault_walk outer = sigfault_walk;
	unsigned depth = outer.uctx == uctx && frame < outer.frame ? outer.depth + 1 : 0;
	struct sigfault_prev *p = sigfault_next(sigfault_chain_of(info->si_signo), depth);
	sighandler_t plain = p && !atomic_load(&p->spent) ? p->sa.sa_handler : SIG_DFL;

	/* The kernel does not let a process ignore a synchronous fault. */
	if (plain == SIG_IGN && !sigfault_is_synchronous(info))
		return;
	if (plain == SIG_DFL || plain == SIG_IGN) {
		sigfault_default(info);
		return;
	}
	sigfault_walk = (struct sigfault_walk){uctx, frame, depth};
	sigfault_call(p, info, uctx);
	sigfault_walk = outer;
}

/*
 * A library's handler may restore the default action and return, because it expects the access to
 * fault again.
 */
static void sigfault_end(int sig)
{
	struct sigaction sa;

	if (!sigaction(sig, NULL, &sa) && sa.sa_handler == SIG_DFL)
		raise(sig);
}

static void sigfault_handler(int sig, siginfo_t *info, void *uctx)
{
	enum sigfault_verdict verdict = SIGFAULT_PASS;
	int saved_errno = errno;

	if (sigfault_is_synchronous(info))
		verdict = atomic_load(&sigfault_resolve)(info, uctx);
	if (verdict != SIGFAULT_RESUME)
		sigfault_pass_on(info, uctx, (uintptr_t)__builtin_frame_address(0));
	if (verdict == SIGFAULT_RAISE)
		sigfault_end(sig);
	errno = saved_errno;
}

static bool sigfault_is_installed(const struct sigaction *sa)
{
	return (sa->sa_flags & SA_SIGINFO) && sa->sa_sigaction == sigfault_handler;
}

/* Compare only the fields that sigfault_call() applies. */
static bool sigfault_is_same(const struct sigaction *a, const struct sigaction *b)
{
	for (int sig = 1; sig < NSIG; sig++)
		if (sigismember(&a->sa_mask, sig) != sigismember(&b->sa_mask, sig))
			return false;
	return a->sa_handler == b->sa_handler && a->sa_flags == b->sa_flags;
}

static int sigfault_remember(struct sigfault_chain *c, const struct sigaction *sa)
{
	unsigned n = atomic_load(&c->count), i = 0;

	while (i < n && !sigfault_is_same(&c->prev[i].sa, sa))
		i++;
	if (i == PREV_MAX)
		return -ENOSPC;
	atomic_store(&c->prev[i].order, ++c->displaced);
	atomic_store(&c->prev[i].spent, false);
	if (i == n) {
		c->prev[i].sa = *sa;
		atomic_store(&c->count, n + 1);
	}
	return 0;
}

static int sigfault_take_over(struct sigfault_chain *c)
{
	struct sigaction ours = {.sa_sigaction = sigfault_handler}, cur, raced;
	int r;

	if (sigaction(c->sig, NULL, &cur) < 0)
		return -errno;
	if (sigfault_is_installed(&cur))
		return 0;
	/* Store the old handler before installing ours: another thread may raise a fault
	 * immediately. */
	r = sigfault_remember(c, &cur);
	if (r)
		return r;
	/*
	 * NODEFER with an empty mask: sigfault_call() applies the mask of each displaced handler.
	 * SA_RESTART stays as the application has set it.
	 */
	ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
	if ((cur.sa_flags & SA_RESTART) || cur.sa_handler == SIG_IGN)
		ours.sa_flags |= SA_RESTART;
	sigemptyset(&ours.sa_mask);
	if (sigaction(c->sig, &ours, &raced) < 0)
		return -errno;
	return sigfault_is_installed(&raced) || sigfault_is_same(&raced, &cur)
		       ? 0
		       : sigfault_remember(c, &raced);
}

static void sigfault_atfork_prepare(void)
{
	pthread_mutex_lock(&sigfault_lock);
}

static void sigfault_atfork_done(void)
{
	pthread_mutex_unlock(&sigfault_lock);
}

static void sigfault_register_atfork(void)
{
	pthread_atfork(sigfault_atfork_prepare, sigfault_atfork_done, sigfault_atfork_done);
}

int sigfault_setup(sigfault_fn *fn)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int r;

	pthread_once(&once, sigfault_register_atfork);
	pthread_mutex_lock(&sigfault_lock);
	atomic_store(&sigfault_resolve, fn);
	r = sigfault_take_over(&sigfault_chains[0]);
	if (!r)
		r = sigfault_take_over(&sigfault_chains[1]);
	pthread_mutex_unlock(&sigfault_lock);
	return r;
}
