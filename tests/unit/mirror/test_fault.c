/* SPDX-License-Identifier: BSD-3-Clause */
/* Which faults the library's watch on a mapping handles, and which handlers get the other
 * faults. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mirror/fault.h"

#define PAGE    4096u
#define PAGES   64u
#define THREADS 4

static uint8_t *area, *other; /* two mappings without write access */
static struct fault_watch *watch;
static atomic_uint calls;
static sigjmp_buf back;

static int set_up(void **state)
{
	area = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	other = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	atomic_store(&calls, 0);
	return area == MAP_FAILED || other == MAP_FAILED;
}

static int tear_down(void **state)
{
	fault_unwatch(&watch);
	munmap(area, (size_t)PAGES * PAGE);
	munmap(other, PAGE);
	return 0;
}

static void store(volatile uint8_t *at)
{
	*at = 1;
}

static bool fn_open(void *arg, struct fault *fault)
{
	uint8_t *page = area + (size_t)((uint8_t *)fault->at - area) / PAGE * PAGE;

	atomic_fetch_add(&calls, 1);
	return arg == area && !mprotect(page, PAGE, PROT_READ | PROT_WRITE);
}

static bool fn_refuse(void *arg, struct fault *fault)
{
	atomic_fetch_add(&calls, 1);
	return false;
}

static bool fn_leave(void *arg, struct fault *fault)
{
	fault->leave = &back;
	return true;
}

/* ---- the application's handler ---- */

static atomic_uint handled;

static void application_on_fault(int sig, siginfo_t *info, void *uctx)
{
	void *page = (void *)((uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1));

	atomic_fetch_add(&handled, 1);
	if (mprotect(page, PAGE, PROT_READ | PROT_WRITE))
		abort();
}

static void install_handler(void)
{
	struct sigaction sa = {.sa_sigaction = application_on_fault, .sa_flags = SA_SIGINFO};

	atomic_store(&handled, 0);
	assert_int_equal(sigaction(SIGSEGV, &sa, NULL), 0);
}

/* ---- tests ---- */

static void test_a_store_is_repeated_when_its_fault_is_resolved(void **state)
{
	assert_int_equal(fault_watch(&watch, SIGSEGV, area, (size_t)PAGES * PAGE, fn_open, area),
			 0);
	for (unsigned i = 0; i < PAGES; i++)
		store(area + i * PAGE + i);
	for (unsigned i = 0; i < PAGES; i++)
		assert_int_equal(area[i * PAGE + i], 1);
	assert_int_equal(atomic_load(&calls), PAGES);
}

static void test_the_application_gets_what_is_not_watched(void **state)
{
	install_handler();
	assert_int_equal(fault_watch(&watch, SIGSEGV, area, PAGE, fn_open, area), 0);
	store(other);
	assert_int_equal(atomic_load(&handled), 1);
	store(area + PAGE); /* this address is past the end of the watched mapping */
	assert_int_equal(atomic_load(&handled), 2);
	store(area);
	assert_int_equal(atomic_load(&handled), 2);
	assert_int_equal(atomic_load(&calls), 1);
}

static void test_the_application_gets_what_is_not_resolved(void **state)
{
	install_handler();
	assert_int_equal(fault_watch(&watch, SIGSEGV, area, PAGE, fn_refuse, NULL), 0);
	store(area);
	assert_int_equal(atomic_load(&calls), 1);
	assert_int_equal(atomic_load(&handled), 1);
}

static void test_the_application_gets_all_when_the_watch_has_ended(void **state)
{
	install_handler();
	assert_int_equal(fault_watch(&watch, SIGSEGV, area, PAGE, fn_open, area), 0);
	fault_unwatch(&watch);
	assert_null(watch);
	store(area);
	assert_int_equal(atomic_load(&calls), 0);
	assert_int_equal(atomic_load(&handled), 1);
}

static void test_handlers_are_installed_again(void **state)
{
	assert_int_equal(fault_watch(&watch, SIGSEGV, area, (size_t)PAGES * PAGE, fn_open, area),
			 0);
	install_handler(); /* the application's handler replaces the library's */
	store(area);
	assert_int_equal(atomic_load(&handled), 1);
	assert_int_equal(fault_renew(), 0);
	store(area + PAGE);
	assert_int_equal(atomic_load(&handled), 1);
	assert_int_equal(atomic_load(&calls), 1);
}

static void test_several_watches_of_a_range_are_asked(void **state)
{
	struct fault_watch *second = NULL, *third = NULL;

	assert_int_equal(fault_watch(&watch, SIGSEGV, area, PAGE, fn_open, area), 0);
	assert_int_equal(fault_watch(&second, SIGSEGV, area, PAGE, fn_refuse, NULL), 0);
	assert_int_equal(fault_watch(&third, SIGBUS, area, PAGE, fn_refuse, NULL), 0);
	store(area);
	assert_int_equal(atomic_load(&calls), 2);
	fault_unwatch(&second);
	fault_unwatch(&third);
}

static void test_a_watch_may_leave_the_access(void **state)
{
	assert_int_equal(fault_watch(&watch, SIGSEGV, area, PAGE, fn_leave, NULL), 0);
	for (volatile int i = 0; i < 3; i++) {
		if (!sigsetjmp(back, 1)) {
			store(area);
			fail_msg("the store went on");
		}
	}
	fault_unwatch(&watch); /* the watch has no user any more */
	assert_int_equal(area[0], 0);
}

static bool fn_map(void *arg, struct fault *fault)
{
	atomic_fetch_add(&calls, 1);
	return ftruncate(*(int *)arg, PAGE) == 0;
}

static void test_bus_errors_are_watched_as_well(void **state)
{
	int fd = memfd_create("fault", MFD_CLOEXEC);
	volatile uint8_t *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(fault_watch(&watch, SIGBUS, (void *)p, PAGE, fn_map, &fd), 0);
	assert_int_equal(p[100], 0);
	assert_int_equal(atomic_load(&calls), 1);
	munmap((void *)p, PAGE);
	close(fd);
}

static int child_of(void (*body)(void))
{
	const struct rlimit no_core = {0, 0};
	struct sigaction dfl = {.sa_handler = SIG_DFL};
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		setrlimit(RLIMIT_CORE, &no_core);
		body();
		_exit(3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	sigaction(SIGSEGV, &dfl, NULL);
	return status;
}

static void child_store(void)
{
	store(area);
}

static void test_a_childs_faults_are_not_the_parents(void **state)
{
	int status;

	install_handler();
	assert_int_equal(fault_watch(&watch, SIGSEGV, area, PAGE, fn_refuse, NULL), 0);
	/* the application's handler resolves the fault, so the watch is not called */
	status = child_of(child_store);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
}

static void child_store_unresolved(void)
{
	struct sigaction dfl = {.sa_handler = SIG_DFL};

	sigaction(SIGSEGV, &dfl, NULL);
	if (!fault_watch(&watch, SIGSEGV, area, PAGE, fn_refuse, NULL))
		store(area);
}

static void test_a_process_without_a_handler_dies_of_the_signal(void **state)
{
	int status = child_of(child_store_unresolved);

	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
}

static void *thread_store(void *arg)
{
	for (unsigned i = 0; i < PAGES; i++)
		store(area + i * PAGE + (uintptr_t)arg);
	return NULL;
}

static void test_threads_fault_at_once(void **state)
{
	pthread_t threads[THREADS];

	assert_int_equal(fault_watch(&watch, SIGSEGV, area, (size_t)PAGES * PAGE, fn_open, area),
			 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, thread_store, (void *)(i * 8)),
				 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_true(atomic_load(&calls) >= PAGES);
	for (unsigned i = 0; i < PAGES * THREADS; i++)
		assert_int_equal(area[i / THREADS * PAGE + i % THREADS * 8], 1);
}

static atomic_bool is_inside, may_go;

static bool fn_wait(void *arg, struct fault *fault)
{
	atomic_store(&is_inside, true);
	while (!atomic_load(&may_go))
		usleep(100);
	return fn_open(arg, fault);
}

static void *thread_release(void *arg)
{
	while (!atomic_load(&is_inside))
		usleep(100);
	usleep(1000);
	atomic_store(&may_go, true);
	return NULL;
}

static void *thread_fault(void *arg)
{
	store(area);
	return NULL;
}

static void test_a_watch_ends_after_its_last_user(void **state)
{
	pthread_t faulting, releasing;

	assert_int_equal(fault_watch(&watch, SIGSEGV, area, PAGE, fn_wait, area), 0);
	pthread_create(&faulting, NULL, thread_fault, NULL);
	pthread_create(&releasing, NULL, thread_release, NULL);
	while (!atomic_load(&is_inside))
		usleep(100);
	fault_unwatch(&watch);
	assert_int_equal(atomic_load(&calls), 1);
	pthread_join(faulting, NULL);
	pthread_join(releasing, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_store_is_repeated_when_its_fault_is_resolved),
		TEST(test_the_application_gets_what_is_not_watched),
		TEST(test_the_application_gets_what_is_not_resolved),
		TEST(test_the_application_gets_all_when_the_watch_has_ended),
		TEST(test_handlers_are_installed_again),
		TEST(test_several_watches_of_a_range_are_asked),
		TEST(test_a_watch_may_leave_the_access),
		TEST(test_bus_errors_are_watched_as_well),
		TEST(test_a_childs_faults_are_not_the_parents),
		TEST(test_a_process_without_a_handler_dies_of_the_signal),
		TEST(test_threads_fault_at_once),
		TEST(test_a_watch_ends_after_its_last_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
