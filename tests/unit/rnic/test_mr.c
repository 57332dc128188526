/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "softrnic/rnic/mr.h"
#include "softrnic/rnic/rnic.h"
#include "verbs_ext/verbs_ext.h"

#define RW (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static struct mr_table *table;
static struct ibv_pd pd, other_pd;
static char memory[4096];

static int setup(void **state)
{
	return mr_table_new(&table);
}

static int teardown(void **state)
{
	mr_table_delete(table);
	return 0;
}

static struct mr *region(void *addr, size_t len, uint64_t iova, int access)
{
	struct mr *mr = NULL;

	assert_int_equal(mr_new(table, &pd, addr, len, iova, access, NULL, &mr), 0);
	return mr;
}

static struct mr *whole(int access)
{
	return region(memory, sizeof(memory), (uintptr_t)memory, access);
}

static void drop(struct mr *mr)
{
	mr_kill(mr);
	mr_wait_idle(mr);
	mr_delete(mr);
}

/* Look a region up, and release it immediately. Returns the verdict. */
static enum mr_verdict look(const struct ibv_pd *in, uint32_t stag, uint64_t to, uint64_t len,
			    int access)
{
	struct mr *mr;
	void *ptr;
	enum mr_verdict verdict = mr_hold(table, in, stag, to, len, access, &mr, &ptr);

	if (verdict == MR_OK)
		mr_release(mr);
	return verdict;
}

static void registration_describes_the_region(void **state)
{
	struct mr *mr = whole(RW);

	assert_ptr_equal(mr->ibv.addr, memory);
	assert_int_equal(mr->ibv.length, sizeof(memory));
	assert_ptr_equal(mr->ibv.pd, &pd);
	assert_int_equal(mr->ibv.lkey, mr->ibv.rkey);
	assert_int_not_equal(mr->ibv.rkey, 0);
	drop(mr);
}

static void registration_refuses_what_verbs_refuses(void **state)
{
	uint64_t at = (uintptr_t)memory;
	struct mr *mr;

	assert_int_equal(mr_new(table, &pd, memory, 0, at, RW, NULL, &mr), -EINVAL);
	assert_int_equal(mr_new(table, &pd, memory, SIZE_MAX, at, RW, NULL, &mr), -EINVAL);
	assert_int_equal(mr_new(table, &pd, memory, 16, UINT64_MAX - 14, RW, NULL, &mr), -EINVAL);
	assert_int_equal(mr_new(table, &pd, memory, 16, at, IBV_ACCESS_REMOTE_WRITE, NULL, &mr),
			 -EINVAL);
	assert_int_equal(mr_new(table, &pd, memory, 16, at, IBV_ACCESS_REMOTE_ATOMIC, NULL, &mr),
			 -EINVAL);
}

static void stags_are_unique_while_the_table_grows(void **state)
{
	enum { N = 3000 };
	static struct mr *mrs[N];

	for (int i = 0; i < N; i++)
		mrs[i] = region(memory + i, 1, (uintptr_t)memory + (unsigned)i, RW);
	for (int i = 0; i < N; i++) {
		struct mr *mr;
		void *ptr;

		assert_int_equal(mr_hold(table, &pd, mrs[i]->ibv.rkey,
					 (uintptr_t)memory + (unsigned)i, 1, 0, &mr, &ptr),
				 MR_OK);
		assert_ptr_equal(mr, mrs[i]);
		assert_ptr_equal(ptr, memory + i);
		mr_release(mr);
	}
	for (int i = 0; i < N; i++)
		drop(mrs[i]);
}

static void lookup_checks_stag_pd_and_rights(void **state)
{
	struct mr *mr = whole(IBV_ACCESS_REMOTE_READ);
	uint32_t stag = mr->ibv.rkey;
	uint64_t to = (uintptr_t)memory;

	assert_int_equal(look(&pd, stag, to, 8, IBV_ACCESS_REMOTE_READ), MR_OK);
	assert_int_equal(look(&pd, stag, to, 8, 0), MR_OK);
	assert_int_equal(look(&pd, stag + 1, to, 8, 0), MR_BAD_STAG);
	assert_int_equal(look(&other_pd, stag, to, 8, 0), MR_BAD_PD);
	assert_int_equal(look(&pd, stag, to, 8, IBV_ACCESS_REMOTE_WRITE), MR_BAD_ACCESS);
	assert_int_equal(look(&pd, stag, to, 8, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE),
			 MR_BAD_ACCESS);
	drop(mr);
}

static void one_of_several_rights_is_enough_where_any_is(void **state)
{
	struct mr *mr = whole(IBV_ACCESS_LOCAL_WRITE);
	struct mr_near near = {0};
	int wanted = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	uint64_t to = (uintptr_t)memory;
	void *ptr;

	assert_int_equal(mr_hold_near(table, &near, &pd, mr->ibv.rkey, to, 8, 0, wanted, &ptr),
			 MR_OK);
	assert_ptr_equal(near.mr, mr);
	mr_release_near(&near);
	assert_int_equal(mr_hold_near(table, &near, &pd, mr->ibv.rkey, to, 8, 0,
				      IBV_ACCESS_REMOTE_READ, &ptr),
			 MR_BAD_ACCESS);
	mr_release_near(&near);
	drop(mr);
}

static void bounds_hold_at_both_ends_and_do_not_overflow(void **state)
{
	struct mr *mr = region(memory + 64, 128, 1000, RW);
	uint32_t stag = mr->ibv.rkey;

	assert_int_equal(look(&pd, stag, 1000, 128, 0), MR_OK);
	assert_int_equal(look(&pd, stag, 1127, 1, 0), MR_OK);
	assert_int_equal(look(&pd, stag, 999, 1, 0), MR_BAD_BOUNDS);
	assert_int_equal(look(&pd, stag, 1127, 2, 0), MR_BAD_BOUNDS);
	assert_int_equal(look(&pd, stag, 1128, 1, 0), MR_BAD_BOUNDS);
	assert_int_equal(look(&pd, stag, 1000, 129, 0), MR_BAD_BOUNDS);
	assert_int_equal(look(&pd, stag, 1000, UINT64_MAX - 1000, 0), MR_BAD_BOUNDS);
	assert_int_equal(look(&pd, stag, 1000, UINT64_MAX, 0), MR_TO_WRAP);
	assert_int_equal(look(&pd, stag, UINT64_MAX, 2, 0), MR_TO_WRAP);
	assert_int_equal(look(&pd, stag, UINT64_MAX, 1, 0), MR_BAD_BOUNDS);
	drop(mr);
}

static void a_region_may_end_at_the_last_offset(void **state)
{
	struct mr *mr = region(memory, 16, UINT64_MAX - 15, RW);

	assert_int_equal(look(&pd, mr->ibv.rkey, UINT64_MAX - 15, 16, 0), MR_OK);
	assert_int_equal(look(&pd, mr->ibv.rkey, UINT64_MAX - 15, 17, 0), MR_TO_WRAP);
	drop(mr);
}

static void zero_length_checks_no_bounds(void **state)
{
	struct mr *mr = whole(RW);

	assert_int_equal(look(&pd, mr->ibv.rkey, 0, 0, IBV_ACCESS_REMOTE_WRITE), MR_OK);
	assert_int_equal(look(&pd, mr->ibv.rkey, UINT64_MAX, 0, 0), MR_OK);
	assert_int_equal(look(&other_pd, mr->ibv.rkey, 0, 0, 0), MR_BAD_PD);
	drop(mr);
}

static void offsets_are_relative_to_iova(void **state)
{
	struct mr *mr = region(memory, sizeof(memory), 0, RW), *held;
	void *ptr;

	assert_int_equal(mr_hold(table, &pd, mr->ibv.rkey, 100, 8, 0, &held, &ptr), MR_OK);
	assert_ptr_equal(ptr, memory + 100);
	mr_release(held);
	drop(mr);
}

static void a_killed_region_is_unknown_even_while_held(void **state)
{
	struct mr *mr = whole(RW), *held;
	void *ptr;

	assert_int_equal(mr_hold(table, &pd, mr->ibv.rkey, (uintptr_t)memory, 8, 0, &held, &ptr),
			 MR_OK);
	mr_kill(mr);
	assert_int_equal(look(&pd, mr->ibv.rkey, (uintptr_t)memory, 8, 0), MR_BAD_STAG);
	mr_release(held);
	drop(mr);
}

static void a_region_is_invalidated_only_from_its_pd_and_if_registered_for_that(void **state)
{
	struct mr *local = whole(IBV_ACCESS_LOCAL_WRITE);
	struct mr *shared = whole(RW | IBV_ACCESS_REMOTE_ATOMIC | VEXT_ACCESS_FLUSH_GLOBAL |
				  VEXT_ACCESS_FLUSH_PERSISTENT);
	struct mr *remote = whole(RW | VEXT_ACCESS_REMOTE_INVALIDATE);
	uint32_t stag = remote->ibv.rkey;

	assert_int_equal(mr_invalidate(table, &pd, local->ibv.rkey), MR_BAD_ACCESS);
	assert_int_equal(mr_invalidate(table, &pd, shared->ibv.rkey), MR_BAD_ACCESS);
	assert_int_equal(look(&pd, shared->ibv.rkey, (uintptr_t)memory, 8, RW), MR_OK);
	assert_int_equal(mr_invalidate(table, &other_pd, stag), MR_BAD_PD);
	assert_int_equal(look(&pd, stag, (uintptr_t)memory, 8, 0), MR_OK);
	assert_int_equal(mr_invalidate(table, &pd, stag), MR_OK);
	assert_int_equal(look(&pd, stag, (uintptr_t)memory, 8, 0), MR_BAD_STAG);
	assert_int_equal(mr_invalidate(table, &pd, stag), MR_BAD_STAG);
	drop(local);
	drop(shared);
	drop(remote);
}

/* A lasting region needs a mapping of the library's own. In a forked child the library has no such
 * mapping. */
static void in_a_forked_child_no_region_is_lasting(void **state)
{
	struct mr *mr = whole(RW);
	int status = -1;
	pid_t pid;

	mr->backing.lasting = true;
	mr_table_atfork_prepare(table);
	pid = fork();
	if (pid == 0) {
		mr_table_atfork_child(table);
		_exit(mr->backing.lasting);
	}
	mr_table_atfork_parent(table);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(mr->backing.lasting);
	drop(mr);
}

static void a_forked_child_forgets_the_holds_of_its_parent(void **state)
{
	struct mr *mr = whole(RW), *held;
	int status = -1;
	void *ptr;
	pid_t pid;

	assert_int_equal(mr_hold(table, &pd, mr->ibv.rkey, (uintptr_t)memory, 8, 0, &held, &ptr),
			 MR_OK);
	mr_table_atfork_prepare(table);
	pid = fork();
	if (pid == 0) {
		mr_table_atfork_child(table);
		alarm(10);
		/* releases the hold of the connections that the child has inherited */
		mr_release(held);
		if (atomic_load(&mr->holds))
			_exit(1);
		/* this would wait for ever if the child had inherited the parent's hold */
		drop(mr);
		_exit(0);
	}
	mr_table_atfork_parent(table);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	mr_release(held);
	drop(mr);
}

static enum mr_verdict look_near(struct mr_near *near, uint32_t stag, uint64_t len)
{
	void *ptr;

	return mr_hold_near(table, near, &pd, stag, (uintptr_t)memory, len, IBV_ACCESS_REMOTE_WRITE,
			    0, &ptr);
}

static void a_remembered_region_is_checked_like_any_other(void **state)
{
	struct mr *mr = whole(RW);
	struct mr_near near = {0};

	for (int i = 0; i < 2; i++) {
		assert_int_equal(look_near(&near, mr->ibv.rkey, sizeof(memory)), MR_OK);
		assert_int_equal(look_near(&near, mr->ibv.rkey, 1), MR_OK);
		assert_int_equal(mr->holds, 1); /* all look-ups share one hold */
		assert_int_equal(look_near(&near, mr->ibv.rkey, sizeof(memory) + 1), MR_BAD_BOUNDS);
		assert_int_equal(look_near(&near, mr->ibv.rkey + 1, 1), MR_BAD_STAG);
		mr_release_near(&near);
		mr_release_near(&near);
		assert_int_equal(mr->holds, 0); /* the region is remembered, but not held */
	}
	mr_kill(mr);
	assert_int_equal(look_near(&near, mr->ibv.rkey, 1), MR_BAD_STAG);
	assert_int_equal(mr->holds, 0);
	mr_delete(mr);
}

/* A new region's object may be allocated in the memory of the remembered region's object. */
static void a_remembered_region_that_went_is_not_taken_for_another(void **state)
{
	struct mr *first = whole(RW), *second;
	struct mr_near near = {0};
	uint32_t gone = first->ibv.rkey;

	assert_int_equal(look_near(&near, gone, 1), MR_OK);
	mr_release_near(&near);
	drop(first);
	second = whole(RW);
	assert_ptr_equal(second, near.mr); /* if the addresses differ, this test proves nothing */
	assert_int_equal(look_near(&near, gone, 1), MR_BAD_STAG);
	mr_release_near(&near);
	assert_int_equal(look_near(&near, second->ibv.rkey, 1), MR_OK);
	assert_ptr_equal(near.mr, second);
	mr_release_near(&near);
	drop(second);
}

/*
 * Stress: one thread registers, publishes and deregisters regions; other threads use the published
 * regions.
 */
enum { USERS = 3, ROUNDS = 1500 };
static _Atomic uint32_t published;
static _Atomic unsigned long good_uses, good_uses_again;
static atomic_bool over;

static void *use_published(void *arg)
{
	while (!atomic_load(&over)) {
		struct mr *mr;
		void *ptr;

		if (mr_hold(table, &pd, atomic_load(&published), 0, 64, IBV_ACCESS_REMOTE_WRITE,
			    &mr, &ptr))
			continue;
		__atomic_add_fetch((long *)ptr, 1, __ATOMIC_RELAXED);
		mr_release(mr);
		atomic_fetch_add(&good_uses, 1);
	}
	return NULL;
}

/* Like use_published(), but through the remembered region. */
static void *use_published_again(void *arg)
{
	struct mr_near near = {0};

	while (!atomic_load(&over)) {
		for (int i = 0; i < 3; i++) {
			void *ptr;

			if (mr_hold_near(table, &near, &pd, atomic_load(&published), 0, 64,
					 IBV_ACCESS_REMOTE_WRITE, 0, &ptr))
				continue;
			__atomic_add_fetch((long *)ptr, 1, __ATOMIC_RELAXED);
			atomic_fetch_add(&good_uses_again, 1);
		}
		mr_release_near(&near);
	}
	return NULL;
}

static void deregistration_waits_for_every_user(void **state)
{
	pthread_t users[USERS];

	for (int i = 0; i < USERS; i++)
		assert_int_equal(pthread_create(&users[i], NULL,
						i ? use_published_again : use_published, NULL),
				 0);
	for (int i = 0; i < ROUNDS || !atomic_load(&good_uses) || !atomic_load(&good_uses_again);
	     i++) {
		void *buf = aligned_alloc(64, 64);
		struct mr *mr;

		memset(buf, 0, 64);
		mr = region(buf, 64, 0, RW);
		atomic_store(&published, mr->ibv.rkey);
		if (i % 8 == 0)
			usleep(50);
		drop(mr);
		free(buf); /* a sanitizer reports a use of the memory after this */
	}
	atomic_store(&over, true);
	for (int i = 0; i < USERS; i++)
		pthread_join(users[i], NULL);
}

/* --- registering again -------------------------------------------------------------------- */

static struct mr *next_of(struct mr *handle, void *addr, size_t len)
{
	struct mr *next = NULL;

	assert_int_equal(mr_make(table, &other_pd, addr, len, (uintptr_t)addr, RW, NULL, &next), 0);
	mr_kill(handle->now);
	mr_wait_idle(handle->now);
	mr_succeed(handle, next);
	return next;
}

static void a_successor_is_found_under_the_same_stag(void **state)
{
	struct mr *mr = whole(RW), *next;
	uint32_t stag = mr->ibv.rkey;
	char *other = memory + 100;

	next = next_of(mr, other, 8);
	assert_ptr_equal(mr->now, next);
	assert_int_equal(next->ibv.rkey, stag);
	assert_int_equal(mr->ibv.rkey, stag);
	assert_ptr_equal(mr->ibv.addr, other);
	assert_int_equal(mr->ibv.length, 8);
	assert_ptr_equal(mr->ibv.pd, &other_pd);
	assert_int_equal(look(&other_pd, stag, (uintptr_t)other, 8, RW), MR_OK);
	assert_int_equal(look(&other_pd, stag, (uintptr_t)other, 9, RW), MR_BAD_BOUNDS);
	assert_int_equal(look(&pd, stag, (uintptr_t)other, 8, RW), MR_BAD_PD);
	drop(next);
	assert_int_equal(look(&other_pd, stag, (uintptr_t)other, 8, RW), MR_BAD_STAG);
	mr_delete(mr);
}

/* A stream records placed bytes relative to the region's start address at the time when the stream
 * took the reference. */
static void a_reference_keeps_the_description_that_it_was_taken_of(void **state)
{
	struct mr *mr = whole(RW), *next;

	mr_ref(mr);
	next = next_of(mr, memory + 100, 8);
	assert_ptr_equal(mr->start, memory);
	assert_true(mr_is_killed(mr));
	mr_ref(next);
	(void)next_of(mr, memory + 200, 8);
	assert_ptr_equal(next->start, memory + 100);
	mr_unref(next);
	drop(mr->now);
	mr_delete(mr);
	assert_ptr_equal(mr->start, memory);
	mr_unref(mr);
}

static void what_was_remembered_of_the_former_one_is_looked_up_anew(void **state)
{
	struct mr *mr = whole(RW), *next;
	uint32_t stag = mr->ibv.rkey;
	struct mr_near near = {0};
	void *ptr;

	assert_int_equal(mr_hold_near(table, &near, &pd, stag, (uintptr_t)memory, 8, RW, 0, &ptr),
			 MR_OK);
	mr_release_near(&near);
	next = next_of(mr, memory + 100, 8);
	assert_int_equal(mr_hold_near(table, &near, &other_pd, stag, (uintptr_t)memory + 100, 8, RW,
				      0, &ptr),
			 MR_OK);
	assert_ptr_equal(near.mr, next);
	mr_release_near(&near);
	drop(next);
	mr_delete(mr);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(registration_describes_the_region, setup, teardown),
		cmocka_unit_test_setup_teardown(a_successor_is_found_under_the_same_stag, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			a_reference_keeps_the_description_that_it_was_taken_of, setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_was_remembered_of_the_former_one_is_looked_up_anew, setup, teardown),
		cmocka_unit_test_setup_teardown(registration_refuses_what_verbs_refuses, setup,
						teardown),
		cmocka_unit_test_setup_teardown(stags_are_unique_while_the_table_grows, setup,
						teardown),
		cmocka_unit_test_setup_teardown(lookup_checks_stag_pd_and_rights, setup, teardown),
		cmocka_unit_test_setup_teardown(one_of_several_rights_is_enough_where_any_is, setup,
						teardown),
		cmocka_unit_test_setup_teardown(bounds_hold_at_both_ends_and_do_not_overflow, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_region_may_end_at_the_last_offset, setup,
						teardown),
		cmocka_unit_test_setup_teardown(zero_length_checks_no_bounds, setup, teardown),
		cmocka_unit_test_setup_teardown(offsets_are_relative_to_iova, setup, teardown),
		cmocka_unit_test_setup_teardown(a_killed_region_is_unknown_even_while_held, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			a_region_is_invalidated_only_from_its_pd_and_if_registered_for_that, setup,
			teardown),
		cmocka_unit_test_setup_teardown(in_a_forked_child_no_region_is_lasting, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_forked_child_forgets_the_holds_of_its_parent,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_remembered_region_is_checked_like_any_other,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_remembered_region_that_went_is_not_taken_for_another, setup, teardown),
		cmocka_unit_test_setup_teardown(deregistration_waits_for_every_user, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
