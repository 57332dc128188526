/* SPDX-License-Identifier: BSD-3-Clause */
/* Decode and encode headers that PMDK 1.12.1 made. A header with any changed byte is refused. */
#include "lib/unit.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "poolset/header.h"

#define SDS_AT      4024
#define CHECKSUM_AT 4088

/* The first 144 bytes of each of the three parts of a pool that pmempool create obj made. */
static const uint8_t golden[3][144] = {
	{0x50, 0x4d, 0x45, 0x4d, 0x4f, 0x42, 0x4a, 0x00, 0x06, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00,
	 0x00, 0x06, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x7c, 0x3f, 0xb7, 0xab, 0x85, 0xca,
	 0xb6, 0x4b, 0x9e, 0x0f, 0x9b, 0x2f, 0xb0, 0x9a, 0xbd, 0xcf, 0x15, 0x93, 0xcb, 0xc1, 0x4c,
	 0xf7, 0xaa, 0x4f, 0x99, 0xc5, 0x7d, 0xaa, 0x35, 0x75, 0x54, 0xc0, 0x4d, 0x12, 0xe7, 0xa1,
	 0xb6, 0x56, 0x9e, 0x40, 0xb3, 0x88, 0x4c, 0x1a, 0x68, 0xa8, 0xdc, 0x88, 0x77, 0xae, 0x6a,
	 0x5a, 0xda, 0x87, 0x8e, 0x42, 0x9d, 0xef, 0xe3, 0x3b, 0x16, 0x4b, 0xd6, 0x7e, 0x15, 0x93,
	 0xcb, 0xc1, 0x4c, 0xf7, 0xaa, 0x4f, 0x99, 0xc5, 0x7d, 0xaa, 0x35, 0x75, 0x54, 0xc0, 0x15,
	 0x93, 0xcb, 0xc1, 0x4c, 0xf7, 0xaa, 0x4f, 0x99, 0xc5, 0x7d, 0xaa, 0x35, 0x75, 0x54, 0xc0,
	 0xe9, 0x37, 0x03, 0x6b, 0x00, 0x00, 0x00, 0x00, 0x10, 0x73, 0x77, 0x37, 0xf7, 0x07, 0x00,
	 0x00, 0x02, 0x01, 0x00, 0x00, 0x00, 0x00, 0x3e, 0x00},
	{0x50, 0x4d, 0x45, 0x4d, 0x4f, 0x42, 0x4a, 0x00, 0x06, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00,
	 0x00, 0x06, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x7c, 0x3f, 0xb7, 0xab, 0x85, 0xca,
	 0xb6, 0x4b, 0x9e, 0x0f, 0x9b, 0x2f, 0xb0, 0x9a, 0xbd, 0xcf, 0x77, 0xae, 0x6a, 0x5a, 0xda,
	 0x87, 0x8e, 0x42, 0x9d, 0xef, 0xe3, 0x3b, 0x16, 0x4b, 0xd6, 0x7e, 0x15, 0x93, 0xcb, 0xc1,
	 0x4c, 0xf7, 0xaa, 0x4f, 0x99, 0xc5, 0x7d, 0xaa, 0x35, 0x75, 0x54, 0xc0, 0x4d, 0x12, 0xe7,
	 0xa1, 0xb6, 0x56, 0x9e, 0x40, 0xb3, 0x88, 0x4c, 0x1a, 0x68, 0xa8, 0xdc, 0x88, 0x15, 0x93,
	 0xcb, 0xc1, 0x4c, 0xf7, 0xaa, 0x4f, 0x99, 0xc5, 0x7d, 0xaa, 0x35, 0x75, 0x54, 0xc0, 0x15,
	 0x93, 0xcb, 0xc1, 0x4c, 0xf7, 0xaa, 0x4f, 0x99, 0xc5, 0x7d, 0xaa, 0x35, 0x75, 0x54, 0xc0,
	 0xe9, 0x37, 0x03, 0x6b, 0x00, 0x00, 0x00, 0x00, 0x10, 0x73, 0x77, 0x37, 0xf7, 0x07, 0x00,
	 0x00, 0x02, 0x01, 0x00, 0x00, 0x00, 0x00, 0x3e, 0x00},
	{0x50, 0x4d, 0x45, 0x4d, 0x4f, 0x42, 0x4a, 0x00, 0x06, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00,
	 0x00, 0x06, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x7c, 0x3f, 0xb7, 0xab, 0x85, 0xca,
	 0xb6, 0x4b, 0x9e, 0x0f, 0x9b, 0x2f, 0xb0, 0x9a, 0xbd, 0xcf, 0x4d, 0x12, 0xe7, 0xa1, 0xb6,
	 0x56, 0x9e, 0x40, 0xb3, 0x88, 0x4c, 0x1a, 0x68, 0xa8, 0xdc, 0x88, 0x77, 0xae, 0x6a, 0x5a,
	 0xda, 0x87, 0x8e, 0x42, 0x9d, 0xef, 0xe3, 0x3b, 0x16, 0x4b, 0xd6, 0x7e, 0x15, 0x93, 0xcb,
	 0xc1, 0x4c, 0xf7, 0xaa, 0x4f, 0x99, 0xc5, 0x7d, 0xaa, 0x35, 0x75, 0x54, 0xc0, 0x15, 0x93,
	 0xcb, 0xc1, 0x4c, 0xf7, 0xaa, 0x4f, 0x99, 0xc5, 0x7d, 0xaa, 0x35, 0x75, 0x54, 0xc0, 0x15,
	 0x93, 0xcb, 0xc1, 0x4c, 0xf7, 0xaa, 0x4f, 0x99, 0xc5, 0x7d, 0xaa, 0x35, 0x75, 0x54, 0xc0,
	 0xe9, 0x37, 0x03, 0x6b, 0x00, 0x00, 0x00, 0x00, 0x10, 0x73, 0x77, 0x37, 0xf7, 0x07, 0x00,
	 0x00, 0x02, 0x01, 0x00, 0x00, 0x00, 0x00, 0x3e, 0x00},
};
static const uint8_t golden_sums[3][8] = {
	{0x9c, 0x52, 0x4b, 0x39, 0xe3, 0xc4, 0x2e, 0x2e},
	{0x9c, 0x52, 0x4b, 0x39, 0xcf, 0xcf, 0xec, 0xe3},
	{0x9c, 0x52, 0x4b, 0x39, 0xf3, 0xc7, 0x70, 0xc1},
};
static const uint8_t dirty_sds[64] = {[16] = 1, [56] = 1, [60] = 0x0c};

static uint8_t pages[3][HEADER_BYTES];
static const char *const names[] = {"/p0", "/p1", "/p2"};
static struct error err;

static int load_golden(void **state)
{
	memset(pages, 0, sizeof(pages));
	for (unsigned i = 0; i < 3; i++) {
		memcpy(pages[i], golden[i], sizeof(golden[i]));
		memcpy(pages[i] + CHECKSUM_AT, golden_sums[i], 8);
	}
	return 0;
}

static int check(unsigned count, bool is_single)
{
	struct header_set set = {pages, names, count, is_single};

	err = (struct error){0};
	return header_check(&set, &err);
}

static void expect_bad(unsigned count, int cause, const char *words)
{
	assert_int_equal(check(count, false), ERROR_LOCAL);
	if (err.cause != cause || !strstr(err.text, words))
		fail_msg("%d: %s", err.cause, err.text);
}

static void reencode(unsigned part, const struct header *h)
{
	header_encode(h, pages[part]);
}

static void headers_of_pmdk_decode_and_encode_to_the_same_bytes(void **state)
{
	for (unsigned i = 0; i < 3; i++) {
		uint8_t page[HEADER_BYTES];
		struct header h;

		header_decode(pages[i], &h);
		assert_memory_equal(h.signature, "PMEMOBJ", 8);
		assert_int_equal(h.major, 6);
		assert_int_equal(h.compat, 1);
		assert_int_equal(h.incompat, HEADER_SDS | HEADER_CKSUM_2K);
		assert_int_equal(h.ro_compat, 0);
		assert_int_equal(h.crtime, 0x6b0337e9);
		assert_true(header_has_sds(&h));
		assert_true(header_is_intact(pages[i]));
		header_encode(&h, page);
		assert_memory_equal(page, pages[i], HEADER_BYTES);
	}
	assert_int_equal(check(3, false), 0);
}

static void attributes_go_to_the_header_and_back(void **state)
{
	struct poolset_attr attr, again;
	struct header h, copy;

	_Static_assert(sizeof(attr) == 104, "as in librpmem.h");
	header_decode(pages[1], &h);
	memset(h.prev_repl, 1, HEADER_UUID);
	memset(h.next_repl, 2, HEADER_UUID);
	header_get_attr(&h, &attr);
	assert_int_equal(attr.prev_uuid[0], 1);
	assert_int_equal(attr.next_uuid[0], 2);
	assert_memory_equal(attr.uuid, h.uuid, HEADER_UUID);
	assert_false(poolset_attr_is_zero(&attr));

	memset(&copy, 0, sizeof(copy));
	memcpy(copy.uuid, h.uuid, HEADER_UUID);
	memcpy(copy.prev_part, h.prev_part, HEADER_UUID);
	memcpy(copy.next_part, h.next_part, HEADER_UUID);
	copy.crtime = h.crtime;
	header_set_attr(&copy, &attr);
	header_get_attr(&copy, &again);
	assert_memory_equal(&attr, &again, sizeof(attr));

	assert_true(poolset_attr_is_zero(NULL));
	memset(&attr, 0, sizeof(attr));
	assert_true(poolset_attr_is_zero(&attr));
	attr.user_flags[15] = 1;
	assert_false(poolset_attr_is_zero(&attr));
}

/* Returns the expected result for a changed byte: 0, or the cause of the error. */
static int verdict_of(unsigned part, unsigned at, bool has_2k)
{
	if (has_2k && at >= SDS_AT && at < CHECKSUM_AT)
		return 0; /* the shutdown state has its own checksum and rules */
	return part > 0 && at < 24 ? EINVAL : EBADMSG;
}

static void try_every_byte(unsigned count, bool has_2k)
{
	for (unsigned part = 0; part < count; part++) {
		for (unsigned at = 0; at < HEADER_BYTES; at++) {
			for (unsigned bit = 0; bit < 9; bit++) {
				uint8_t was = pages[part][at];
				int rc;

				pages[part][at] ^= (uint8_t)(bit < 8 ? 1 << bit : 0xff);
				rc = check(count, false) ? err.cause : 0;
				pages[part][at] = was;
				if (rc != verdict_of(part, at, has_2k))
					fail_msg("part %u, byte %u: %d %s", part, at, rc, err.text);
			}
		}
	}
}

static void every_changed_byte_is_refused(void **state)
{
	struct header h;

	try_every_byte(3, true);
	for (unsigned i = 0; i < 2; i++) {
		header_decode(pages[i], &h);
		h.incompat = 0;
		memcpy(h.prev_part, golden[1 - i] + 40, HEADER_UUID);
		memcpy(h.next_part, golden[1 - i] + 40, HEADER_UUID);
		reencode(i, &h);
	}
	try_every_byte(2, false);
}

static void the_checksum_of_the_old_form_covers_the_whole_page(void **state)
{
	struct header h;

	header_decode(pages[0], &h);
	h.incompat = HEADER_SDS;
	assert_false(header_has_sds(&h)); /* the checksum includes this flag */
	h.incompat = HEADER_CKSUM_2K;
	assert_false(header_has_sds(&h));
	h.incompat = 0;
	reencode(0, &h);
	assert_true(header_is_intact(pages[0]));
	pages[0][SDS_AT]++;
	assert_false(header_is_intact(pages[0]));
}

static void parts_must_belong_together(void **state)
{
	struct header h;

	header_decode(pages[1], &h);
	h.poolset_uuid[3]++;
	reencode(1, &h);
	expect_bad(3, EINVAL, "/p1: it belongs to another pool set");
	h.poolset_uuid[3]--;
	h.prev_repl[0]++;
	reencode(1, &h);
	expect_bad(3, EINVAL, "/p1: its neighbouring replicas");
	h.prev_repl[0]--;
	h.next_repl[15]++;
	reencode(1, &h);
	expect_bad(3, EINVAL, "/p1: its neighbouring replicas");
	h.next_repl[15]--;
	h.arch_flags[0]++;
	reencode(1, &h);
	expect_bad(3, EINVAL, "/p1: its architecture");
	h.arch_flags[0]--;
	h.uuid[0]++;
	reencode(1, &h);
	expect_bad(3, EINVAL, "/p0: it is not linked");
	h.uuid[0]--;
	h.next_part[0]++;
	reencode(1, &h);
	expect_bad(3, EINVAL, "/p1: it is not linked");
	h.next_part[0]--;
	h.crtime++;
	reencode(1, &h);
	assert_int_equal(check(3, false), 0);
	assert_int_equal(check(2, false), ERROR_LOCAL); /* the ring of headers lacks a part */
}

static void kinds_must_be_the_same_before_checksums_are_looked_at(void **state)
{
	pages[2][7] = 1;
	expect_bad(3, EINVAL, "/p2: its signature");
	pages[2][7] = 0;
	pages[2][8]++;
	expect_bad(3, EINVAL, "/p2: its major version");
	pages[2][8]--;
	for (unsigned at = 12; at < 24; at += 4) {
		pages[2][at] ^= 8;
		expect_bad(3, EINVAL, "/p2: its features");
		pages[2][at] ^= 8;
	}
	pages[2][50] ^= 8;
	expect_bad(3, EBADMSG, "/p2: its pool header is corrupt");
	memset(pages[2], 0, HEADER_BYTES);
	expect_bad(3, EINVAL, "/p2: there is no pool in it");
	assert_true(header_is_zero(pages[2]));
	pages[2][4095] = 1;
	assert_false(header_is_zero(pages[2]));
}

static void the_option_singlehdr_must_agree(void **state)
{
	struct header h;

	header_decode(pages[0], &h);
	memcpy(h.prev_part, h.uuid, HEADER_UUID);
	memcpy(h.next_part, h.uuid, HEADER_UUID);
	reencode(0, &h);
	assert_int_equal(check(1, false), 0);
	assert_int_equal(check(1, true), ERROR_LOCAL);
	assert_int_equal(err.cause, EINVAL);
	h.incompat |= HEADER_SINGLEHDR;
	reencode(0, &h);
	assert_int_equal(check(1, true), 0);
	expect_bad(1, EINVAL, "SINGLEHDR");
	assert_int_equal(check(0, false), 0); /* NOHDRS */
}

static void what_may_be_unknown_is_not_judged(void **state)
{
	struct header h;

	header_decode(pages[0], &h);
	memcpy(h.signature, "UNKNOWN!", 8);
	h.major = 99;
	h.compat = h.ro_compat = ~0u;
	h.incompat = ~(uint32_t)HEADER_SINGLEHDR;
	memset(h.arch_flags, 0xee, HEADER_ARCH);
	memcpy(h.prev_part, h.uuid, HEADER_UUID);
	memcpy(h.next_part, h.uuid, HEADER_UUID);
	reencode(0, &h);
	assert_int_equal(check(1, false), 0);
}

static void the_shutdown_state_refuses_a_power_failure_only(void **state)
{
	struct header_sds same = {0, 0, 0}, other = {1, 7, 0};
	uint8_t *sds = pages[0] + SDS_AT;
	struct header h;

	assert_false(header_sds_is_lost(pages[0], &same));
	/* the header has no shutdown state to compare with */
	assert_false(header_sds_is_lost(pages[0], &other));
	memcpy(sds, dirty_sds, sizeof(dirty_sds));
	/* the process was killed, and the devices are the same */
	assert_false(header_sds_is_lost(pages[0], &same));
	assert_true(header_sds_is_lost(pages[0], &other));
	sds[20] ^= 1;
	assert_false(header_sds_is_lost(pages[0], &other)); /* a torn state counts as no state */
	sds[20] ^= 1;

	header_decode(pages[0], &h);
	assert_int_equal(h.sds.dirty, 1);
	h.sds = (struct header_sds){5, 6, 0};
	reencode(0, &h);
	assert_true(header_is_intact(pages[0]));
	assert_false(header_sds_is_lost(pages[0], &other)); /* the pool was closed in good order */
	h.sds = (struct header_sds){1, 6, 1};
	reencode(0, &h);
	/* the process was killed, and the devices are others */
	assert_true(header_sds_is_lost(pages[0], &other));
	h.sds = (struct header_sds){1, 7, 1};
	reencode(0, &h);
	assert_false(header_sds_is_lost(pages[0], &other));
	h.sds = (struct header_sds){0, 0, 1};
	reencode(0, &h);
	assert_memory_equal(sds, dirty_sds, sizeof(dirty_sds));
}

static void fresh_uuids_are_random_and_of_version_4(void **state)
{
	uint8_t a[HEADER_UUID], b[HEADER_UUID];

	for (int i = 0; i < 100; i++) {
		header_fresh_uuid(a);
		header_fresh_uuid(b);
		assert_memory_not_equal(a, b, HEADER_UUID);
		assert_int_equal(a[7] >> 4, 4);
		assert_int_equal(a[8] >> 6, 2);
	}
}

static void the_architecture_is_written_as_pmdk_does(void **state)
{
#if defined(__x86_64__)
	uint8_t flags[HEADER_ARCH];

	header_arch_flags(flags);
	assert_memory_equal(flags, golden[0] + 128, HEADER_ARCH);
#else
	skip();
#endif
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, load_golden)
	const struct CMUnitTest tests[] = {
		TEST(headers_of_pmdk_decode_and_encode_to_the_same_bytes),
		TEST(attributes_go_to_the_header_and_back),
		TEST(every_changed_byte_is_refused),
		TEST(the_checksum_of_the_old_form_covers_the_whole_page),
		TEST(parts_must_belong_together),
		TEST(kinds_must_be_the_same_before_checksums_are_looked_at),
		TEST(the_option_singlehdr_must_agree),
		TEST(what_may_be_unknown_is_not_judged),
		TEST(the_shutdown_state_refuses_a_power_failure_only),
		TEST(fresh_uuids_are_random_and_of_version_4),
		TEST(the_architecture_is_written_as_pmdk_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
