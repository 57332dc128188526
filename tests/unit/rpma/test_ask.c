/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_ask.c -- queries about capabilities and counters: those that are sent to the target, and
 * those that the provider answers.
 */
#include <errno.h>
#include <string.h>

#include "lib/unit.h"
#include "script.h"

#define ALWAYS     RPMA_F_COMPLETION_ALWAYS
#define PERSISTENT RPMA_FLUSH_TYPE_PERSISTENT

enum { RADDR = 0x10000, RKEY = 0x42 };

static struct rpma_peer peer;
static struct rpma_conn *conn;
static struct rpma_mr_remote *remote;
static char token;

static struct rpma_mr_remote *remote_for(int usage)
{
	unsigned char desc[21] = {0, 0, RADDR >> 16, [9] = 4, [16] = RKEY};
	struct rpma_mr_remote *mr = NULL;

	desc[20] = (unsigned char)usage;
	assert_int_equal(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &mr), 0);
	return mr;
}

static int setup(void **state)
{
	struct rpma_conn_req *req = NULL;

	script_reset();
	peer = script_peer(&provider_script);
	remote = remote_for(0xff);
	return rpma_conn_req_new(&peer, "a", "1", NULL, &req) ||
	       rpma_conn_req_connect(&req, NULL, &conn);
}

static int teardown(void **state)
{
	rpma_conn_delete(&conn);
	rpma_mr_remote_delete(&remote);
	return script_peer_end(&peer) ? -1 : 0;
}

static void expect_request(enum vext_op op, size_t offset, uint64_t len)
{
	assert_int_equal(script.listed, 1);
	assert_int_equal(script.list[0].op, op);
	assert_true(script.list[0].wr.wr.rdma.remote_addr == RADDR + offset);
	assert_int_equal(script.list[0].wr.wr.rdma.rkey, RKEY);
	assert_true(script.list[0].len == len);
	assert_true(script.list[0].wr.wr_id == (uintptr_t)&token);
	assert_int_equal(script.list[0].wr.send_flags, IBV_SEND_SIGNALED);
}

static int verify(struct rpma_mr_remote *mr, size_t len, enum rpma_digest_alg alg,
		  struct rpma_digest *digest)
{
	return rpma_verify(conn, mr, 8, len, alg, digest, ALWAYS, &token);
}

static void verify_is_for_peers_that_can(void **state)
{
	struct rpma_mr_remote *visible = remote_for(RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY);
	struct rpma_digest digest;

	assert_int_equal(verify(remote, 8, RPMA_DIGEST_AUTO, &digest), RPMA_E_NOSUPP);
	script.caps = VEXT_CAP_VERIFY;
	assert_int_equal(verify(visible, 8, RPMA_DIGEST_AUTO, &digest), RPMA_E_NOSUPP);
	assert_int_equal(script.listed, 0);
	script.post_err = ENOMEM;
	assert_int_equal(verify(remote, 8, RPMA_DIGEST_AUTO, &digest), RPMA_E_PROVIDER);
	assert_int_equal(rpma_mr_remote_delete(&visible), 0);
}

static void verify_asks_for_one_algorithm(void **state)
{
	struct rpma_digest digest;

	script.caps = VEXT_CAP_VERIFY;
	assert_int_equal(verify(remote, 4096, RPMA_DIGEST_AUTO, &digest), 0);
	expect_request(VEXT_OP_VERIFY, 8, 4096);
	assert_ptr_equal(script.list[0].result, &digest);
	assert_int_equal(script.list[0].alg, VEXT_DIGEST_CRC32C);
	assert_int_equal(verify(remote, 4097, RPMA_DIGEST_AUTO, &digest), 0);
	assert_int_equal(script.list[0].alg, VEXT_DIGEST_BLAKE2B);
	assert_int_equal(verify(remote, 8, RPMA_DIGEST_BLAKE2B, &digest), 0);
	assert_int_equal(script.list[0].alg, VEXT_DIGEST_BLAKE2B);
	assert_int_equal(verify(remote, 8192, RPMA_DIGEST_CRC32C, &digest), 0);
	assert_int_equal(script.list[0].alg, VEXT_DIGEST_CRC32C);
}

static void the_class_is_asked_of_peers_that_can_tell(void **state)
{
	enum rpma_durability class = RPMA_DURABILITY_UNKNOWN;

	assert_int_equal(rpma_query_durability(conn, remote, 16, 100, &class, ALWAYS, &token),
			 RPMA_E_NOSUPP);
	script.caps = VEXT_CAP_QUERY;
	assert_int_equal(rpma_query_durability(conn, remote, 16, 100, &class, ALWAYS, &token), 0);
	expect_request(VEXT_OP_QUERY, 16, 100);
	assert_ptr_equal(script.list[0].result, &class);
	script.post_err = ENOMEM;
	assert_int_equal(rpma_query_durability(conn, remote, 16, 100, &class, ALWAYS, &token),
			 RPMA_E_PROVIDER);
}

static void a_flush_of_everything_names_no_region(void **state)
{
	assert_int_equal(rpma_flush_all(conn, PERSISTENT, ALWAYS, &token), RPMA_E_NOSUPP);
	script.caps = VEXT_CAP_FLUSH_ALL;
	assert_int_equal(rpma_flush_all(conn, PERSISTENT, ALWAYS, &token), 0);
	assert_int_equal(script.list[0].op, VEXT_OP_FLUSH_ALL);
	assert_int_equal(script.list[0].type, VEXT_FLUSH_STRICT);
	assert_int_equal(script.list[0].wr.wr.rdma.rkey, 0);
	script.post_err = ENOMEM;
	assert_int_equal(rpma_flush_all(conn, PERSISTENT, ALWAYS, &token), RPMA_E_PROVIDER);
}

static void caps_are_told_once_they_are_known(void **state)
{
	uint32_t caps = 77;

	script.caps_unknown = true;
	assert_int_equal(rpma_conn_get_remote_caps(conn, &caps), RPMA_E_AGAIN);
	assert_int_equal(caps, 77);
	script.caps_unknown = false;
	assert_int_equal(rpma_conn_get_remote_caps(conn, &caps), 0);
	assert_int_equal(caps, 0);
	script.caps = VEXT_CAP_SOFTRNIC | VEXT_CAP_ATOMICS;
	assert_int_equal(rpma_conn_get_remote_caps(conn, &caps), 0);
	assert_int_equal(caps, RPMA_CAP_SOFTRNIC | RPMA_CAP_ATOMICS);
}

static void counters_fill_the_room_there_is(void **state)
{
	struct rpma_counter counters[4] = {{NULL, 0}};
	size_t n = 4;

	script.counters = -1;
	assert_int_equal(rpma_conn_get_counters(conn, counters, &n), RPMA_E_NOSUPP);
	assert_int_equal(n, 4);
	script.counters = 3;
	assert_int_equal(rpma_conn_get_counters(conn, counters, &n), 0);
	assert_int_equal(n, 3);
	assert_string_equal(counters[2].name, "third");
	assert_true(counters[2].value == 3);
	assert_null(counters[3].name);
	memset(counters, 0, sizeof(counters));
	n = 1;
	assert_int_equal(rpma_conn_get_counters(conn, counters, &n), 0);
	assert_int_equal(n, 3);
	assert_string_equal(counters[0].name, "first");
	assert_null(counters[1].name);
	n = 77;
	assert_int_equal(rpma_conn_get_counters(conn, NULL, &n), 0);
	assert_int_equal(n, 3);
}

/* The scripted device is not a software RNIC, so librpma cannot interpret its vendor_err. */
static void another_devices_failure_is_told_by_its_status(void **state)
{
	struct ibv_wc wc = {.status = IBV_WC_REM_ACCESS_ERR, .vendor_err = 0x0100001c};
	char text[256];
	uint32_t code;

	assert_int_equal(rpma_wc_get_reason(conn, &wc, &code), RPMA_REASON_DEVICE);
	assert_int_equal(code, 0x0100001c);
	assert_int_equal(rpma_wc_explain(conn, &wc, text, sizeof(text)), 0);
	assert_non_null(strstr(text, "permits no such access"));
	assert_non_null(strstr(text, "0x100001c"));
	wc.status = (enum ibv_wc_status)77;
	assert_int_equal(rpma_wc_explain(conn, &wc, text, sizeof(text)), 0);
	assert_non_null(strstr(text, "status 77"));
	assert_int_equal(rpma_wc_explain(conn, &wc, text, 10), 0);
	assert_int_equal(strlen(text), 9);
	wc.status = IBV_WC_SUCCESS;
	assert_int_equal(rpma_wc_get_reason(conn, &wc, &code), RPMA_REASON_NONE);
	assert_int_equal(code, 0);
	assert_int_equal(rpma_wc_explain(conn, &wc, text, sizeof(text)), 0);
	assert_string_equal(text, "success");
}

#define ON_CONN(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_CONN(verify_is_for_peers_that_can),
		ON_CONN(verify_asks_for_one_algorithm),
		ON_CONN(the_class_is_asked_of_peers_that_can_tell),
		ON_CONN(a_flush_of_everything_names_no_region),
		ON_CONN(caps_are_told_once_they_are_known),
		ON_CONN(counters_fill_the_room_there_is),
		ON_CONN(another_devices_failure_is_told_by_its_status),
	};

	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
	return cmocka_run_group_tests_name("questions", tests, NULL, NULL);
}
