/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/sigfault.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Whom we displaced. Entries are immutable once counted, for the handler reads them unlocked. */
#define PREV_MAX 16

struct prev {
	struct sigaction sa;
	atomic_bool spent; /* SA_RESETHAND, and it has run */
};

struct chain {
	int sig;
	atomic_uint count;
	atomic_uint top; /* the one displaced last */
	struct prev prev[PREV_MAX];
};

static struct chain chains[] = {{.sig = SIGBUS}, {.sig = SIGSEGV}};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(sigfault_fn *) resolve;

/*
 * A displaced handler may itself call the one that it displaced: us. That is when the
 * same ucontext comes in again from a frame further down the stack, and then an older
 * handler is next. A fresh fault may have its ucontext at the same place as well, if the
 * last handler left by longjmp(), but it does not come in further down. Initial-exec,
 * because lazily allocated thread-local storage must not be touched in a handler.
 */
struct walk {
	const void *uctx;
	uintptr_t frame;
	unsigned depth;
};
static __thread struct walk walk __attribute__((tls_model("initial-exec")));

static struct chain *chain_of(int sig)
{
	return sig == chains[0].sig ? &chains[0] : &chains[1];
}

/* The handler to try when `depth` others have passed the fault back to us; NULL: none left. */
static struct prev *chain_pick(struct chain *c, unsigned depth)
{
	unsigned top = atomic_load(&c->top);

	if (depth == 0)
		return &c->prev[top];
	for (unsigned i = atomic_load(&c->count); i-- > 0;)
		if (i != top && --depth == 0)
			return &c->prev[i];
	return NULL;
}

/* Raised by what this thread just did, so that returning would raise it again. */
static bool is_synchronous(const siginfo_t *info)
{
	if (info->si_signo == SIGBUS && info->si_code == BUS_MCEERR_AO)
		return false;
	return info->si_code > 0;
}

static void die_as_without_us(const siginfo_t *info)
{
	struct sigaction dfl = {.sa_handler = SIG_DFL};

	sigaction(info->si_signo, &dfl, NULL);
	if (!is_synchronous(info))
		raise(info->si_signo);
}

static void call_prev(struct prev *p, siginfo_t *info, void *uctx)
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

static void pass_on(siginfo_t *info, void *uctx, uintptr_t frame)
{
	struct walk outer = walk;
	unsigned depth = outer.uctx == uctx && frame < outer.frame ? outer.depth + 1 : 0;
	struct prev *p = chain_pick(chain_of(info->si_signo), depth);
	sighandler_t plain = p && !atomic_load(&p->spent) ? p->sa.sa_handler : SIG_DFL;

	/* The kernel does not let a synchronous fault be ignored. */
	if (plain == SIG_IGN && !is_synchronous(info))
		return;
	if (plain == SIG_DFL || plain == SIG_IGN) {
		die_as_without_us(info);
		return;
	}
	walk = (struct walk){uctx, frame, depth};
	call_prev(p, info, uctx);
	walk = outer;
}

static void on_fault(int sig, siginfo_t *info, void *uctx)
{
	int saved_errno = errno;

	if (!is_synchronous(info) || !atomic_load(&resolve)(info, uctx))
		pass_on(info, uctx, (uintptr_t)__builtin_frame_address(0));
	errno = saved_errno;
}

static bool is_ours(const struct sigaction *sa)
{
	return (sa->sa_flags & SA_SIGINFO) && sa->sa_sigaction == on_fault;
}

/* Two spellings of the same handler differ at most in fields that we honour. */
static bool is_same(const struct sigaction *a, const struct sigaction *b)
{
	for (int sig = 1; sig < NSIG; sig++)
		if (sigismember(&a->sa_mask, sig) != sigismember(&b->sa_mask, sig))
			return false;
	return a->sa_handler == b->sa_handler && a->sa_flags == b->sa_flags;
}

static int remember(struct chain *c, const struct sigaction *sa)
{
	unsigned n = atomic_load(&c->count), i = 0;

	while (i < n && !is_same(&c->prev[i].sa, sa))
		i++;
	if (i == PREV_MAX)
		return -ENOSPC;
	if (i == n) {
		c->prev[i].sa = *sa;
		atomic_store(&c->count, n + 1);
	}
	atomic_store(&c->prev[i].spent, false);
	atomic_store(&c->top, i);
	return 0;
}

static int take_over(struct chain *c)
{
	struct sigaction ours = {.sa_sigaction = on_fault}, cur, raced;
	int r;

	if (sigaction(c->sig, NULL, &cur) < 0)
		return -errno;
	if (is_ours(&cur))
		return 0;
	/* Known before we are installed: a fault of another thread may come at once. */
	r = remember(c, &cur);
	if (r)
		return r;
	/*
	 * NODEFER and no mask: call_prev() makes the mask that each displaced handler
	 * asked for. RESTART is as visible to the application as it was before.
	 */
	ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
	if ((cur.sa_flags & SA_RESTART) || cur.sa_handler == SIG_IGN)
		ours.sa_flags |= SA_RESTART;
	sigemptyset(&ours.sa_mask);
	if (sigaction(c->sig, &ours, &raced) < 0)
		return -errno;
	return is_ours(&raced) || is_same(&raced, &cur) ? 0 : remember(c, &raced);
}

static void fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

static void fork_done(void)
{
	pthread_mutex_unlock(&lock);
}

static void register_atfork(void)
{
	pthread_atfork(fork_prepare, fork_done, fork_done);
}

int sigfault_setup(sigfault_fn *fn)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int r;

	pthread_once(&once, register_atfork);
	pthread_mutex_lock(&lock);
	atomic_store(&resolve, fn);
	r = take_over(&chains[0]);
	if (!r)
		r = take_over(&chains[1]);
	pthread_mutex_unlock(&lock);
	return r;
}
