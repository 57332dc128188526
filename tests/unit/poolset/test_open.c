/* SPDX-License-Identifier: BSD-3-Clause */
/* Which sets poolset_open() accepts, what it returns, the shutdown state, and new attributes. */
#include "unit/poolset/disk.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD "PMEMPOOLSET\n"
#define TWO  HEAD "2M @/p0\n2M @/p1\n"
#define SDS  4024

static struct poolset_attr attr;

static int setup(void **state)
{
	attr = disk_attr();
	return disk_setup(state);
}

static void read_page(const char *name, uint8_t page[HEADER_BYTES])
{
	disk_read_bytes(name, 0, page, HEADER_BYTES);
}

static void what_was_written_is_there_again(void **state)
{
	struct poolset_attr got;
	struct poolset_pool *pool;
	char *base;

	disk_write_set("a.set", TWO);
	pool = disk_create("a.set", &attr);
	base = poolset_memory(pool)->base;
	for (uint64_t at = 4096; at < 4 * MIB - 4096; at += 4096)
		memcpy(base + at, &at, sizeof(at));
	disk_close(pool);
	pool = disk_open("a.set", &got);
	assert_memory_equal(&got, &attr, sizeof(attr));
	base = poolset_memory(pool)->base;
	for (uint64_t at = 4096; at < 4 * MIB - 4096; at += 4096)
		assert_memory_equal(base + at, &at, sizeof(at));
	disk_close(pool);
}

static void parts_must_be_there_in_their_size_and_order(void **state)
{
	disk_write_set("a.set", TWO);
	disk_no_open("a.set", 0, ENOENT, "p0: No such file");
	disk_close(disk_create("a.set", &attr));

	disk_write_set("b.set", HEAD "2M @/p1\n2M @/p0\n");
	/* a ring of two parts is the same in both directions */
	disk_close(disk_open("b.set", NULL));
	disk_write_set("b.set", HEAD "2M @/p0\n");
	disk_no_open("b.set", 0, EINVAL, "p0: it is not linked");
	disk_write_set("b.set", HEAD "OPTION SINGLEHDR\n2M @/p0\n2M @/p1\n");
	disk_no_open("b.set", 0, EINVAL, "without SINGLEHDR");
	disk_write_set("b.set", HEAD "2M @/p0\n2097153 @/p1\n");
	disk_no_open("b.set", 0, EINVAL, "p1 has 2097152 bytes, but the pool set states 2097153");
	disk_write_set("b.set", TWO "2M @/p2\n");
	disk_no_open("b.set", 0, ENOENT, "p2: No such file");
	disk_make_file("p2", 2 * MIB);
	disk_no_open("b.set", 0, EINVAL, "p2: there is no pool in it");
	disk_write_set("b.set", HEAD "2M @/p0\n2M @/p0\n");
	disk_no_open("b.set", 0, EWOULDBLOCK, "p0");
	disk_write_set("b.set", TWO "REPLICA\n2M @/p2\n");
	disk_no_open("b.set", 0, EINVAL, "b.set:4: REPLICA");
}

static void a_pool_file_is_a_set_of_one_part(void **state)
{
	struct poolset_attr got;
	struct poolset_pool *pool;

	disk_make_file("pool", 3 * MIB + 5);
	disk_no_open("pool", 0, EINVAL, "there is no pool in it");
	pool = disk_create("pool", &attr);
	assert_int_equal(poolset_memory(pool)->size, 3 * MIB);
	disk_no_open("pool", 0, EWOULDBLOCK, "pool is in use");
	disk_close(pool);
	disk_no_create("pool", 0, &attr, EEXIST, "pool has a pool already");
	disk_close(disk_open("pool", &got));
	assert_memory_equal(&got, &attr, sizeof(attr));
	disk_no_create("none", 0, &attr, ENOENT, "cannot open");

	disk_write_set("junk", "This is no pool set file, and no pool.\n");
	disk_no_open("junk", 0, EINVAL, "too small for a part");
	disk_no_create("junk", 0, &attr, EINVAL, "too small for a part");
	assert_int_equal(mkfifo("pipe", 0600), 0);
	disk_no_open("pipe", 0, EINVAL, "neither a file nor a device DAX");
}

static void permissions_are_named(void **state)
{
	if (geteuid() != 0)
		skip();
	disk_write_set("a.set", HEAD "2M @/p0\n");
	disk_close(disk_create("a.set", &attr));
	chmod("p0", 0400);
	chmod(".", 0755);
	assert_int_equal(seteuid(65534), 0);
	disk_no_open("a.set", 0, EACCES, "p0: Permission denied");
	assert_int_equal(seteuid(0), 0);
	chmod("a.set", 0);
	assert_int_equal(seteuid(65534), 0);
	disk_no_open("a.set", 0, EACCES, "a.set: Permission denied");
	assert_int_equal(seteuid(0), 0);
}

/* This test shows that the header is checked at all; test_header.c tests every byte. */
static void a_changed_byte_is_noticed_wherever_it_is(void **state)
{
	uint8_t page[2][HEADER_BYTES];

	disk_write_set("a.set", TWO);
	disk_close(disk_create("a.set", &attr));
	read_page("p0", page[0]);
	read_page("p1", page[1]);
	for (unsigned at = 0; at < HEADER_BYTES; at += at < 160 || at > 4000 ? 1 : 61) {
		for (unsigned part = 0; part < 2; part++) {
			const char *name = part ? "p1" : "p0";
			uint8_t bad = page[part][at] ^ 0x40;

			disk_write_bytes(name, at, &bad, 1);
			if (at >= SDS && at < SDS + 64)
				disk_close(disk_open("a.set", NULL));
			else
				disk_no_open("a.set", 0, part && at < 24 ? EINVAL : EBADMSG, name);
			disk_write_bytes(name, 0, page[part], HEADER_BYTES);
		}
	}
	disk_close(disk_open("a.set", NULL));
}

/* ---- the shutdown state ---- */

static void expect_sds(const char *name, const uint8_t expected[64])
{
	uint8_t page[HEADER_BYTES];

	read_page(name, page);
	assert_memory_equal(page + SDS, expected, 64);
	assert_true(header_is_intact(page));
}

static const uint8_t clean[64];
static const uint8_t dirty[64] = {[16] = 1, [56] = 1, [60] = 0x0c};

static void the_state_is_dirty_while_the_pool_is_in_use(void **state)
{
	struct poolset_pool *pool;

	disk_write_set("a.set", TWO);
	pool = disk_create("a.set", &attr);
	expect_sds("p0", dirty);
	expect_sds("p1", clean);
	disk_close(pool);
	expect_sds("p0", clean);
	pool = disk_open("a.set", NULL);
	expect_sds("p0", dirty);
	assert_int_equal(poolset_set_attr(pool, &attr, &disk_err), 0);
	expect_sds("p0", dirty);
	disk_close(pool);
	expect_sds("p0", clean);

	/* The process was killed, but the devices are the same, so no data were lost. */
	disk_write_bytes("p0", SDS, dirty, 64);
	disk_close(disk_open("a.set", NULL));
	expect_sds("p0", clean);
}

static void without_the_feature_the_state_is_left_alone(void **state)
{
	static const uint8_t other[64] = {1, 2, 3};
	struct poolset_pool *pool;

	attr.incompat = HEADER_CKSUM_2K;
	disk_write_set("a.set", HEAD "2M @/p0\n");
	pool = disk_create("a.set", &attr);
	expect_sds("p0", clean);
	disk_close(pool);
	disk_write_bytes("p0", SDS, other, 64);
	pool = disk_open("a.set", NULL);
	expect_sds("p0", other);
	disk_close(pool);
	expect_sds("p0", other);
	unlink("p0");
	/* without the flag CKSUM_2K the checksum covers the state, so the state could not change */
	attr.incompat = HEADER_SDS;
	pool = disk_create("a.set", &attr);
	expect_sds("p0", clean);
	disk_close(pool);
	disk_close(disk_open("a.set", NULL));
}

static void a_power_failure_that_devices_did_not_survive_is_refused(void **state)
{
	uint8_t page[HEADER_BYTES];
	struct header h;

	disk_write_set("a.set", HEAD "2M @/p0\n");
	disk_close(disk_create("a.set", &attr));
	read_page("p0", page);
	header_decode(page, &h);
	h.sds = (struct header_sds){3, 4, 1};
	header_encode(&h, page);
	disk_write_bytes("p0", 0, page, HEADER_BYTES);
	disk_no_open("a.set", 0, EINVAL, "was in use at a power failure");
	h.sds.dirty = 0;
	header_encode(&h, page);
	disk_write_bytes("p0", 0, page, HEADER_BYTES);
	disk_close(disk_open("a.set", NULL));
	expect_sds("p0", clean);
}

/* ---- new attributes ---- */

static void new_attributes_go_to_every_header(void **state)
{
	static const char *const names[] = {"p0", "p1", "p2"};
	struct poolset_attr other = disk_attr(), got;
	struct poolset_pool *pool;
	uint8_t page[HEADER_BYTES];
	struct header before[3], after[3];

	disk_write_set("a.set", TWO "2M @/p2\n");
	pool = disk_create("a.set", &attr);
	for (unsigned i = 0; i < 3; i++) {
		read_page(names[i], page);
		header_decode(page, &before[i]);
	}
	memset(other.uuid, 0xa1, HEADER_UUID);
	memset(other.poolset_uuid, 0xa2, HEADER_UUID);
	memset(other.prev_uuid, 0xa3, HEADER_UUID);
	memset(other.next_uuid, 0xa4, HEADER_UUID);
	memset(other.user_flags, 0xa5, HEADER_ARCH);
	memcpy(other.signature, "PMEMBLK", 8);
	other.major = 1;
	other.compat = 0;
	assert_int_equal(poolset_set_attr(pool, &other, &disk_err), 0);
	for (unsigned i = 0; i < 3; i++) {
		read_page(names[i], page);
		assert_true(header_is_intact(page));
		header_decode(page, &after[i]);
		assert_memory_equal(after[i].signature, "PMEMBLK", 8);
		assert_memory_equal(after[i].prev_repl, other.prev_uuid, HEADER_UUID);
		assert_memory_equal(after[i].next_repl, other.next_uuid, HEADER_UUID);
		assert_memory_equal(after[i].arch_flags, other.user_flags, HEADER_ARCH);
		assert_int_equal(after[i].crtime, before[i].crtime);
		assert_int_equal(after[i].sds.dirty, before[i].sds.dirty);
		if (i)
			assert_memory_equal(after[i].uuid, before[i].uuid, HEADER_UUID);
	}
	assert_memory_equal(after[1].prev_part, other.uuid, HEADER_UUID);
	assert_memory_equal(after[2].next_part, other.uuid, HEADER_UUID);
	disk_close(pool);
	disk_close(disk_open("a.set", &got));
	assert_memory_equal(&got, &other, sizeof(other));
}

static void attributes_that_do_not_fit_the_set_are_refused(void **state)
{
	struct poolset_attr zero = {0}, single = disk_attr();
	struct poolset_pool *pool;

	disk_write_set("a.set", TWO);
	pool = disk_create("a.set", &attr);
	single.incompat |= HEADER_SINGLEHDR;
	assert_int_equal(poolset_set_attr(pool, NULL, &disk_err), ERROR_LOCAL);
	assert_int_equal(disk_err.cause, EINVAL);
	assert_int_equal(poolset_set_attr(pool, &zero, &disk_err), ERROR_LOCAL);
	assert_int_equal(disk_err.cause, EINVAL);
	assert_int_equal(poolset_set_attr(pool, &single, &disk_err), ERROR_LOCAL);
	assert_int_equal(disk_err.cause, EINVAL);
	disk_close(pool);
	disk_close(disk_open("a.set", NULL));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, disk_teardown)
	const struct CMUnitTest tests[] = {
		TEST(what_was_written_is_there_again),
		TEST(parts_must_be_there_in_their_size_and_order),
		TEST(a_pool_file_is_a_set_of_one_part),
		TEST(permissions_are_named),
		TEST(a_changed_byte_is_noticed_wherever_it_is),
		TEST(the_state_is_dirty_while_the_pool_is_in_use),
		TEST(without_the_feature_the_state_is_left_alone),
		TEST(a_power_failure_that_devices_did_not_survive_is_refused),
		TEST(new_attributes_go_to_every_header),
		TEST(attributes_that_do_not_fit_the_set_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
