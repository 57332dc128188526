/* SPDX-License-Identifier: BSD-3-Clause */
/* test_desc.c -- descriptors, byte by byte, through the public interface only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <librpma.h>

/* address 0x0102030405060708, size 0x1112131415161718, rkey 0x21222324, usage visible |
 * write_dst */
static const unsigned char region[] = {8,    7,    6,    5,    4,    3,    2,
				       1,    0x18, 0x17, 0x16, 0x15, 0x14, 0x13,
				       0x12, 0x11, 0x24, 0x23, 0x22, 0x21, 0x18};

static int decode(const void *desc, size_t len, struct rpma_mr_remote **mr)
{
	*mr = NULL;
	return rpma_mr_remote_from_descriptor(desc, len, mr);
}

static void a_region_is_decoded_from_21_little_endian_bytes(void **state)
{
	struct rpma_mr_remote *mr;
	size_t size = 0;
	int type = 0;

	assert_int_equal(sizeof(region), 21);
	assert_int_equal(decode(region, sizeof(region), &mr), 0);
	assert_int_equal(rpma_mr_remote_get_size(mr, &size), 0);
	assert_true(size == 0x1112131415161718u);
	assert_int_equal(rpma_mr_remote_get_flush_type(mr, &type), 0);
	assert_int_equal(type, RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY);
	assert_int_equal(rpma_mr_remote_delete(&mr), 0);
	assert_null(mr);
}

static void bytes_behind_a_region_are_ignored(void **state)
{
	unsigned char longer[sizeof(region) + 11];
	struct rpma_mr_remote *mr;
	size_t size = 0;

	memset(longer, 0xff, sizeof(longer));
	memcpy(longer, region, sizeof(region));
	assert_int_equal(decode(longer, sizeof(longer), &mr), 0);
	assert_int_equal(rpma_mr_remote_get_size(mr, &size), 0);
	assert_true(size == 0x1112131415161718u);
	assert_int_equal(rpma_mr_remote_delete(&mr), 0);
}

static void a_region_cut_anywhere_is_refused(void **state)
{
	struct rpma_mr_remote *mr;

	for (size_t len = 0; len < sizeof(region); len++) {
		assert_int_equal(decode(region, len, &mr), RPMA_E_INVAL);
		assert_null(mr);
	}
}

static void a_region_without_usage_is_refused_and_any_other_taken(void **state)
{
	unsigned char desc[sizeof(region)] = {0};
	struct rpma_mr_remote *mr;
	int type;

	assert_int_equal(decode(desc, sizeof(desc), &mr), RPMA_E_INVAL);
	assert_null(mr);
	for (int usage = 1; usage <= 255; usage++) {
		desc[20] = (unsigned char)usage;
		assert_int_equal(decode(desc, sizeof(desc), &mr), 0);
		assert_int_equal(rpma_mr_remote_get_flush_type(mr, &type), 0);
		assert_int_equal(type, usage & 0x30);
		assert_int_equal(rpma_mr_remote_delete(&mr), 0);
	}
}

static void a_peer_configuration_is_one_byte_0_or_1(void **state)
{
	struct rpma_peer_cfg *pcfg = NULL;
	unsigned char desc[2] = {0xee, 0xee};
	size_t size = 0;

	assert_int_equal(rpma_peer_cfg_new(&pcfg), 0);
	assert_int_equal(rpma_peer_cfg_get_descriptor_size(pcfg, &size), 0);
	assert_int_equal(size, 1);
	assert_int_equal(rpma_peer_cfg_get_descriptor(pcfg, desc), 0);
	assert_int_equal(desc[0], 0);
	assert_int_equal(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, true), 0);
	assert_int_equal(rpma_peer_cfg_get_descriptor(pcfg, desc), 0);
	assert_int_equal(desc[0], 1);
	assert_int_equal(desc[1], 0xee);
	assert_int_equal(rpma_peer_cfg_delete(&pcfg), 0);
}

static void any_byte_but_0_means_direct_write(void **state)
{
	struct rpma_peer_cfg *pcfg = NULL;
	bool direct;

	for (int byte = 0; byte <= 255; byte++) {
		unsigned char desc[3] = {(unsigned char)byte, 1, 1};

		assert_int_equal(rpma_peer_cfg_from_descriptor(desc, sizeof(desc), &pcfg), 0);
		assert_int_equal(rpma_peer_cfg_get_direct_write_to_pmem(pcfg, &direct), 0);
		assert_int_equal(direct, byte != 0);
		assert_int_equal(rpma_peer_cfg_delete(&pcfg), 0);
	}
	assert_int_equal(rpma_peer_cfg_from_descriptor("", 0, &pcfg), RPMA_E_INVAL);
	assert_null(pcfg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_region_is_decoded_from_21_little_endian_bytes),
		cmocka_unit_test(bytes_behind_a_region_are_ignored),
		cmocka_unit_test(a_region_cut_anywhere_is_refused),
		cmocka_unit_test(a_region_without_usage_is_refused_and_any_other_taken),
		cmocka_unit_test(a_peer_configuration_is_one_byte_0_or_1),
		cmocka_unit_test(any_byte_but_0_means_direct_write),
	};

	return cmocka_run_group_tests_name("descriptors", tests, NULL, NULL);
}
