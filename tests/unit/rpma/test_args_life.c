/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_args_life.c -- wrong arguments for the calls of librpma 1.4 that make, configure and end
 * connections.
 */
#include "args.h"

static void devices(void **state)
{
	const enum rpma_util_ibv_context_type local = RPMA_UTIL_IBV_CONTEXT_LOCAL;
	const enum rpma_util_ibv_context_type bad = (enum rpma_util_ibv_context_type)2;
	struct ibv_context *ctx = FAKE(ibv_context);
	struct rpma_provider_list *list = NULL;
	struct rpma_provider_info info = {.size = sizeof(info), .provider = "untouched"};

	INVAL(rpma_utils_get_ibv_context_from(NULL, "127.0.0.1", local, &ctx));
	INVAL(rpma_utils_get_ibv_context_from("softrnic", NULL, local, &ctx));
	INVAL(rpma_utils_get_ibv_context_from("softrnic", "127.0.0.1", bad, &ctx));
	INVAL(rpma_utils_get_ibv_context_from("softrnic", "127.0.0.1", local, NULL));
	INVAL(rpma_utils_get_ibv_context_from("", "127.0.0.1", local, &ctx));
	INVAL(rpma_utils_get_ibv_context_from("auto", "127.0.0.1", local, &ctx));
	INVAL(rpma_provider_list_new("127.0.0.1", bad, &list));
	INVAL(rpma_provider_list_new(NULL, bad, &list));
	INVAL(rpma_provider_list_new(NULL, local, NULL));
	INVAL(rpma_provider_list_delete(NULL));
	INVAL(rpma_provider_list_get(NULL, 0, &info));
	INVAL(rpma_provider_list_get(FAKE(rpma_provider_list), 0, NULL));
	assert_ptr_equal(ctx, poison);
	assert_null(list);
	assert_string_equal(info.provider, "untouched");
}

static void durability(void **state)
{
	enum rpma_durability cls = RPMA_DURABILITY_UNKNOWN;
	char why[8] = "old";

	INVAL(rpma_utils_get_durability(NULL, 1, &cls, why, sizeof(why)));
	INVAL(rpma_utils_get_durability(poison, 0, &cls, why, sizeof(why)));
	INVAL(rpma_utils_get_durability(poison, 1, NULL, why, sizeof(why)));
	INVAL(rpma_utils_get_durability(poison, 1, &cls, why, 0));
	INVAL(rpma_utils_get_durability(poison, SIZE_MAX, &cls, why, sizeof(why)));
	assert_int_equal(cls, RPMA_DURABILITY_UNKNOWN);
	assert_string_equal(why, "old");
}

static void files(void **state)
{
	struct rpma_mr_local *mr = NULL;

	INVAL(rpma_mr_reg_file(NULL, "f", 1, RPMA_MR_USAGE_READ_SRC, &mr));
	INVAL(rpma_mr_reg_file(FAKE(rpma_peer), NULL, 1, RPMA_MR_USAGE_READ_SRC, &mr));
	INVAL(rpma_mr_reg_file(FAKE(rpma_peer), "f", 1, 0, &mr));
	INVAL(rpma_mr_reg_file(FAKE(rpma_peer), "f", 1, 256, &mr));
	INVAL(rpma_mr_reg_file(FAKE(rpma_peer), "f", 1, RPMA_MR_USAGE_READ_SRC, NULL));
	assert_null(mr);
}

static void queues_and_waits(void **state)
{
	struct rpma_cq *cq = NULL;
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	struct rpma_conn_req *req = NULL;
	bool is_rcq;

	INVAL(rpma_cq_new(NULL, 1, &cq));
	INVAL(rpma_cq_new(FAKE(rpma_peer), 0, &cq));
	INVAL(rpma_cq_new(FAKE(rpma_peer), 1, NULL));
	INVAL(rpma_cq_delete(NULL));
	INVAL(rpma_cq_wait_timeout(NULL, 1));
	INVAL(rpma_cq_wait_timeout(FAKE(rpma_cq), -2));
	INVAL(rpma_conn_wait_timeout(NULL, 1, &cq, &is_rcq));
	INVAL(rpma_conn_wait_timeout(FAKE(rpma_conn), 1, NULL, &is_rcq));
	INVAL(rpma_conn_wait_timeout(FAKE(rpma_conn), -2, &cq, &is_rcq));
	INVAL(rpma_conn_next_event_timeout(NULL, 1, &event));
	INVAL(rpma_conn_next_event_timeout(FAKE(rpma_conn), 1, NULL));
	INVAL(rpma_conn_next_event_timeout(FAKE(rpma_conn), -2, &event));
	INVAL(rpma_ep_next_conn_req_timeout(NULL, NULL, 1, &req));
	INVAL(rpma_ep_next_conn_req_timeout(FAKE(rpma_ep), NULL, 1, NULL));
	INVAL(rpma_ep_next_conn_req_timeout(FAKE(rpma_ep), NULL, -2, &req));
	assert_null(cq);
	assert_null(req);
	assert_int_equal(event, RPMA_CONN_UNDEFINED);
}

static void opening(void **state)
{
	struct rpma_conn_open_attr attr = {.size = sizeof(attr), .addr = "127.0.0.1", .port = "7"};
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	struct rpma_conn *conn = NULL;

	INVAL(rpma_conn_open(NULL, &attr, &event, &conn));
	INVAL(rpma_conn_open(FAKE(rpma_peer), NULL, &event, &conn));
	INVAL(rpma_conn_open(FAKE(rpma_peer), &attr, NULL, &conn));
	INVAL(rpma_conn_open(FAKE(rpma_peer), &attr, &event, NULL));
	attr.timeout_ms = -2;
	INVAL(rpma_conn_open(FAKE(rpma_peer), &attr, &event, &conn));
	attr.timeout_ms = -1;
	attr.retry_ms = -2;
	INVAL(rpma_conn_open(FAKE(rpma_peer), &attr, &event, &conn));
	attr.retry_ms = 0;
	attr.port = NULL;
	INVAL(rpma_conn_open(FAKE(rpma_peer), &attr, &event, &conn));
	attr.port = "7";
	attr.addr = NULL;
	INVAL(rpma_conn_open(FAKE(rpma_peer), &attr, &event, &conn));
	/* A structure whose size ends before the member `addr` has no address. */
	attr.addr = "127.0.0.1";
	attr.size = sizeof(attr.size);
	INVAL(rpma_conn_open(FAKE(rpma_peer), &attr, &event, &conn));
	assert_int_equal(event, RPMA_CONN_UNDEFINED);
	assert_null(conn);
}

static void connections(void **state)
{
	struct rpma_conn_req *req = NULL;
	uint16_t port = 77;
	char addr[8] = "old";

	INVAL(rpma_conn_cancel(NULL));
	INVAL(rpma_conn_req_reject(NULL, NULL));
	INVAL(rpma_conn_req_reject(&req, NULL));
	INVAL(rpma_ep_get_port(NULL, &port));
	INVAL(rpma_ep_get_port(FAKE(rpma_ep), NULL));
	INVAL(rpma_conn_get_remote_addr(NULL, addr, sizeof(addr)));
	INVAL(rpma_conn_get_remote_addr(FAKE(rpma_conn), NULL, sizeof(addr)));
	INVAL(rpma_conn_get_remote_addr(FAKE(rpma_conn), addr, 0));
	INVAL(rpma_conn_req_get_remote_addr(NULL, addr, sizeof(addr)));
	INVAL(rpma_conn_req_get_remote_addr(FAKE(rpma_conn_req), NULL, sizeof(addr)));
	INVAL(rpma_conn_req_get_remote_addr(FAKE(rpma_conn_req), addr, 0));
	assert_int_equal(port, 77);
	assert_string_equal(addr, "old");
}

static void configurations(void **state)
{
	struct rpma_conn_cfg *cfg = FAKE(rpma_conn_cfg);
	struct rpma_cq *cq = NULL;
	const void *name = NULL;
	size_t len = 77;
	int ms = 77;

	INVAL(rpma_conn_cfg_set_cq(NULL, FAKE(rpma_cq)));
	INVAL(rpma_conn_cfg_get_cq(NULL, &cq));
	INVAL(rpma_conn_cfg_get_cq(cfg, NULL));
	INVAL(rpma_conn_cfg_set_connect_timeout(NULL, 1));
	INVAL(rpma_conn_cfg_set_connect_timeout(cfg, -1));
	INVAL(rpma_conn_cfg_get_connect_timeout(NULL, &ms));
	INVAL(rpma_conn_cfg_get_connect_timeout(cfg, NULL));
	INVAL(rpma_conn_cfg_set_liveness(NULL, 1));
	INVAL(rpma_conn_cfg_set_liveness(cfg, -2));
	INVAL(rpma_conn_cfg_get_liveness(NULL, &ms));
	INVAL(rpma_conn_cfg_get_liveness(cfg, NULL));
	INVAL(rpma_conn_cfg_set_owner(NULL, "me", 2));
	INVAL(rpma_conn_cfg_set_owner(cfg, NULL, 2));
	INVAL(rpma_conn_cfg_set_owner(cfg, "me", RPMA_CONN_OWNER_MAX + 1));
	INVAL(rpma_conn_cfg_get_owner(NULL, &name, &len));
	INVAL(rpma_conn_cfg_get_owner(cfg, NULL, &len));
	INVAL(rpma_conn_cfg_get_owner(cfg, &name, NULL));
	assert_null(cq);
	assert_int_equal(ms, 77);
	assert_int_equal(len, 77);
}

static void an_owner_is_kept_and_can_be_taken_back(void **state)
{
	char longest[RPMA_CONN_OWNER_MAX];
	struct rpma_conn_cfg *cfg = NULL;
	const void *name = "other";
	size_t len = 77;

	memset(longest, 'x', sizeof(longest));
	assert_int_equal(rpma_conn_cfg_new(&cfg), 0);
	assert_int_equal(rpma_conn_cfg_get_owner(cfg, &name, &len), 0);
	assert_null(name);
	assert_int_equal(len, 0);
	assert_int_equal(rpma_conn_cfg_set_owner(cfg, longest, sizeof(longest)), 0);
	assert_int_equal(rpma_conn_cfg_get_owner(cfg, &name, &len), 0);
	assert_int_equal(len, sizeof(longest));
	assert_memory_equal(name, longest, len);
	assert_int_equal(rpma_conn_cfg_set_owner(cfg, NULL, 0), 0);
	assert_int_equal(rpma_conn_cfg_get_owner(cfg, &name, &len), 0);
	assert_int_equal(len, 0);
	assert_int_equal(rpma_conn_cfg_delete(&cfg), 0);
}

static void deleting_nothing_is_no_error(void **state)
{
	struct rpma_cq *cq = NULL;
	struct rpma_provider_list *list = NULL;

	assert_int_equal(rpma_cq_delete(&cq), 0);
	assert_int_equal(rpma_provider_list_delete(&list), 0);
}

static void settings_have_defaults_and_are_kept(void **state)
{
	struct rpma_conn_cfg *cfg = NULL;
	struct rpma_cq *cq = FAKE(rpma_cq);
	int ms = 77;

	assert_int_equal(rpma_conn_cfg_new(&cfg), 0);
	assert_int_equal(rpma_conn_cfg_get_cq(cfg, &cq), 0);
	assert_null(cq);
	assert_int_equal(rpma_conn_cfg_get_connect_timeout(cfg, &ms), 0);
	assert_int_equal(ms, 0);
	assert_int_equal(rpma_conn_cfg_get_liveness(cfg, &ms), 0);
	assert_int_equal(ms, 0);

	assert_int_equal(rpma_conn_cfg_set_cq(cfg, FAKE(rpma_cq)), 0);
	assert_int_equal(rpma_conn_cfg_set_connect_timeout(cfg, 1234), 0);
	assert_int_equal(rpma_conn_cfg_set_liveness(cfg, -1), 0);
	assert_int_equal(rpma_conn_cfg_get_cq(cfg, &cq), 0);
	assert_ptr_equal(cq, poison);
	assert_int_equal(rpma_conn_cfg_get_connect_timeout(cfg, &ms), 0);
	assert_int_equal(ms, 1234);
	assert_int_equal(rpma_conn_cfg_get_liveness(cfg, &ms), 0);
	assert_int_equal(ms, -1);

	assert_int_equal(rpma_conn_cfg_set_cq(cfg, NULL), 0);
	assert_int_equal(rpma_conn_cfg_get_cq(cfg, &cq), 0);
	assert_null(cq);
	assert_int_equal(rpma_conn_cfg_delete(&cfg), 0);
}

#define POISONED(test) cmocka_unit_test_setup_teardown(test, poison_set, poison_check)

int main(void)
{
	const struct CMUnitTest tests[] = {
		POISONED(devices),
		POISONED(durability),
		POISONED(files),
		POISONED(queues_and_waits),
		POISONED(opening),
		POISONED(connections),
		POISONED(configurations),
		POISONED(settings_have_defaults_and_are_kept),
		POISONED(an_owner_is_kept_and_can_be_taken_back),
		cmocka_unit_test(deleting_nothing_is_no_error),
	};

	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
	return cmocka_run_group_tests_name("wrong arguments of a life", tests, NULL, NULL);
}
