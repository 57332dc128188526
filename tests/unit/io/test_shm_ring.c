/* SPDX-License-Identifier: BSD-3-Clause */
/* A ring of bytes in shared memory: its arithmetic, and a peer that writes wrong values. */
#include "lib/unit.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>
#include <sys/mman.h>

#include "base/safecopy.h"
#include "softrnic/io/link_shm_ring.h"

#define SIZE 64u

static struct ring_shared shared;
static uint8_t bytes[SIZE];
static struct ring w, r;

/* Set up both ends of an empty ring that has carried `before` bytes. */
static void rings_at(uint64_t before)
{
	memset(&shared, 0, sizeof(shared));
	shared.tail = shared.head = before;
	ring_init(&w, &shared, bytes, SIZE);
	ring_init(&r, &shared, bytes, SIZE);
	w.at = w.seen = r.at = r.seen = before;
}

static ssize_t put(const void *from, size_t len)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)from, .iov_len = len};

	return ring_write(&w, &iov, 1);
}

static ssize_t get(void *to, size_t len)
{
	struct iovec iov = {.iov_base = to, .iov_len = len};

	return ring_read(&r, &iov, 1);
}

static void bytes_come_out_as_they_went_in_at_every_position(void **state)
{
	uint8_t in[SIZE + 1], out[SIZE + 1];

	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)(i + 1);
	for (uint64_t before = 0; before < 2 * SIZE; before++)
		for (size_t len = 1; len <= SIZE; len++) {
			rings_at(before + UINT64_MAX - SIZE); /* the ring's positions wrap around */
			memset(out, 0, sizeof(out));
			assert_int_equal(put(in, len), len);
			assert_int_equal(get(out, sizeof(out)), len);
			assert_memory_equal(in, out, len);
			assert_int_equal(out[len], 0);
			assert_int_equal(get(out, 1), 0);
		}
}

static void pieces_of_any_length_are_gathered_and_scattered(void **state)
{
	uint8_t in[40], out[40] = {0};
	struct iovec from[] = {{in, 3}, {in + 3, 0}, {in + 3, 17}, {in + 20, 20}};
	struct iovec to[] = {{out, 0}, {out, 25}, {out + 25, 15}};

	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)(i * 7);
	for (uint64_t before = 0; before < SIZE; before++) {
		rings_at(before);
		assert_int_equal(ring_write(&w, from, 4), 40);
		assert_int_equal(ring_read(&r, to, 3), 40);
		assert_memory_equal(in, out, 40);
	}
}

static void a_full_ring_takes_nothing_and_an_empty_one_gives_nothing(void **state)
{
	uint8_t in[2 * SIZE] = {0}, out[SIZE];

	rings_at(13);
	assert_int_equal(get(out, 1), 0);
	assert_int_equal(put(in, sizeof(in)), SIZE); /* the free space limits the amount */
	assert_int_equal(put(in, 1), 0);
	assert_false(ring_has_room(&w));
	assert_int_equal(get(out, 5), 5);
	assert_true(ring_has_room(&w));
	assert_int_equal(put(in, 6), 5);
	assert_int_equal(get(out, SIZE), SIZE);
	assert_int_equal(get(out, 1), 0);
}

static void an_end_that_waits_is_woken_once(void **state)
{
	uint8_t in[SIZE] = {0}, out[SIZE];

	rings_at(0);
	assert_false(ring_wakes_reader(&w));
	assert_int_equal(ring_reader_sleeps(&r), 0);
	assert_int_equal(put(in, 1), 1);
	assert_true(ring_wakes_reader(&w));
	assert_false(ring_wakes_reader(&w));
	/* there are bytes, so the reader must not sleep */
	assert_int_equal(ring_reader_sleeps(&r), 1);
	assert_false(ring_wakes_reader(&w));
	assert_int_equal(put(in, SIZE), SIZE - 1);
	assert_int_equal(ring_writer_sleeps(&w), 0);
	assert_int_equal(get(out, 1), 1);
	assert_int_equal(ring_readable(&r), SIZE - 1);
	assert_false(ring_wakes_writer(&r)); /* one free byte is not worth a wake-up */
	assert_int_equal(get(out, SIZE), SIZE - 1);
	assert_true(ring_wakes_writer(&r));
	assert_false(ring_wakes_writer(&r));
	/* there is free space, so the writer must not sleep */
	assert_int_equal(ring_writer_sleeps(&w), 1);
	assert_false(ring_wakes_writer(&r));
}

/* --- the reader polls; the writer fills the ring and sleeps each time --------------------- */

#define FILLS  20000u
#define WAKE_S 30 /* seconds after which a wake-up counts as lost */

static sem_t room;

static void *look_and_take(void *arg)
{
	uint8_t out[SIZE];
	uint64_t taken = 0;

	while (taken < (uint64_t)FILLS * SIZE) {
		ssize_t got = get(out, 1 + taken % SIZE);

		if (got == 0) { /* in case both threads share a CPU */
			sched_yield();
			continue;
		}
		taken += (uint64_t)got;
		if (ring_is_pending(&r))
			continue;
		ring_reader_rests(&r);
		if (ring_wakes_writer(&r))
			sem_post(&room);
	}
	return NULL;
}

static void sleep_until_there_is_room(void)
{
	struct timespec until;

	if (ring_writer_sleeps(&w))
		return;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WAKE_S;
	assert_int_equal(sem_timedwait(&room, &until), 0);
}

static void a_writer_that_sleeps_is_woken_by_a_reader_that_rarely_fences(void **state)
{
	uint8_t in[SIZE] = {0};
	uint64_t left = (uint64_t)FILLS * SIZE;
	pthread_t reader;

	rings_at(0);
	assert_int_equal(sem_init(&room, 0, 0), 0);
	assert_int_equal(pthread_create(&reader, NULL, look_and_take, NULL), 0);
	while (left > 0) {
		ssize_t sent = put(in, left < SIZE ? left : SIZE);

		left -= (uint64_t)sent;
		if (sent == 0)
			sleep_until_there_is_room();
	}
	assert_int_equal(pthread_join(reader, NULL), 0);
	sem_destroy(&room);
}

static void a_position_that_cannot_be_is_refused(void **state)
{
	uint8_t byte = 0, out[SIZE];
	static const uint64_t far[] = {SIZE + 1, 2 * SIZE, 1ull << 63, UINT64_MAX};

	for (size_t i = 0; i < ARRAY_LEN(far); i++) {
		rings_at(100);
		shared.tail = 100 + far[i];
		assert_int_equal(ring_readable(&r), -EPROTO);
		assert_int_equal(get(out, sizeof(out)), -EPROTO);
		assert_int_equal(ring_reader_sleeps(&r), -EPROTO);
		assert_int_equal(r.at, 100);
	}
	for (size_t i = 0; i < ARRAY_LEN(far); i++) {
		rings_at(100);
		assert_int_equal(put(out, SIZE), SIZE);
		shared.head = w.at - far[i];
		assert_int_equal(put(&byte, 1), -EPROTO);
		assert_int_equal(ring_writer_sleeps(&w), -EPROTO);
	}
	rings_at(100);
	shared.head = 101; /* a position after the last written byte */
	/* as long as there is free space the writer does not read the tail */
	assert_int_equal(put(out, SIZE), SIZE);
	shared.head = w.at + 1;
	assert_int_equal(put(&byte, 1), -EPROTO);
}

/* A hostile end changes all positions and flags at any time. This end reads and writes no byte
 * outside the ring. */
static void random_positions_and_flags_do_no_harm(void **state)
{
	uint64_t seed = 42;
	uint8_t in[3 * SIZE] = {0}, out[3 * SIZE];
	size_t look;

	for (int i = 0; i < 200000; i++) {
		uint64_t x = test_random(&seed);

		if (x % 5 == 0)
			rings_at(x >> 8);
		if (x % 3 == 0)
			shared.tail = r.at + (x >> 40) % (2 * SIZE);
		if (x % 7 == 0)
			shared.head = w.at - (x >> 32) % (2 * SIZE);
		shared.reader_sleeps = (uint32_t)(x >> 20);
		shared.writer_sleeps = (uint32_t)(x >> 21);
		assert_in_range(put(in, x % sizeof(in)) + EPROTO, 0, SIZE + EPROTO);
		assert_in_range(get(out, (x >> 16) % sizeof(out)) + EPROTO, 0,
				sizeof(out) + EPROTO);
		if (ring_readable(&r) > 0) {
			const uint8_t *at = ring_look(&r, &look);

			assert_true(at >= bytes && at + look <= bytes + SIZE && look > 0);
		}
		assert_in_range(w.at - w.seen, 0, SIZE);
		assert_in_range(r.seen - r.at, 0, SIZE);
	}
}

static void memory_that_is_gone_is_reported_with_what_came_before_it(void **state)
{
	uint8_t *page =
		mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec iov[] = {{page, 8}, {page + 4096, 8}};

	assert_int_equal(safecopy_setup(), 0);
	munmap(page + 4096, 4096);
	rings_at(0);
	assert_int_equal(ring_write(&w, iov, 2), 8);
	assert_int_equal(ring_write(&w, iov + 1, 1), -EFAULT);
	assert_int_equal(ring_write(&w, iov, 1), 8);
	assert_int_equal(ring_read(&r, iov + 1, 1), -EFAULT);
	assert_int_equal(ring_read(&r, iov, 2), 8);
	assert_int_equal(ring_readable(&r), 8); /* no byte is lost */
	munmap(page, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_come_out_as_they_went_in_at_every_position),
		cmocka_unit_test(pieces_of_any_length_are_gathered_and_scattered),
		cmocka_unit_test(a_full_ring_takes_nothing_and_an_empty_one_gives_nothing),
		cmocka_unit_test(an_end_that_waits_is_woken_once),
		cmocka_unit_test(a_writer_that_sleeps_is_woken_by_a_reader_that_rarely_fences),
		cmocka_unit_test(a_position_that_cannot_be_is_refused),
		cmocka_unit_test(random_positions_and_flags_do_no_harm),
		cmocka_unit_test(memory_that_is_gone_is_reported_with_what_came_before_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
