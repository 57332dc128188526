/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of librpmafile that rpma put and get use: several reads under way, digests, a claim that is
 * made late, and putting a whole file.
 */
#include <stdlib.h>
#include <string.h>

#include "served.h"

/*
 * Several reads, large and small, are under way between writes and between syncs with tickets.
 */
static void reads_are_under_way_at_a_time(void **state)
{
	static const size_t lengths[] = {1,      65535, 65536,   4096, (1u << 20) + 7,
					 300000, 8,     2u << 20};
	enum { READS = sizeof(lengths) / sizeof(lengths[0]) };
	struct rpma_file *file = open_memory(0);
	uint64_t tickets[READS], sync, before = 0;
	unsigned char *bufs[READS], *mirror = malloc(SIZE);

	fill(memory, SIZE, 5);
	memcpy(mirror, memory, SIZE);
	for (unsigned i = 0; i < READS; i++) {
		bufs[i] = malloc(lengths[i]);
		mirror[i] = 'x'; /* the read must return the earlier write */
		must(rpma_file_pwrite(file, "x", 1, i));
		must(rpma_file_pread_start(file, bufs[i], lengths[i], i, &tickets[i]));
		assert_true(tickets[i] > before);
		before = tickets[i];
	}
	must(rpma_file_sync_start(file, NULL, 0, &sync));
	assert_true(sync > before);
	must(rpma_file_sync_wait(file, tickets[READS - 1], -1));
	for (unsigned i = 0; i < READS; i++) {
		/* the syncs complete in the order of the calls */
		must(rpma_file_sync_wait(file, tickets[i], 0));
		assert_memory_equal(bufs[i] + READS, mirror + i + READS,
				    lengths[i] > READS ? lengths[i] - READS : 0);
		assert_int_equal(bufs[i][0], 'x');
	}
	must(rpma_file_sync_wait(file, sync, -1));
	/* One read is still under way when the file is closed. */
	must(rpma_file_pread_start(file, bufs[READS - 1], lengths[READS - 1], 0, &before));
	must(rpma_file_close(&file));
	for (unsigned i = 0; i < READS; i++)
		free(bufs[i]);
	free(mirror);
}

/* Written bytes stay undecided until a sync, whatever is read meanwhile. */
static void a_read_decides_nothing(void **state)
{
	struct rpma_file *file = open_memory(0);
	unsigned char back[8];
	uint64_t ticket;
	size_t count = 0;

	must(rpma_file_pwrite(file, "undecided", 9, 100));
	must(rpma_file_pread_start(file, back, sizeof(back), 100, &ticket));
	must(rpma_file_sync_wait(file, ticket, -1));
	assert_memory_equal(back, "undecide", 8);
	must(rpma_file_get_undecided(file, NULL, &count));
	assert_int_equal(count, 1);
	assert_int_equal(rpma_file_pread_start(file, back, 0, 0, &ticket), RPMA_E_INVAL);
	assert_int_equal(rpma_file_pread_start(file, back, 8, SIZE - 7, &ticket), RPMA_E_INVAL);
	assert_int_equal(rpma_file_pread_start(file, NULL, 8, 0, &ticket), RPMA_E_INVAL);
	assert_int_equal(rpma_file_pread_start(file, back, 8, 0, NULL), RPMA_E_INVAL);
	must(rpma_file_sync(file, NULL, 0));
	must(rpma_file_get_undecided(file, NULL, &count));
	assert_int_equal(count, 0);
	must(rpma_file_close(&file));
}

static struct rpma_file *open_unclaimed(const char *where)
{
	struct rpma_file_options options = {.size = sizeof(options),
					    .flags = RPMA_FILE_UNCLAIMED | RPMA_FILE_VOLATILE_OK};
	struct rpma_file *file;

	must(rpma_file_open(where, &options, &file));
	return file;
}

static struct rpma_file_region region_of(const char *where)
{
	struct rpma_file_region region;
	size_t count = 1;

	must(rpma_file_list(where, NULL, &region, &count));
	assert_int_equal(count, 1);
	return region;
}

static void a_digest_is_that_of_the_bytes(void **state)
{
	struct rpma_file_info info = {.size = sizeof(info)};
	struct rpma_digest there = {.len = 7}, here;
	struct rpma_file *file = open_unclaimed(file_target);
	unsigned char *buf = malloc(300000);

	must(rpma_file_get_info(file, &info));
	fill(buf, 300000, 77);
	must(rpma_file_claim(file, 0, 0));
	must(rpma_file_pwrite(file, buf, 300000, 4096));
	if (info.verifies) {
		must(rpma_file_digest(file, &there, 300000, 4096));
		must(rpma_digest_compute(RPMA_DIGEST_BLAKE2B, buf, 300000, &here));
		assert_true(rpma_digest_equal(&there, &here));
		assert_int_not_equal(there.source, RPMA_DIGEST_FROM_MEMORY);
		assert_true(info.persists);
	} else { /* the file is on tmpfs */
		assert_int_equal(rpma_file_digest(file, &there, 300000, 4096), RPMA_E_NOSUPP);
		assert_int_equal(there.len, 7);
	}
	assert_int_equal(rpma_file_digest(file, &there, 0, 0), RPMA_E_INVAL);
	assert_int_equal(rpma_file_digest(file, &there, RPMA_FILE_DIGEST_MAX + 1, 0), RPMA_E_INVAL);
	assert_int_equal(rpma_file_digest(file, &there, 2, SIZE - 1), RPMA_E_INVAL);
	must(rpma_file_close(&file));
	file = open_memory(0);
	assert_int_equal(rpma_file_digest(file, &there, 8, 0), RPMA_E_NOSUPP);
	must(rpma_file_close(&file));
	free(buf);
}

static void a_file_is_put_as_a_whole(void **state)
{
	struct rpma_file_info info = {.size = sizeof(info)};
	struct rpma_file *file = open_unclaimed(file_target);
	struct rpma_file_region region;
	struct rpma_digest digest;
	unsigned char buf[9000];
	uint64_t generation = 1;

	fill(buf, sizeof(buf), 3);
	must(rpma_digest_compute(RPMA_DIGEST_BLAKE2B, buf, sizeof(buf), &digest));
	assert_int_equal(rpma_file_put_begin(file, SIZE + 1, 0), RPMA_E_INVAL);
	assert_int_equal(rpma_file_put_end(file, 1, digest.bytes), RPMA_E_INVAL);
	/* no range is claimed yet */
	assert_int_equal(rpma_file_pwrite(file, buf, 1, 0), RPMA_E_INVAL);
	must(rpma_file_get_generation(file, &generation));
	assert_int_equal(generation, 0);
	must(rpma_file_put_begin(file, sizeof(buf), 1234567890));
	must(rpma_file_get_generation(file, &generation));
	assert_int_not_equal(generation, 0);
	assert_int_equal(rpma_file_pwrite(file, buf, 1, sizeof(buf)), RPMA_E_INVAL);
	must(rpma_file_pwrite(file, buf + 5000, 4000, 5000));
	must(rpma_file_pwrite(file, buf, 5000, 0));
	region = region_of(file_target);
	assert_int_equal(region.holds, RPMA_FILE_HOLDS_PARTIAL);
	assert_int_equal(region.file_length, sizeof(buf));
	assert_int_equal(region.file_time_ns, 1234567890);
	assert_int_equal(rpma_file_put_end(file, 8999, digest.bytes), RPMA_E_INVAL);
	must(rpma_file_put_end(file, sizeof(buf), digest.bytes));
	region = region_of(file_target);
	assert_int_equal(region.holds, RPMA_FILE_HOLDS_WHOLE);
	assert_memory_equal(region.file_digest, digest.bytes, sizeof(region.file_digest));
	assert_int_equal(rpma_file_pwrite(file, buf, 1, 0), RPMA_E_INVAL);
	assert_int_equal(rpma_file_put_begin(file, 1, 0), RPMA_E_INVAL);
	must(rpma_file_close(&file));

	file = open_unclaimed(file_target);
	must(rpma_file_get_info(file, &info));
	assert_int_equal(info.holds, RPMA_FILE_HOLDS_WHOLE);
	assert_int_equal(info.file_length, sizeof(buf));
	assert_int_equal(info.file_time_ns, 1234567890);
	assert_memory_equal(info.file_digest, digest.bytes, sizeof(info.file_digest));
	must(rpma_file_put_begin(file, UINT64_MAX, 0));
	/* the writer closes the file before it has finished the put */
	must(rpma_file_close(&file));
	region = region_of(file_target);
	assert_int_equal(region.holds, RPMA_FILE_HOLDS_PARTIAL);
	assert_int_equal(region.file_length, UINT64_MAX);
}

/* Open the region for reading, and then claim a part of it, which succeeds only if no other client
 * has that part. */
static void a_part_is_claimed_after_the_open(void **state)
{
	struct rpma_file_options options = {
		.size = sizeof(options), .flags = RPMA_FILE_UNCLAIMED, .write_offset = 8};
	struct rpma_file *file = open_unclaimed(target), *first = open_memory(0), *none;
	char back[4];

	options.flags |= RPMA_FILE_VOLATILE_OK;
	assert_int_equal(rpma_file_open(target, &options, &none), RPMA_E_INVAL);
	options.write_offset = 0;
	options.flags |= RPMA_FILE_READONLY;
	assert_int_equal(rpma_file_open(target, &options, &none), RPMA_E_INVAL);
	assert_int_equal(rpma_file_claim(first, 0, 8), RPMA_E_INVAL);
	assert_int_equal(rpma_file_claim(file, SIZE, 1), RPMA_E_INVAL);
	assert_int_equal(rpma_file_claim(file, UINT64_MAX, 8), RPMA_E_INVAL);
	must(rpma_file_pwrite(first, "seen", 4, 0));
	must(rpma_file_sync(first, NULL, 0));
	must(rpma_file_pread(file, back, 4, 0));
	assert_memory_equal(back, "seen", 4);
	assert_int_equal(rpma_file_claim(file, 0, 4096), RPMA_FILE_E_REFUSED);
	assert_int_equal(rpma_file_pread(file, back, 4, 0), RPMA_FILE_E_REFUSED);
	must(rpma_file_close(&first));
	must(rpma_file_reopen(file));
	must(rpma_file_claim(file, 4096, 4096));
	assert_int_equal(rpma_file_claim(file, 0, 4096), RPMA_E_INVAL);
	assert_int_equal(rpma_file_pwrite(file, "x", 1, 4095), RPMA_E_INVAL);
	must(rpma_file_pwrite(file, "x", 1, 8191));
	must(rpma_file_close(&file));
	assert_int_equal(memory[8191], 'x');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_are_under_way_at_a_time),
		cmocka_unit_test(a_read_decides_nothing),
		cmocka_unit_test(a_digest_is_that_of_the_bytes),
		cmocka_unit_test(a_file_is_put_as_a_whole),
		cmocka_unit_test(a_part_is_claimed_after_the_open),
	};

	return cmocka_run_group_tests(tests, served_start, served_stop);
}
