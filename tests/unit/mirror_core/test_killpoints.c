/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process is killed at each point of killpoint.h in the code of the metadata: in each step, and
 * each time that the step passes the point. The file that is left must keep the rules. The test
 * also checks that the steps reach every such point.
 */
#include "unit/mirror_core/steps.h"

#include "lib/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mirror/core/killpoint.h"

#define TIMES_MAX 200 /* a step passes a point at most this often */

enum phase { PHASE_BEFORE, PHASE_RUN, PHASE_DONE, PHASE_FAILED };

/* The two processes share these: the metadata file, and the child's progress. */
static char path[] = "killpoints.XXXXXX", log_path[64];
static uint8_t *file, *fresh;
static uint64_t len;

static const char *const names[] = {
#define KILLPOINT_NAME(name, who, where) #name,
	KILLPOINTS(KILLPOINT_NAME)};

/* Points in the library and the daemon, which tests/system/mirror/killpoints.sh covers. */
static const char *const elsewhere[] = {
	"w6_before",        "w6_after",       "w6_known",      "flush_begin",   "flush_snapshot",
	"flush_posted",     "flush_local",    "flush_settled", "placed_before", "placed_after",
	"persist_before",   "persist_after",  "answer_before", "packet_before", "direct_opened",
	"direct_protected", "grow_room_data", "grow_ordered"};

static int no_persist(void *arg, uint64_t offset, uint64_t n)
{
	return 0;
}

static void load_file(void)
{
	struct meta_store store = {file, len, no_persist, NULL};
	struct error err = {0};

	if (meta_load(&steps_meta, &store, &err))
		fail_msg("%s", err.text);
}

static uint8_t *map_file(const char *name)
{
	int fd = open(name, O_RDWR | O_CLOEXEC);
	uint8_t *p = mmap(NULL, len + 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	close(fd);
	return p;
}

/* main() of the child, which is started as `self --step STEP FILE`. */
static int child(unsigned i, const char *name)
{
	len = meta_size_for(COPY_SIZE);
	file = map_file(name);
	if (file == MAP_FAILED || i >= steps_count)
		return 1;
	steps_boot = copy_uuid(0x70);
	load_file();
	if (member_init(&steps_member, &steps_meta, &steps_boot))
		return 1;
	steps[i].before();
	file[len] = PHASE_RUN;
	file[len] = steps[i].run() ? PHASE_FAILED : PHASE_DONE;
	member_fini(&steps_member);
	meta_fini(&steps_meta);
	return 0;
}

/* Run the child. Returns the status from waitpid(). */
static int run_child(unsigned i, const char *variable, const char *value)
{
	char name[] = "killpoints", flag[] = "--step", step[16];
	char *argv[] = {name, flag, step, path, NULL};
	int status;
	pid_t pid;

	snprintf(step, sizeof(step), "%u", i);
	memcpy(file, fresh, len);
	file[len] = PHASE_BEFORE;
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (!setenv(variable, value, 1))
			execv("/proc/self/exe", argv);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* Returns true if the child was killed at this point, false if it ended before reaching it. */
static bool kill_step(unsigned i, const char *name, unsigned n)
{
	char at[64];
	int status;
	bool holds;

	snprintf(at, sizeof(at), "%s:%u", name, n);
	status = run_child(i, "MIRROR_KILL_AT", at);
	if (WIFEXITED(status)) {
		assert_int_equal(WEXITSTATUS(status), 0);
		assert_int_equal(file[len], PHASE_DONE);
		return false;
	}
	assert_int_equal(WTERMSIG(status), SIGKILL);
	load_file();
	holds = !steps_meta.damage &&
		(file[len] == PHASE_BEFORE || steps[i].holds(file[len] == PHASE_DONE));
	meta_fini(&steps_meta);
	if (!holds)
		fail_msg("%s: killed at %s", steps[i].name, at);
	return true;
}

static int setup(void **state)
{
	struct two_layers t;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	snprintf(log_path, sizeof(log_path), "%s.log", path);
	copy_create(&t, 1);
	len = t.len;
	assert_int_equal(ftruncate(fd, (off_t)len + 4096), 0);
	close(fd);
	file = map_file(path);
	assert_ptr_not_equal(file, MAP_FAILED);
	fresh = malloc(len);
	assert_non_null(fresh);
	memcpy(fresh, t.medium, len);
	two_layers_fini(&t);
	return 0;
}

static int teardown(void **state)
{
	munmap(file, len + 4096);
	free(fresh);
	unlink(log_path);
	return unlink(path);
}

/* Returns the points that a step reaches, one bit for each point's number. */
static uint64_t reached_by(unsigned i)
{
	uint64_t reached = 0;
	char line[64];
	FILE *in;

	unlink(log_path);
	assert_int_equal(run_child(i, "MIRROR_KILL_LOG", log_path), 0);
	in = fopen(log_path, "re");
	if (!in)
		return 0;
	while (fgets(line, sizeof(line), in)) {
		line[strcspn(line, "\n")] = '\0';
		for (unsigned k = 0; k < ARRAY_LEN(names); k++)
			if (!strcmp(line, names[k]))
				reached |= 1ull << k;
	}
	fclose(in);
	return reached;
}

static bool is_elsewhere(const char *name)
{
	for (unsigned i = 0; i < ARRAY_LEN(elsewhere); i++)
		if (!strcmp(name, elsewhere[i]))
			return true;
	return false;
}

static void a_kill_at_any_point_leaves_a_state_that_the_rules_permit(void **state)
{
	uint64_t reached = 0;

	for (unsigned i = 0; i < steps_count; i++) {
		uint64_t here = reached_by(i);

		reached |= here;
		for (unsigned k = 0; k < ARRAY_LEN(names); k++) {
			unsigned n = 1;

			if (!(here & 1ull << k))
				continue;
			while (n < TIMES_MAX && kill_step(i, names[k], n))
				n++;
			assert_in_range(n, 2, TIMES_MAX - 1);
		}
	}
	for (unsigned k = 0; k < ARRAY_LEN(names); k++)
		if (is_elsewhere(names[k]) == (reached >> k & 1))
			fail_msg("%s: is reached %s", names[k],
				 reached >> k & 1 ? "here, too" : "by no step");
}

static void a_name_is_one_point(void **state)
{
	assert_true(ARRAY_LEN(names) == KILLPOINT_COUNT && KILLPOINT_COUNT <= 64);
	for (unsigned k = 0; k < ARRAY_LEN(names); k++)
		for (unsigned i = 0; i < k; i++)
			assert_string_not_equal(names[i], names[k]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_one_point),
		cmocka_unit_test_setup_teardown(
			a_kill_at_any_point_leaves_a_state_that_the_rules_permit, setup, teardown),
	};

	if (argc == 2 && !strcmp(argv[1], "--elsewhere")) {
		for (unsigned i = 0; i < ARRAY_LEN(elsewhere); i++)
			puts(elsewhere[i]);
		return 0;
	}
	if (argc == 4 && !strcmp(argv[1], "--step"))
		return child((unsigned)strtoul(argv[2], NULL, 10), argv[3]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
