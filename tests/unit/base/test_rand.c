/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/unit.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rand.h"

#define DRAWS 2000

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void assert_all_different(uint64_t *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_value);
	for (size_t i = 1; i < n; i++)
		assert_true(v[i] != v[i - 1]);
}

static void numbers_do_not_repeat(void **state)
{
	static uint64_t v[DRAWS];

	for (size_t i = 0; i < DRAWS; i++)
		rand_bytes(&v[i], sizeof(v[i]));
	assert_all_different(v, DRAWS);
}

/* Each bit is drawn 4000 times. A fair bit is set fewer than 1700 or more than 2300 times only once
 * in 10^20 runs. */
static void every_bit_is_set_about_half_the_time(void **state)
{
	unsigned ones[32] = {0};

	for (int i = 0; i < 4000; i++) {
		uint32_t v = rand_u32();

		for (int bit = 0; bit < 32; bit++)
			ones[bit] += v >> bit & 1;
	}
	for (int bit = 0; bit < 32; bit++)
		assert_in_range(ones[bit], 1700, 2300);
}

static void a_large_buffer_is_filled_to_its_last_byte(void **state)
{
	static uint8_t buf[100000];
	int changed = 0;

	for (int round = 0; round < 4; round++) {
		memset(buf, 0, sizeof(buf));
		rand_bytes(buf, sizeof(buf) - 1);
		assert_int_equal(buf[sizeof(buf) - 1], 0);
		changed |= buf[sizeof(buf) - 2];
	}
	assert_true(changed);
	rand_bytes(buf, 0);
}

static void *draw(void *arg)
{
	uint64_t *v = arg;

	for (size_t i = 0; i < DRAWS; i++)
		rand_bytes(&v[i], sizeof(v[i]));
	return NULL;
}

static void threads_get_different_numbers(void **state)
{
	static uint64_t v[4 * DRAWS];
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, draw, v + i * DRAWS), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_all_different(v, 4 * DRAWS);
}

static void a_child_does_not_repeat_its_parents_numbers(void **state)
{
	uint64_t v[64];
	int fds[2], status;
	pid_t child;

	rand_u32(); /* fills the parent's pool of random numbers */
	assert_int_equal(pipe(fds), 0);
	child = fork();
	if (child == 0) {
		for (int i = 0; i < 32; i++)
			rand_bytes(&v[i], sizeof(v[i]));
		_exit(write(fds[1], v, 32 * sizeof(v[0])) != 32 * sizeof(v[0]));
	}
	assert_true(child > 0);
	for (int i = 32; i < 64; i++)
		rand_bytes(&v[i], sizeof(v[i]));
	assert_int_equal(read(fds[0], v, 32 * sizeof(v[0])), 32 * sizeof(v[0]));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(fds[0]);
	close(fds[1]);
	assert_all_different(v, 64);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_do_not_repeat),
		cmocka_unit_test(every_bit_is_set_about_half_the_time),
		cmocka_unit_test(a_large_buffer_is_filled_to_its_last_byte),
		cmocka_unit_test(threads_get_different_numbers),
		cmocka_unit_test(a_child_does_not_repeat_its_parents_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
