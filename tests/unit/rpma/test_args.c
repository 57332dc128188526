/* SPDX-License-Identifier: BSD-3-Clause */
/* test_args.c -- wrong arguments for the calls of librpma 1.3. */
#include "args.h"

static void devices_and_peers(void **state)
{
	struct ibv_context *ctx = FAKE(ibv_context);
	struct rpma_peer *peer = NULL;
	int capable = 77;

	INVAL(rpma_utils_get_ibv_context(NULL, RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx));
	INVAL(rpma_utils_get_ibv_context("127.0.0.1", RPMA_UTIL_IBV_CONTEXT_REMOTE, NULL));
	INVAL(rpma_utils_get_ibv_context("127.0.0.1", (enum rpma_util_ibv_context_type)2, &ctx));
	INVAL(rpma_utils_get_ibv_context("127.0.0.1", (enum rpma_util_ibv_context_type) - 1, &ctx));
	INVAL(rpma_utils_ibv_context_is_odp_capable(NULL, &capable));
	INVAL(rpma_utils_ibv_context_is_odp_capable(ctx, NULL));
	INVAL(rpma_peer_new(NULL, &peer));
	INVAL(rpma_peer_new(ctx, NULL));
	INVAL(rpma_peer_delete(NULL));
	assert_ptr_equal(ctx, poison);
	assert_null(peer);
	assert_int_equal(capable, 77);
}

static void memory_regions(void **state)
{
	struct rpma_peer *peer = FAKE(rpma_peer);
	struct rpma_mr_local *mr = NULL;
	struct rpma_mr_remote *remote = NULL;
	char buf[64], desc[32] = {1};
	size_t size = 77;
	void *ptr = NULL;
	int type = 77;

	INVAL(rpma_mr_reg(NULL, buf, sizeof(buf), RPMA_MR_USAGE_READ_SRC, &mr));
	INVAL(rpma_mr_reg(peer, NULL, sizeof(buf), RPMA_MR_USAGE_READ_SRC, &mr));
	INVAL(rpma_mr_reg(peer, buf, 0, RPMA_MR_USAGE_READ_SRC, &mr));
	INVAL(rpma_mr_reg(peer, buf, sizeof(buf), 0, &mr));
	INVAL(rpma_mr_reg(peer, buf, sizeof(buf), 256, &mr));
	INVAL(rpma_mr_reg(peer, buf, sizeof(buf), 257, &mr));
	INVAL(rpma_mr_reg(peer, buf, sizeof(buf), -1, &mr));
	INVAL(rpma_mr_reg(peer, buf, sizeof(buf), RPMA_MR_USAGE_READ_SRC, NULL));
	INVAL(rpma_mr_dereg(NULL));
	INVAL(rpma_mr_get_descriptor(NULL, desc));
	INVAL(rpma_mr_get_descriptor(FAKE(rpma_mr_local), NULL));
	INVAL(rpma_mr_get_descriptor_size(NULL, &size));
	INVAL(rpma_mr_get_descriptor_size(FAKE(rpma_mr_local), NULL));
	INVAL(rpma_mr_get_ptr(NULL, &ptr));
	INVAL(rpma_mr_get_ptr(FAKE(rpma_mr_local), NULL));
	INVAL(rpma_mr_get_size(NULL, &size));
	INVAL(rpma_mr_get_size(FAKE(rpma_mr_local), NULL));
	INVAL(rpma_mr_remote_from_descriptor(NULL, sizeof(desc), &remote));
	INVAL(rpma_mr_remote_from_descriptor(desc, sizeof(desc), NULL));
	INVAL(rpma_mr_remote_get_size(NULL, &size));
	INVAL(rpma_mr_remote_get_size(FAKE(rpma_mr_remote), NULL));
	INVAL(rpma_mr_remote_get_flush_type(NULL, &type));
	INVAL(rpma_mr_remote_get_flush_type(FAKE(rpma_mr_remote), NULL));
	INVAL(rpma_mr_remote_delete(NULL));
	assert_null(mr);
	assert_null(remote);
	assert_null(ptr);
	assert_int_equal(size, 77);
	assert_int_equal(type, 77);
}

static void configurations(void **state)
{
	struct rpma_peer_cfg *pcfg = FAKE(rpma_peer_cfg);
	struct rpma_conn_cfg *cfg = FAKE(rpma_conn_cfg);
	struct rpma_srq_cfg *scfg = FAKE(rpma_srq_cfg);
	struct rpma_srq *srq = NULL;
	uint32_t n = 77;
	size_t size = 77;
	int ms = 77;
	bool b = true;
	char desc[1];

	INVAL(rpma_peer_cfg_new(NULL));
	INVAL(rpma_peer_cfg_delete(NULL));
	INVAL(rpma_peer_cfg_set_direct_write_to_pmem(NULL, true));
	INVAL(rpma_peer_cfg_get_direct_write_to_pmem(NULL, &b));
	INVAL(rpma_peer_cfg_get_direct_write_to_pmem(pcfg, NULL));
	INVAL(rpma_peer_cfg_get_descriptor(NULL, desc));
	INVAL(rpma_peer_cfg_get_descriptor(pcfg, NULL));
	INVAL(rpma_peer_cfg_get_descriptor_size(NULL, &size));
	INVAL(rpma_peer_cfg_get_descriptor_size(pcfg, NULL));
	INVAL(rpma_peer_cfg_from_descriptor(NULL, 1, &pcfg));
	INVAL(rpma_peer_cfg_from_descriptor(desc, 1, NULL));

	INVAL(rpma_conn_cfg_new(NULL));
	INVAL(rpma_conn_cfg_delete(NULL));
	INVAL(rpma_conn_cfg_set_timeout(NULL, 1));
	INVAL(rpma_conn_cfg_set_timeout(cfg, -1));
	INVAL(rpma_conn_cfg_get_timeout(NULL, &ms));
	INVAL(rpma_conn_cfg_get_timeout(cfg, NULL));
	INVAL(rpma_conn_cfg_set_cq_size(NULL, 1));
	INVAL(rpma_conn_cfg_get_cq_size(NULL, &n));
	INVAL(rpma_conn_cfg_get_cq_size(cfg, NULL));
	INVAL(rpma_conn_cfg_set_rcq_size(NULL, 1));
	INVAL(rpma_conn_cfg_get_rcq_size(NULL, &n));
	INVAL(rpma_conn_cfg_get_rcq_size(cfg, NULL));
	INVAL(rpma_conn_cfg_set_sq_size(NULL, 1));
	INVAL(rpma_conn_cfg_get_sq_size(NULL, &n));
	INVAL(rpma_conn_cfg_get_sq_size(cfg, NULL));
	INVAL(rpma_conn_cfg_set_rq_size(NULL, 1));
	INVAL(rpma_conn_cfg_get_rq_size(NULL, &n));
	INVAL(rpma_conn_cfg_get_rq_size(cfg, NULL));
	INVAL(rpma_conn_cfg_set_compl_channel(NULL, true));
	INVAL(rpma_conn_cfg_get_compl_channel(NULL, &b));
	INVAL(rpma_conn_cfg_get_compl_channel(cfg, NULL));
	INVAL(rpma_conn_cfg_set_srq(NULL, FAKE(rpma_srq)));
	INVAL(rpma_conn_cfg_set_srq(cfg, NULL));
	INVAL(rpma_conn_cfg_get_srq(NULL, &srq));
	INVAL(rpma_conn_cfg_get_srq(cfg, NULL));

	INVAL(rpma_srq_cfg_new(NULL));
	INVAL(rpma_srq_cfg_delete(NULL));
	INVAL(rpma_srq_cfg_set_rq_size(NULL, 1));
	INVAL(rpma_srq_cfg_get_rq_size(NULL, &n));
	INVAL(rpma_srq_cfg_get_rq_size(scfg, NULL));
	INVAL(rpma_srq_cfg_set_rcq_size(NULL, 1));
	INVAL(rpma_srq_cfg_get_rcq_size(NULL, &n));
	INVAL(rpma_srq_cfg_get_rcq_size(scfg, NULL));

	assert_null(srq);
	assert_true(b);
	assert_int_equal(n, 77);
	assert_int_equal(ms, 77);
	assert_int_equal(size, 77);
	assert_ptr_equal(pcfg, poison);
}

static void endpoints_and_requests(void **state)
{
	struct rpma_peer *peer = FAKE(rpma_peer);
	struct rpma_ep *ep = NULL;
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;
	struct rpma_conn_private_data pdata;
	int fd = 77;

	INVAL(rpma_ep_listen(NULL, "a", "1", &ep));
	INVAL(rpma_ep_listen(peer, NULL, "1", &ep));
	INVAL(rpma_ep_listen(peer, "a", NULL, &ep));
	INVAL(rpma_ep_listen(peer, "a", "1", NULL));
	INVAL(rpma_ep_shutdown(NULL));
	INVAL(rpma_ep_get_fd(NULL, &fd));
	INVAL(rpma_ep_get_fd(FAKE(rpma_ep), NULL));
	INVAL(rpma_ep_next_conn_req(NULL, NULL, &req));
	INVAL(rpma_ep_next_conn_req(FAKE(rpma_ep), NULL, NULL));
	INVAL(rpma_conn_req_new(NULL, "a", "1", NULL, &req));
	INVAL(rpma_conn_req_new(peer, NULL, "1", NULL, &req));
	INVAL(rpma_conn_req_new(peer, "a", NULL, NULL, &req));
	INVAL(rpma_conn_req_new(peer, "a", "1", NULL, NULL));
	INVAL(rpma_conn_req_delete(NULL));
	INVAL(rpma_conn_req_connect(NULL, NULL, &conn));
	INVAL(rpma_conn_req_connect(&req, NULL, &conn));
	INVAL(rpma_conn_req_recv(NULL, FAKE(rpma_mr_local), 0, 0, NULL));
	INVAL(rpma_conn_req_recv(FAKE(rpma_conn_req), NULL, 0, 0, NULL));
	INVAL(rpma_conn_req_get_private_data(NULL, &pdata));
	INVAL(rpma_conn_req_get_private_data(FAKE(rpma_conn_req), NULL));
	assert_null(ep);
	assert_null(req);
	assert_null(conn);
	assert_int_equal(fd, 77);
}

static void connections(void **state)
{
	struct rpma_conn *conn = FAKE(rpma_conn);
	struct rpma_conn_private_data pdata;
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	struct rpma_cq *cq = NULL;
	uint32_t num = 77;
	bool is_rcq;
	int fd = 77;

	INVAL(rpma_conn_get_event_fd(NULL, &fd));
	INVAL(rpma_conn_get_event_fd(conn, NULL));
	INVAL(rpma_conn_next_event(NULL, &event));
	INVAL(rpma_conn_next_event(conn, NULL));
	INVAL(rpma_conn_get_private_data(NULL, &pdata));
	INVAL(rpma_conn_get_private_data(conn, NULL));
	INVAL(rpma_conn_apply_remote_peer_cfg(NULL, FAKE(rpma_peer_cfg)));
	INVAL(rpma_conn_apply_remote_peer_cfg(conn, NULL));
	INVAL(rpma_conn_get_qp_num(NULL, &num));
	INVAL(rpma_conn_get_qp_num(conn, NULL));
	INVAL(rpma_conn_get_cq(NULL, &cq));
	INVAL(rpma_conn_get_cq(conn, NULL));
	INVAL(rpma_conn_get_rcq(NULL, &cq));
	INVAL(rpma_conn_get_rcq(conn, NULL));
	INVAL(rpma_conn_get_compl_fd(NULL, &fd));
	INVAL(rpma_conn_get_compl_fd(conn, NULL));
	INVAL(rpma_conn_wait(NULL, 0, &cq, &is_rcq));
	INVAL(rpma_conn_wait(conn, 0, NULL, &is_rcq));
	INVAL(rpma_conn_disconnect(NULL));
	INVAL(rpma_conn_delete(NULL));
	assert_null(cq);
	assert_int_equal(fd, 77);
	assert_int_equal(num, 77);
	assert_int_equal(event, RPMA_CONN_UNDEFINED);
}

static void operations(void **state)
{
	struct rpma_conn *conn = FAKE(rpma_conn);
	struct rpma_mr_local *mr = FAKE(rpma_mr_local);
	struct rpma_mr_remote *remote = FAKE(rpma_mr_remote);
	const char word[8] = {0};

	INVAL(rpma_read(NULL, mr, 0, remote, 0, 1, ALWAYS, NULL));
	INVAL(rpma_read(conn, mr, 0, remote, 0, 1, 0, NULL));
	INVAL(rpma_read(conn, NULL, 0, remote, 0, 0, ALWAYS, NULL));
	INVAL(rpma_read(conn, mr, 0, NULL, 0, 0, ALWAYS, NULL));
	INVAL(rpma_read(conn, NULL, 1, NULL, 0, 0, ALWAYS, NULL));
	INVAL(rpma_read(conn, NULL, 0, NULL, 1, 0, ALWAYS, NULL));
	INVAL(rpma_read(conn, NULL, 0, NULL, 0, 1, ALWAYS, NULL));

	INVAL(rpma_write(NULL, remote, 0, mr, 0, 1, ALWAYS, NULL));
	INVAL(rpma_write(conn, remote, 0, mr, 0, 1, 0, NULL));
	INVAL(rpma_write(conn, NULL, 0, mr, 0, 0, ALWAYS, NULL));
	INVAL(rpma_write(conn, remote, 0, NULL, 0, 0, ALWAYS, NULL));
	INVAL(rpma_write(conn, NULL, 1, NULL, 0, 0, ALWAYS, NULL));
	INVAL(rpma_write(conn, NULL, 0, NULL, 1, 0, ALWAYS, NULL));
	INVAL(rpma_write(conn, NULL, 0, NULL, 0, 1, ALWAYS, NULL));

	INVAL(rpma_write_with_imm(NULL, remote, 0, mr, 0, 1, ALWAYS, 0, NULL));
	INVAL(rpma_write_with_imm(conn, remote, 0, mr, 0, 1, 0, 0, NULL));
	INVAL(rpma_write_with_imm(conn, NULL, 0, mr, 0, 0, ALWAYS, 0, NULL));
	INVAL(rpma_write_with_imm(conn, remote, 0, NULL, 0, 0, ALWAYS, 0, NULL));
	INVAL(rpma_write_with_imm(conn, NULL, 1, NULL, 0, 0, ALWAYS, 0, NULL));
	INVAL(rpma_write_with_imm(conn, NULL, 0, NULL, 1, 0, ALWAYS, 0, NULL));
	INVAL(rpma_write_with_imm(conn, NULL, 0, NULL, 0, 1, ALWAYS, 0, NULL));

	INVAL(rpma_atomic_write(NULL, remote, 0, word, ALWAYS, NULL));
	INVAL(rpma_atomic_write(conn, NULL, 0, word, ALWAYS, NULL));
	INVAL(rpma_atomic_write(conn, remote, 0, NULL, ALWAYS, NULL));
	INVAL(rpma_atomic_write(conn, remote, 0, word, 0, NULL));
	for (size_t offset = 1; offset < RPMA_ATOMIC_WRITE_ALIGNMENT; offset++)
		INVAL(rpma_atomic_write(conn, remote, offset, word, ALWAYS, NULL));

	INVAL(rpma_flush(NULL, remote, 0, 1, PERSISTENT, ALWAYS, NULL));
	INVAL(rpma_flush(conn, NULL, 0, 1, PERSISTENT, ALWAYS, NULL));
	INVAL(rpma_flush(conn, remote, 0, 1, PERSISTENT, 0, NULL));
}

static void messages(void **state)
{
	struct rpma_conn *conn = FAKE(rpma_conn);
	struct rpma_mr_local *mr = FAKE(rpma_mr_local);

	INVAL(rpma_send(NULL, mr, 0, 1, ALWAYS, NULL));
	INVAL(rpma_send(conn, mr, 0, 1, 0, NULL));
	INVAL(rpma_send(conn, NULL, 1, 0, ALWAYS, NULL));
	INVAL(rpma_send(conn, NULL, 0, 1, ALWAYS, NULL));
	INVAL(rpma_send_with_imm(NULL, mr, 0, 1, ALWAYS, 0, NULL));
	INVAL(rpma_send_with_imm(conn, mr, 0, 1, 0, 0, NULL));
	INVAL(rpma_send_with_imm(conn, NULL, 1, 0, ALWAYS, 0, NULL));
	INVAL(rpma_send_with_imm(conn, NULL, 0, 1, ALWAYS, 0, NULL));
	INVAL(rpma_recv(NULL, mr, 0, 1, NULL));
	INVAL(rpma_recv(conn, NULL, 1, 0, NULL));
	INVAL(rpma_recv(conn, NULL, 0, 1, NULL));
}

static void shared_receive_queues(void **state)
{
	struct rpma_srq *srq = NULL;
	struct rpma_cq *cq = NULL;

	INVAL(rpma_srq_new(NULL, NULL, &srq));
	INVAL(rpma_srq_new(FAKE(rpma_peer), NULL, NULL));
	INVAL(rpma_srq_delete(NULL));
	INVAL(rpma_srq_recv(NULL, FAKE(rpma_mr_local), 0, 1, NULL));
	INVAL(rpma_srq_recv(FAKE(rpma_srq), NULL, 1, 0, NULL));
	INVAL(rpma_srq_recv(FAKE(rpma_srq), NULL, 0, 1, NULL));
	INVAL(rpma_srq_get_rcq(NULL, &cq));
	INVAL(rpma_srq_get_rcq(FAKE(rpma_srq), NULL));
	assert_null(srq);
	assert_null(cq);
}

static void completion_queues(void **state)
{
	struct rpma_cq *cq = FAKE(rpma_cq);
	struct ibv_wc wc[2];
	int n = 77;

	INVAL(rpma_cq_get_fd(NULL, &n));
	INVAL(rpma_cq_get_fd(cq, NULL));
	INVAL(rpma_cq_wait(NULL));
	INVAL(rpma_cq_get_wc(NULL, 1, wc, &n));
	INVAL(rpma_cq_get_wc(cq, 1, NULL, &n));
	INVAL(rpma_cq_get_wc(cq, 0, wc, &n));
	INVAL(rpma_cq_get_wc(cq, -1, wc, &n));
	INVAL(rpma_cq_get_wc(cq, 2, wc, NULL));
	assert_int_equal(n, 77);
}

static void log_settings(void **state)
{
	enum rpma_log_level level;

	INVAL(rpma_log_set_threshold(RPMA_LOG_THRESHOLD_MAX, RPMA_LOG_LEVEL_INFO));
	INVAL(rpma_log_set_threshold((enum rpma_log_threshold) - 1, RPMA_LOG_LEVEL_INFO));
	INVAL(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, (enum rpma_log_level) - 2));
	INVAL(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, (enum rpma_log_level)6));
	INVAL(rpma_log_get_threshold(RPMA_LOG_THRESHOLD_MAX, &level));
	INVAL(rpma_log_get_threshold((enum rpma_log_threshold) - 1, &level));
	INVAL(rpma_log_get_threshold(RPMA_LOG_THRESHOLD, NULL));
}

static void deleting_nothing_is_no_error(void **state)
{
	struct rpma_peer *peer = NULL;
	struct rpma_mr_local *mr = NULL;
	struct rpma_mr_remote *remote = NULL;
	struct rpma_peer_cfg *pcfg = NULL;
	struct rpma_conn_cfg *cfg = NULL;
	struct rpma_srq_cfg *scfg = NULL;
	struct rpma_srq *srq = NULL;
	struct rpma_ep *ep = NULL;
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;

	assert_int_equal(rpma_peer_delete(&peer), 0);
	assert_int_equal(rpma_mr_dereg(&mr), 0);
	assert_int_equal(rpma_mr_remote_delete(&remote), 0);
	assert_int_equal(rpma_peer_cfg_delete(&pcfg), 0);
	assert_int_equal(rpma_conn_cfg_delete(&cfg), 0);
	assert_int_equal(rpma_srq_cfg_delete(&scfg), 0);
	assert_int_equal(rpma_srq_delete(&srq), 0);
	assert_int_equal(rpma_ep_shutdown(&ep), 0);
	assert_int_equal(rpma_conn_req_delete(&req), 0);
	assert_int_equal(rpma_conn_delete(&conn), 0);
}

#define POISONED(test) cmocka_unit_test_setup_teardown(test, poison_set, poison_check)

int main(void)
{
	const struct CMUnitTest tests[] = {
		POISONED(devices_and_peers),
		POISONED(memory_regions),
		POISONED(configurations),
		POISONED(endpoints_and_requests),
		POISONED(connections),
		POISONED(operations),
		POISONED(messages),
		POISONED(shared_receive_queues),
		POISONED(completion_queues),
		cmocka_unit_test(log_settings),
		cmocka_unit_test(deleting_nothing_is_no_error),
	};

	return cmocka_run_group_tests_name("wrong arguments are refused", tests, NULL, NULL);
}
