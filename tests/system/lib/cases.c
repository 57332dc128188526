/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/lib/cases.h"

#include <assert.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "system/lib/proc.h"

/* A case that is running; pid 0: this slot is free. */
struct cases_slot {
	pid_t pid;
	int output;
	const char *name;
	uint64_t begin_ns;
};

/* Run a case in a child, which exits with one of two statuses. */
static void cases_child(const struct CMUnitTest *test, int output)
{
	proc_die_with_parent();
	dup2(output, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
	close(output);
	exit(_cmocka_run_group_tests(test->name, test, 1, NULL, NULL) ? 1 : 0);
}

static void cases_begin(struct cases_slot *slot, const struct CMUnitTest *test)
{
	fflush(stdout);
	fflush(stderr);
	slot->name = test->name;
	slot->begin_ns = clock_now_ns();
	slot->output = memfd_create(test->name, MFD_CLOEXEC);
	slot->pid = fork();
	if (!slot->pid)
		cases_child(test, slot->output);
	if (slot->pid < 0 || slot->output < 0) {
		perror("a case cannot be begun");
		exit(1);
	}
}

static void cases_print(int output)
{
	char text[4096];
	ssize_t n;

	lseek(output, 0, SEEK_SET);
	while ((n = read(output, text, sizeof(text))) > 0)
		fwrite(text, 1, (size_t)n, stdout);
	fflush(stdout);
}

/* Wait until a case ends. Returns true if this case failed. */
static bool cases_end_one(struct cases_slot *slots, unsigned at_once, bool only_failures)
{
	int status;
	pid_t pid = wait(&status);

	for (unsigned i = 0; i < at_once; i++) {
		if (slots[i].pid != pid)
			continue;
		if (status || !only_failures)
			cases_print(slots[i].output);
		if (WIFSIGNALED(status))
			printf("%s is ended by signal %d\n", slots[i].name, WTERMSIG(status));
		if (status || !only_failures)
			printf("%s took %llu ms\n", slots[i].name,
			       (unsigned long long)((clock_now_ns() - slots[i].begin_ns) /
						    NSEC_PER_MS));
		close(slots[i].output);
		slots[i].pid = 0;
		return status != 0;
	}
	return false;
}

static struct cases_slot *cases_free_slot(struct cases_slot *slots, unsigned at_once)
{
	for (unsigned i = 0; i < at_once; i++)
		if (!slots[i].pid)
			return &slots[i];
	return NULL;
}

static int cases_run_some(const struct CMUnitTest *cases, size_t count, unsigned at_once,
			  bool only_failures, void (*on_end)(size_t ended))
{
	struct cases_slot slots[CASES_AT_ONCE_MAX] = {0}, *slot;
	size_t begun = 0, ended = 0;
	int failed = 0;

	assert(at_once && at_once <= CASES_AT_ONCE_MAX);
	while (ended < count) {
		slot = begun < count ? cases_free_slot(slots, at_once) : NULL;
		if (slot) {
			cases_begin(slot, &cases[begun++]);
		} else {
			failed += cases_end_one(slots, at_once, only_failures);
			ended++;
			if (on_end)
				on_end(ended);
		}
	}
	return failed;
}

int cases_run_all(const struct CMUnitTest *cases, size_t count, unsigned at_once)
{
	return cases_run_some(cases, count, at_once, false, NULL);
}

int cases_run_many(const struct CMUnitTest *cases, size_t count, unsigned at_once,
		   void (*on_end)(size_t ended))
{
	return cases_run_some(cases, count, at_once, true, on_end);
}
