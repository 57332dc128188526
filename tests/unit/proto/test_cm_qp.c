/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/unit.h"

#include <errno.h>
#include <string.h>

#include "softrnic/proto/cm_qp.h"

/* The example of doc/wire.md, section 17. */
static const uint8_t golden[CM_QP_LEN] = {
	's',  'R',  'X',  'Q',  0x01, 0x00, 0x00, 0x00, 0x00, 0x9c, 0x41,
	0x07, 0x00, 0x12, 0x34, 0x56, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xc0, 0x00, 0x02, 0x01,
};

static void a_name_is_laid_out_as_documented(void **state)
{
	struct cm_qp name = {
		.qpn = 0x9c4107, .psn = 0x123456, .gid = {[10] = 0xff, 0xff, 192, 0, 2, 1}};
	struct cm_qp got;
	uint8_t buf[CM_QP_LEN];

	assert_int_equal(cm_qp_encode(buf, sizeof(buf), &name), CM_QP_LEN);
	assert_memory_equal(buf, golden, sizeof(golden));
	assert_int_equal(cm_qp_encode(buf, CM_QP_LEN - 1, &name), -ENOSPC);
	assert_int_equal(cm_qp_decode(golden, sizeof(golden), &got), CM_QP_LEN);
	assert_int_equal(got.qpn, name.qpn);
	assert_int_equal(got.psn, name.psn);
	assert_memory_equal(got.gid, name.gid, sizeof(name.gid));
}

static void a_datagram_queue_pair_has_a_flag(void **state)
{
	struct cm_qp name = {.datagram = true, .qpn = 0x9c4107}, got;
	uint8_t buf[CM_QP_LEN];

	assert_int_equal(cm_qp_encode(buf, sizeof(buf), &name), CM_QP_LEN);
	assert_int_equal(buf[5], 1);
	assert_int_equal(cm_qp_decode(buf, sizeof(buf), &got), CM_QP_LEN);
	assert_true(got.datagram);
	buf[5] = 2;
	assert_int_equal(cm_qp_decode(buf, sizeof(buf), &got), -EBADMSG);
}

static void private_data_may_follow(void **state)
{
	uint8_t longer[CM_QP_LEN + 3] = {0};
	struct cm_qp got;

	memcpy(longer, golden, CM_QP_LEN);
	assert_int_equal(cm_qp_decode(longer, sizeof(longer), &got), CM_QP_LEN);
}

/* Every byte is checked, except the bytes of the GID and the lower bytes of the numbers. */
static void other_private_data_are_no_name(void **state)
{
	static const size_t checked[] = {0, 1, 2, 3, 4, 6, 7, 8, 12};
	struct cm_qp got;

	for (size_t i = 0; i < sizeof(checked) / sizeof(checked[0]); i++) {
		uint8_t bad[CM_QP_LEN];

		memcpy(bad, golden, CM_QP_LEN);
		bad[checked[i]] ^= 1;
		assert_int_equal(cm_qp_decode(bad, CM_QP_LEN, &got), -EBADMSG);
	}
	for (size_t len = 0; len < CM_QP_LEN; len++)
		assert_int_equal(cm_qp_decode(golden, len, &got), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_laid_out_as_documented),
		cmocka_unit_test(a_datagram_queue_pair_has_a_flag),
		cmocka_unit_test(private_data_may_follow),
		cmocka_unit_test(other_private_data_are_no_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
