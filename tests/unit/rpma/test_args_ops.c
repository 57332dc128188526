/* SPDX-License-Identifier: BSD-3-Clause */
/* test_args_ops.c -- wrong arguments for the operations that are new in librpma 1.4. */
#include "args.h"

static void batches(void **state)
{
	struct rpma_mr_remote *remote = FAKE(rpma_mr_remote);
	struct rpma_mr_local *mr = FAKE(rpma_mr_local);
	struct rpma_segment segment = {mr, 0, 1};
	struct rpma_batch *batch = NULL;
	const char word[8] = {0};
	uint32_t n = 77;

	INVAL(rpma_batch_new(NULL, 1, &batch));
	INVAL(rpma_batch_new(FAKE(rpma_conn), 0, &batch));
	INVAL(rpma_batch_new(FAKE(rpma_conn), 1, NULL));
	INVAL(rpma_batch_delete(NULL));
	INVAL(rpma_batch_write(NULL, remote, 0, mr, 0, 1, ALWAYS, NULL));
	INVAL(rpma_batch_atomic_write(NULL, remote, 0, word, ALWAYS, NULL));
	INVAL(rpma_batch_flush(NULL, remote, 0, 1, PERSISTENT, ALWAYS, NULL));
	INVAL(rpma_batch_flush_all(NULL, PERSISTENT, ALWAYS, NULL));
	INVAL(rpma_batch_send(NULL, &segment, 1, ALWAYS, NULL));
	INVAL(rpma_batch_post(NULL));
	INVAL(rpma_batch_clear(NULL));
	INVAL(rpma_batch_get_count(NULL, &n));
	INVAL(rpma_batch_get_count(FAKE(rpma_batch), NULL));
	assert_null(batch);
	assert_int_equal(n, 77);
	assert_int_equal(rpma_batch_delete(&batch), 0);
}

static void gathered_messages(void **state)
{
	struct rpma_segment five[5] = {{FAKE(rpma_mr_local), 0, 1},
				       {FAKE(rpma_mr_local), 0, 1},
				       {FAKE(rpma_mr_local), 0, 1},
				       {FAKE(rpma_mr_local), 0, 1},
				       {FAKE(rpma_mr_local), 0, 1}};
	struct rpma_segment nowhere[2] = {{FAKE(rpma_mr_local), 0, 1}, {NULL, 0, 0}};
	struct rpma_conn *conn = FAKE(rpma_conn);

	INVAL(rpma_send_gather(NULL, five, 1, ALWAYS, NULL));
	INVAL(rpma_send_gather(conn, NULL, 1, ALWAYS, NULL));
	INVAL(rpma_send_gather(conn, five, 0, ALWAYS, NULL));
	INVAL(rpma_send_gather(conn, five, RPMA_SEND_SEGMENTS_MAX + 1, ALWAYS, NULL));
	INVAL(rpma_send_gather(conn, five, 1, 0, NULL));
	INVAL(rpma_send_gather(conn, nowhere, 2, ALWAYS, NULL));
}

static void questions_to_the_target(void **state)
{
	struct rpma_mr_remote *remote = FAKE(rpma_mr_remote);
	enum rpma_durability durability = RPMA_DURABILITY_DAX;
	struct rpma_conn *conn = FAKE(rpma_conn);
	struct rpma_digest digest;

	INVAL(rpma_flush_all(NULL, PERSISTENT, ALWAYS, NULL));
	INVAL(rpma_flush_all(conn, PERSISTENT, 0, NULL));
	INVAL(rpma_flush_all(conn, (enum rpma_flush_type)2, ALWAYS, NULL));
	INVAL(rpma_flush_all(conn, (enum rpma_flush_type) - 1, ALWAYS, NULL));
	INVAL(rpma_query_durability(NULL, remote, 0, 1, &durability, ALWAYS, NULL));
	INVAL(rpma_query_durability(conn, NULL, 0, 1, &durability, ALWAYS, NULL));
	INVAL(rpma_query_durability(conn, remote, 0, 0, &durability, ALWAYS, NULL));
	INVAL(rpma_query_durability(conn, remote, 0, 1, NULL, ALWAYS, NULL));
	INVAL(rpma_query_durability(conn, remote, 0, 1, &durability, 0, NULL));
	INVAL(rpma_verify(NULL, remote, 0, 1, RPMA_DIGEST_AUTO, &digest, ALWAYS, NULL));
	INVAL(rpma_verify(conn, NULL, 0, 1, RPMA_DIGEST_AUTO, &digest, ALWAYS, NULL));
	INVAL(rpma_verify(conn, remote, 0, 0, RPMA_DIGEST_AUTO, &digest, ALWAYS, NULL));
	INVAL(rpma_verify(conn, remote, 0, 1ul << 32, RPMA_DIGEST_AUTO, &digest, ALWAYS, NULL));
	INVAL(rpma_verify(conn, remote, 0, 1, RPMA_DIGEST_AUTO, NULL, ALWAYS, NULL));
	INVAL(rpma_verify(conn, remote, 0, 1, RPMA_DIGEST_AUTO, &digest, 0, NULL));
	INVAL(rpma_verify(conn, remote, 0, 1, (enum rpma_digest_alg)3, &digest, ALWAYS, NULL));
	assert_int_equal(durability, RPMA_DURABILITY_DAX);
}

static void questions_to_the_connection(void **state)
{
	struct ibv_wc failed = {.status = IBV_WC_REM_OP_ERR, .vendor_err = 0x0100001c};
	struct rpma_conn *conn = FAKE(rpma_conn);
	struct rpma_counter counter;
	uint32_t caps = 77, code = 77;
	char text[8] = "before";
	size_t n = 1;

	INVAL(rpma_conn_get_remote_caps(NULL, &caps));
	INVAL(rpma_conn_get_remote_caps(conn, NULL));
	INVAL(rpma_conn_get_counters(NULL, &counter, &n));
	INVAL(rpma_conn_get_counters(conn, &counter, NULL));
	INVAL(rpma_wc_explain(NULL, &failed, text, sizeof(text)));
	INVAL(rpma_wc_explain(conn, NULL, text, sizeof(text)));
	INVAL(rpma_wc_explain(conn, &failed, NULL, sizeof(text)));
	INVAL(rpma_wc_explain(conn, &failed, text, 0));
	assert_int_equal(caps, 77);
	assert_int_equal(n, 1);
	assert_string_equal(text, "before");
	assert_int_equal(rpma_wc_get_reason(NULL, &failed, &code), RPMA_REASON_NONE);
	assert_int_equal(code, 0);
	assert_int_equal(rpma_wc_get_reason(conn, NULL, NULL), RPMA_REASON_NONE);
}

static void digests(void **state)
{
	struct rpma_digest digest = {.len = 77};

	INVAL(rpma_digest_compute(RPMA_DIGEST_CRC32C, "x", 1, NULL));
	INVAL(rpma_digest_compute(RPMA_DIGEST_CRC32C, NULL, 1, &digest));
	INVAL(rpma_digest_compute(RPMA_DIGEST_CRC32C, "x", 1ul << 32, &digest));
	INVAL(rpma_digest_compute((enum rpma_digest_alg)3, "x", 1, &digest));
	INVAL(rpma_digest_compute((enum rpma_digest_alg) - 1, "x", 1, &digest));
	assert_int_equal(digest.len, 77);
}

#define POISONED(test) cmocka_unit_test_setup_teardown(test, poison_set, poison_check)

int main(void)
{
	const struct CMUnitTest tests[] = {
		POISONED(batches),
		POISONED(gathered_messages),
		POISONED(questions_to_the_target),
		POISONED(questions_to_the_connection),
		cmocka_unit_test(digests),
	};

	return cmocka_run_group_tests_name("wrong arguments are refused", tests, NULL, NULL);
}
