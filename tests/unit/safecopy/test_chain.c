/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the library's handlers affect the application's signal handling. Each case runs in a child
 * process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/safecopy.h"
#include "base/sigfault.h"
#include "test_safecopy.h"

/* ThreadSanitizer runs every handler with all signals blocked. */
#if defined(__SANITIZE_THREAD__)
#define MASKS_ALL true
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MASKS_ALL true
#endif
#endif
#ifndef MASKS_ALL
#define MASKS_ALL false
#endif

enum { HANDLED = 42, SURVIVED = 43, WRONG = 44 };

static volatile unsigned char *hole; /* an access raises SIGBUS */

static int in_child(void (*body)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		hole = map_truncated(2, 1) + 4096;
		body();
		_exit(SURVIVED);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void assert_exits(void (*body)(void), int code)
{
	int status = in_child(body);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), code);
}

static void assert_dies(void (*body)(void), int sig)
{
	int status = in_child(body);

	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), sig);
}

static void need(bool ok)
{
	if (!ok)
		_exit(WRONG);
}

static void install(int sig, void (*fn)(int, siginfo_t *, void *), int flags, int masked)
{
	struct sigaction sa = {.sa_sigaction = fn, .sa_flags = SA_SIGINFO | flags};

	sigemptyset(&sa.sa_mask);
	if (masked)
		sigaddset(&sa.sa_mask, masked);
	need(sigaction(sig, &sa, NULL) == 0);
}

static void protect(void)
{
	need(safecopy_setup() == 0);
	need(safecopy_probe((void *)hole) == -EFAULT);
}

static void fault_by_default(void)
{
	signal(SIGBUS, SIG_DFL);
	protect();
	(void)*hole;
}

static void fault_when_ignored(void)
{
	signal(SIGBUS, SIG_IGN);
	protect();
	need(raise(SIGBUS) == 0);
	(void)*hole;
}

static void sent_signal_by_default(void)
{
	signal(SIGSEGV, SIG_DFL);
	protect();
	raise(SIGSEGV);
}

static void sent_signal_when_ignored(void)
{
	signal(SIGSEGV, SIG_IGN);
	protect();
	raise(SIGSEGV);
}

static void without_handlers_the_process_dies_as_before(void **state)
{
	assert_dies(fault_by_default, SIGBUS);
	assert_dies(fault_when_ignored, SIGBUS);
	assert_dies(sent_signal_by_default, SIGSEGV);
	assert_exits(sent_signal_when_ignored, SURVIVED);
}

static bool is_blocked(int sig)
{
	sigset_t now;

	pthread_sigmask(SIG_BLOCK, NULL, &now);
	return sigismember(&now, sig);
}

static void expect_details(int sig, siginfo_t *info, void *uctx)
{
	_exit(sig == SIGBUS && info->si_addr == (void *)hole && uctx && is_blocked(SIGBUS) &&
			      is_blocked(SIGUSR1) && (MASKS_ALL || !is_blocked(SIGUSR2))
		      ? HANDLED
		      : WRONG);
}

static void fault_with_siginfo(void)
{
	install(SIGBUS, expect_details, 0, SIGUSR1);
	protect();
	(void)*hole;
}

static void expect_undeferred(int sig, siginfo_t *info, void *uctx)
{
	_exit(is_blocked(SIGBUS) && !MASKS_ALL ? WRONG : HANDLED);
}

static void fault_with_nodefer(void)
{
	install(SIGBUS, expect_undeferred, SA_NODEFER, 0);
	protect();
	(void)*hole;
}

static void plain_handler(int sig)
{
	_exit(sig == SIGBUS ? HANDLED : WRONG);
}

static void fault_with_plain_handler(void)
{
	signal(SIGBUS, plain_handler);
	protect();
	(void)*hole;
}

static void earlier_handlers_get_their_faults(void **state)
{
	assert_exits(fault_with_siginfo, HANDLED);
	assert_exits(fault_with_nodefer, HANDLED);
	assert_exits(fault_with_plain_handler, HANDLED);
}

static void make_page_appear(int sig, siginfo_t *info, void *uctx)
{
	mmap((void *)hole, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
	     -1, 0);
}

static void repair_and_resume(void)
{
	install(SIGBUS, make_page_appear, 0, 0);
	protect();
	*hole = 7;
	need(*hole == 7 && !is_blocked(SIGBUS));
}

static void a_one_shot_handler_runs_once(int sig, siginfo_t *info, void *uctx)
{
}

static void fault_with_resethand(void)
{
	install(SIGBUS, a_one_shot_handler_runs_once, SA_RESETHAND, 0);
	protect();
	(void)*hole;
}

static sigjmp_buf retry;

static void jump_out(int sig, siginfo_t *info, void *uctx)
{
	siglongjmp(retry, 1);
}

/* A program that probes memory leaves each fault by a jump, always at the same stack depth. */
static void jump_out_of_five_faults(int flags)
{
	volatile int faults = 0;

	install(SIGBUS, jump_out, flags, 0);
	protect();
	while (faults < 5)
		if (sigsetjmp(retry, 1))
			faults = faults + 1;
		else
			(void)*hole;
}

static void leave_by_longjmp(void)
{
	jump_out_of_five_faults(0);
}

static void leave_alternate_stack_by_longjmp(void)
{
	stack_t alt = {.ss_size = 1 << 18};

	alt.ss_sp = malloc(alt.ss_size);
	need(sigaltstack(&alt, NULL) == 0);
	jump_out_of_five_faults(SA_ONSTACK);
}

static void handlers_may_leave_by_longjmp(void **state)
{
	assert_exits(leave_by_longjmp, SURVIVED);
	assert_exits(leave_alternate_stack_by_longjmp, SURVIVED);
}

static void handlers_may_repair_and_reset(void **state)
{
	assert_exits(repair_and_resume, SURVIVED);
	assert_dies(fault_with_resethand, SIGBUS);
}

static void replaced_after_setup(void)
{
	protect();
	install(SIGBUS, expect_details, 0, SIGUSR1);
	protect();
	protect();
	(void)*hole;
}

static struct sigaction found;

/* A well-behaved application's handler passes unknown faults to the handler that it replaced. */
static void chaining_handler(int sig, siginfo_t *info, void *uctx)
{
	if (found.sa_flags & SA_SIGINFO)
		found.sa_sigaction(sig, info, uctx);
	else if (found.sa_handler != SIG_DFL)
		found.sa_handler(sig);
	else
		_exit(WRONG);
}

static void replaced_by_one_that_chains_to_us(void)
{
	struct sigaction sa = {.sa_sigaction = chaining_handler, .sa_flags = SA_SIGINFO};

	install(SIGBUS, expect_details, 0, SIGUSR1);
	protect();
	sigemptyset(&sa.sa_mask);
	sigaddset(&sa.sa_mask, SIGUSR1);
	need(sigaction(SIGBUS, &sa, &found) == 0);
	need(safecopy_probe((void *)hole) == -EFAULT);
	protect();
	(void)*hole;
}

static void replaced_by_one_that_chains_to_the_default(void)
{
	struct sigaction sa = {.sa_sigaction = chaining_handler, .sa_flags = SA_SIGINFO};

	signal(SIGBUS, SIG_DFL);
	protect();
	sigemptyset(&sa.sa_mask);
	need(sigaction(SIGBUS, &sa, &found) == 0);
	protect();
	(void)*hole;
}

static void a_replaced_handler_is_put_back_on_top(void **state)
{
	assert_exits(replaced_after_setup, HANDLED);
	assert_exits(replaced_by_one_that_chains_to_us, HANDLED);
	assert_dies(replaced_by_one_that_chains_to_the_default, SIGBUS);
}

/* ---- two libraries (other_sigfault.c) ---- */

int other_sigfault_setup(sigfault_fn *fn);

static enum sigfault_verdict resolve_nothing(const siginfo_t *info, void *uctx)
{
	return SIGFAULT_PASS;
}

static enum sigfault_verdict mend_and_raise(const siginfo_t *info, void *uctx)
{
	make_page_appear(SIGBUS, NULL, NULL);
	return SIGFAULT_RAISE;
}

/* Let two libraries install their handlers in turn: each library installs its handler again when it
 * finds the other library's handler. */
static void protect_by_both(void)
{
	for (unsigned i = 0; i < 3; i++) {
		protect();
		need(other_sigfault_setup(resolve_nothing) == 0);
	}
}

static void two_displace_each_other(void)
{
	install(SIGBUS, expect_details, 0, SIGUSR1);
	protect_by_both();
	(void)*hole;
}

static void two_displace_each_other_and_the_last_handler(void)
{
	protect_by_both();
	install(SIGBUS, expect_details, 0, SIGUSR1);
	protect_by_both();
	(void)*hole;
}

static void two_displace_each_other_and_the_default(void)
{
	signal(SIGBUS, SIG_DFL);
	protect_by_both();
	(void)*hole;
}

static void leave_two_by_longjmp(void)
{
	install(SIGBUS, jump_out, 0, 0);
	protect_by_both();
	for (volatile int faults = 0; faults < 5; faults = faults + 1)
		if (!sigsetjmp(retry, 1))
			(void)*hole;
}

static void raise_by_default(void)
{
	signal(SIGBUS, SIG_DFL);
	protect_by_both();
	need(other_sigfault_setup(mend_and_raise) == 0);
	(void)*hole;
}

static void raise_to_the_application(void)
{
	install(SIGBUS, expect_details, 0, SIGUSR1);
	protect_by_both();
	need(other_sigfault_setup(mend_and_raise) == 0);
	(void)*hole;
}

static void raise_and_go_on(void)
{
	install(SIGBUS, make_page_appear, 0, 0);
	protect_by_both();
	need(other_sigfault_setup(mend_and_raise) == 0);
	(void)*hole;
}

static void a_fault_is_raised_though_the_access_would_succeed(void **state)
{
	assert_dies(raise_by_default, SIGBUS);
	assert_exits(raise_to_the_application, HANDLED);
	assert_exits(raise_and_go_on, SURVIVED);
}

static void two_libraries_pass_faults_on_to_the_application(void **state)
{
	assert_exits(two_displace_each_other, HANDLED);
	assert_exits(two_displace_each_other_and_the_last_handler, HANDLED);
	assert_exits(leave_two_by_longjmp, SURVIVED);
	assert_dies(two_displace_each_other_and_the_default, SIGBUS);
}

static void expect_small_stack(int sig, siginfo_t *info, void *uctx)
{
	stack_t now;

	_exit(sigaltstack(NULL, &now) == 0 && (now.ss_flags & SS_ONSTACK) ? HANDLED : WRONG);
}

static void fault_on_alternate_stack(void)
{
	stack_t alt = {.ss_size = 1 << 18};

	alt.ss_sp = malloc(alt.ss_size);
	need(sigaltstack(&alt, NULL) == 0);
	install(SIGBUS, expect_small_stack, SA_ONSTACK, 0);
	protect();
	(void)*hole;
}

static void alternate_stacks_are_kept(void **state)
{
	assert_exits(fault_on_alternate_stack, HANDLED);
}

static void touch_the_hole(const void *addr, size_t len)
{
	(void)*hole;
}

static void fault_outside_of_guarded_range(void)
{
	static char other[4096];

	signal(SIGBUS, SIG_DFL);
	protect();
	safecopy_guard(other, sizeof(other), touch_the_hole);
}

static void a_guard_takes_only_faults_of_its_range(void **state)
{
	assert_dies(fault_outside_of_guarded_range, SIGBUS);
}

int run_chain_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_handlers_the_process_dies_as_before),
		cmocka_unit_test(earlier_handlers_get_their_faults),
		cmocka_unit_test(handlers_may_repair_and_reset),
		cmocka_unit_test(handlers_may_leave_by_longjmp),
		cmocka_unit_test(a_replaced_handler_is_put_back_on_top),
		cmocka_unit_test(two_libraries_pass_faults_on_to_the_application),
		cmocka_unit_test(a_fault_is_raised_though_the_access_would_succeed),
		cmocka_unit_test(alternate_stacks_are_kept),
		cmocka_unit_test(a_guard_takes_only_faults_of_its_range),
	};

	return cmocka_run_group_tests_name("safecopy-chain", tests, NULL, NULL);
}
