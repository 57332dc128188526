/* SPDX-License-Identifier: BSD-3-Clause */
/* test_conn.c -- requests, endpoints, events and private data, on the scripted provider. */
#include <errno.h>
#include <string.h>

#include "lib/unit.h"
#include "script.h"

static struct rpma_peer peer;

static int setup(void **state)
{
	script_reset();
	peer = script_peer(&provider_script);
	return 0;
}

static int nothing_left(void **state)
{
	return script_peer_end(&peer) ? -1 : 0;
}

static struct rpma_conn *connected(const struct rpma_conn_cfg *cfg)
{
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;

	assert_int_equal(rpma_conn_req_new(&peer, "10.0.0.1", "7204", cfg, &req), 0);
	assert_int_equal(rpma_conn_req_connect(&req, NULL, &conn), 0);
	assert_null(req);
	return conn;
}

/* Make an endpoint that has received a request; deleting the endpoint also deletes the request. */
static struct rpma_ep *requested(const void *pdata, uint8_t len, struct rpma_conn_req **req)
{
	struct rpma_ep *ep = NULL;

	assert_int_equal(rpma_ep_listen(&peer, "10.0.0.1", "7204", &ep), 0);
	script_event(script.last_id, RDMA_CM_EVENT_CONNECT_REQUEST, pdata, len);
	assert_int_equal(rpma_ep_next_conn_req(ep, NULL, req), 0);
	return ep;
}

static enum rpma_conn_event event_after(struct rpma_conn *conn, enum rdma_cm_event_type type)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;

	script_event(script.last_id, type, NULL, 0);
	assert_int_equal(rpma_conn_next_event(conn, &event), 0);
	return event;
}

static void a_connection_is_asked_for_with_the_documented_parameters(void **state)
{
	struct rpma_conn *conn = connected(NULL);
	uint32_t qp_num = 0;

	assert_int_equal(script.connects, 1);
	assert_int_equal(script.param.responder_resources, RDMA_MAX_RESP_RES);
	assert_int_equal(script.param.initiator_depth, RDMA_MAX_INIT_DEPTH);
	assert_int_equal(script.param.flow_control, 1);
	assert_int_equal(script.param.retry_count, 7);
	assert_int_equal(script.param.rnr_retry_count, 7);
	assert_int_equal(script.param.private_data_len, 0);

	assert_int_equal(script.qp_attr.qp_type, IBV_QPT_RC);
	assert_int_equal(script.qp_attr.comp_mask, IBV_QP_INIT_ATTR_PD);
	assert_ptr_equal(script.qp_attr.pd, peer.pd);
	assert_int_equal(script.qp_attr.cap.max_send_wr, 10);
	assert_int_equal(script.qp_attr.cap.max_recv_wr, 10);
	assert_int_equal(script.qp_attr.cap.max_send_sge, RPMA_SEND_SEGMENTS_MAX);
	assert_int_equal(script.qp_attr.cap.max_recv_sge, 1);
	assert_int_equal(script.qp_attr.cap.max_inline_data, 8);
	assert_int_equal(script.qp_attr.sq_sig_all, 0);
	assert_ptr_equal(script.qp_attr.send_cq, script.qp_attr.recv_cq);
	assert_null(script.qp_attr.srq);

	assert_int_equal(rpma_conn_get_qp_num(conn, &qp_num), 0);
	assert_int_equal(qp_num, 7);
	assert_int_equal(rpma_conn_delete(&conn), 0);
	assert_null(conn);
}

static void private_data_goes_out_and_comes_in(void **state)
{
	char hello[] = "hello";
	struct rpma_conn_private_data out = {hello, sizeof(hello)}, in;
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;
	enum rpma_conn_event event;

	assert_int_equal(rpma_conn_req_new(&peer, "a", "1", NULL, &req), 0);
	assert_int_equal(rpma_conn_req_get_private_data(req, &in), 0);
	assert_null(in.ptr);
	assert_int_equal(in.len, 0);
	assert_int_equal(rpma_conn_req_connect(&req, &out, &conn), 0);
	assert_int_equal(script.param.private_data_len, 6);
	assert_string_equal(script.param.private_data, "hello");

	script_event(script.last_id, RDMA_CM_EVENT_ESTABLISHED, "answer", 7);
	assert_int_equal(rpma_conn_next_event(conn, &event), 0);
	assert_int_equal(event, RPMA_CONN_ESTABLISHED);
	assert_int_equal(rpma_conn_get_private_data(conn, &in), 0);
	assert_int_equal(in.len, 7);
	assert_string_equal(in.ptr, "answer");
	assert_int_equal(rpma_conn_delete(&conn), 0);
}

static void the_accepting_side_keeps_what_came_with_the_request(void **state)
{
	struct rpma_conn_private_data in;
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;
	struct rpma_ep *ep = requested("asked", 6, &req);
	enum rpma_conn_event event;

	assert_int_equal(rpma_conn_req_get_private_data(req, &in), 0);
	assert_int_equal(in.len, 6);
	assert_int_equal(rpma_conn_req_connect(&req, NULL, &conn), 0);
	assert_int_equal(script.accepts, 1);
	/* A connection outlives its endpoint, and has its own channel. */
	assert_int_equal(rpma_ep_shutdown(&ep), 0);
	script_event(script.last_id, RDMA_CM_EVENT_ESTABLISHED, "other", 6);
	assert_int_equal(rpma_conn_next_event(conn, &event), 0);
	assert_int_equal(rpma_conn_get_private_data(conn, &in), 0);
	assert_string_equal(in.ptr, "asked");
	assert_int_equal(rpma_conn_delete(&conn), 0);
}

static void a_request_that_is_deleted_is_rejected_and_its_id_gone(void **state)
{
	struct rpma_conn_req *req = NULL;
	struct rpma_ep *ep = requested(NULL, 0, &req);

	assert_int_equal(rpma_conn_req_delete(&req), 0);
	assert_null(req);
	assert_int_equal(script.rejects, 1);
	assert_int_equal(rpma_ep_shutdown(&ep), 0);
	assert_null(ep);
}

static void wrong_private_data_consumes_the_request(void **state)
{
	char byte;
	struct rpma_conn_private_data bad[] = {{NULL, 5}, {&byte, 0}};
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(rpma_conn_req_new(&peer, "a", "1", NULL, &req), 0);
		assert_int_equal(rpma_conn_req_connect(&req, &bad[i], &conn), RPMA_E_INVAL);
		assert_null(req);
		assert_null(conn);
	}
	assert_int_equal(rpma_conn_req_new(&peer, "a", "1", NULL, &req), 0);
	assert_int_equal(rpma_conn_req_connect(&req, NULL, NULL), RPMA_E_INVAL);
	assert_null(req);
	assert_int_equal(script.connects, 0);
}

static void no_event_is_told_apart_from_a_failure(void **state)
{
	static const struct {
		int err, ret;
	} table[] = {{EAGAIN, RPMA_E_NO_EVENT}, {ENODATA, RPMA_E_NO_EVENT}, {EIO, RPMA_E_PROVIDER}};
	struct rpma_conn *conn = connected(NULL);
	struct rpma_conn_req *req = NULL;
	enum rpma_conn_event event;
	struct rpma_ep *ep = NULL;
	int fd = -1;

	assert_int_equal(rpma_ep_listen(&peer, "a", "1", &ep), 0);
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		script.get_event_errno = table[i].err;
		assert_int_equal(rpma_conn_next_event(conn, &event), table[i].ret);
		assert_int_equal(rpma_ep_next_conn_req(ep, NULL, &req), table[i].ret);
	}
	assert_int_equal(rpma_ep_get_fd(ep, &fd), 0);
	assert_true(fd > 0);
	assert_int_equal(rpma_ep_shutdown(&ep), 0);
	assert_int_equal(rpma_conn_delete(&conn), 0);
}

static void an_endpoint_refuses_events_that_are_no_requests(void **state)
{
	struct rpma_conn_req *req = NULL;
	struct rpma_ep *ep = NULL;

	assert_int_equal(rpma_ep_listen(&peer, "a", "1", &ep), 0);
	script_event(script.last_id, RDMA_CM_EVENT_DISCONNECTED, NULL, 0);
	assert_int_equal(rpma_ep_next_conn_req(ep, NULL, &req), RPMA_E_INVAL);
	assert_null(req);
	assert_int_equal(rpma_ep_shutdown(&ep), 0);
}

static void events_of_rdma_cm_have_their_names(void **state)
{
	static const struct {
		enum rdma_cm_event_type cm;
		enum rpma_conn_event event;
	} table[] = {
		{RDMA_CM_EVENT_ESTABLISHED, RPMA_CONN_ESTABLISHED},
		{RDMA_CM_EVENT_CONNECT_ERROR, RPMA_CONN_LOST},
		{RDMA_CM_EVENT_DEVICE_REMOVAL, RPMA_CONN_LOST},
		{RDMA_CM_EVENT_DISCONNECTED, RPMA_CONN_CLOSED},
		{RDMA_CM_EVENT_TIMEWAIT_EXIT, RPMA_CONN_CLOSED},
		{RDMA_CM_EVENT_REJECTED, RPMA_CONN_REJECTED},
		{RDMA_CM_EVENT_UNREACHABLE, RPMA_CONN_UNREACHABLE},
	};
	enum rpma_conn_event event = (enum rpma_conn_event)77;
	struct rpma_conn *conn = connected(NULL);
	int fd = -1;

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		assert_int_equal(event_after(conn, table[i].cm), table[i].event);
	script_event(script.last_id, RDMA_CM_EVENT_ADDR_CHANGE, NULL, 0);
	assert_int_equal(rpma_conn_next_event(conn, &event), RPMA_E_UNKNOWN);
	assert_int_equal(event, 77);
	assert_int_equal(rpma_conn_get_event_fd(conn, &fd), 0);
	assert_true(fd > 0);
	assert_int_equal(rpma_conn_disconnect(conn), 0);
	assert_int_equal(rpma_conn_delete(&conn), 0);
}

static struct rpma_conn_cfg *config(uint32_t rcq_size, bool shared, struct rpma_srq *srq)
{
	struct rpma_conn_cfg *cfg = NULL;

	assert_int_equal(rpma_conn_cfg_new(&cfg), 0);
	assert_int_equal(rpma_conn_cfg_set_rcq_size(cfg, rcq_size), 0);
	assert_int_equal(rpma_conn_cfg_set_compl_channel(cfg, shared), 0);
	if (srq)
		assert_int_equal(rpma_conn_cfg_set_srq(cfg, srq), 0);
	return cfg;
}

static void receives_may_complete_in_a_queue_of_their_own(void **state)
{
	struct rpma_conn_cfg *cfg = config(4, false, NULL);
	struct rpma_conn *conn = connected(cfg);
	struct rpma_cq *cq = NULL, *rcq = NULL;
	int fd = 77;

	assert_ptr_not_equal(script.qp_attr.send_cq, script.qp_attr.recv_cq);
	assert_int_equal(rpma_conn_get_cq(conn, &cq), 0);
	assert_int_equal(rpma_conn_get_rcq(conn, &rcq), 0);
	assert_non_null(rcq);
	assert_int_equal(rpma_conn_get_compl_fd(conn, &fd), RPMA_E_NOT_SHARED_CHNL);
	assert_int_equal(rpma_conn_wait(conn, 0, &cq, NULL), RPMA_E_NOT_SHARED_CHNL);
	assert_int_equal(fd, 77);
	assert_int_equal(rpma_conn_delete(&conn), 0);
	assert_int_equal(rpma_conn_cfg_delete(&cfg), 0);
}

static void a_shared_channel_tells_which_queue_has_something(void **state)
{
	struct rpma_conn_cfg *cfg = config(4, true, NULL);
	struct rpma_conn *conn = connected(cfg);
	struct rpma_cq *cq, *rcq, *found = NULL;
	struct ibv_cq foreign = {0};
	bool is_rcq = false;
	int fd = -1, cq_fd = -2;

	assert_int_equal(rpma_conn_get_cq(conn, &cq), 0);
	assert_int_equal(rpma_conn_get_rcq(conn, &rcq), 0);
	assert_int_equal(rpma_conn_get_compl_fd(conn, &fd), 0);
	assert_int_equal(rpma_cq_get_fd(cq, &cq_fd), 0);
	assert_int_equal(fd, cq_fd);
	assert_int_equal(rpma_cq_wait(cq), RPMA_E_SHARED_CHANNEL);
	assert_int_equal(rpma_conn_wait(conn, 0, &found, &is_rcq), RPMA_E_NO_COMPLETION);

	script.announce = script.qp_attr.recv_cq;
	assert_int_equal(rpma_conn_wait(conn, 0, &found, &is_rcq), 0);
	assert_ptr_equal(found, rcq);
	assert_true(is_rcq);
	script.announce = script.qp_attr.send_cq;
	assert_int_equal(rpma_conn_wait(conn, 0, &found, &is_rcq), 0);
	assert_ptr_equal(found, cq);
	assert_false(is_rcq);
	assert_int_equal(rpma_conn_wait(conn, 0, &found, NULL), 0);

	script.announce = &foreign;
	assert_int_equal(rpma_conn_wait(conn, 0, &found, &is_rcq), RPMA_E_UNKNOWN);
	assert_int_equal(foreign.comp_events_completed, 0);
	assert_int_equal(rpma_conn_delete(&conn), 0);
	assert_int_equal(rpma_conn_cfg_delete(&cfg), 0);
}

static void an_srq_with_its_own_queue_replaces_the_connections(void **state)
{
	struct rpma_srq *srq = NULL;
	struct rpma_conn_req *req = NULL;
	struct rpma_conn_cfg *cfg, *shared;
	struct rpma_conn *conn;
	struct rpma_cq *rcq;

	assert_int_equal(rpma_srq_new(&peer, NULL, &srq), 0);
	cfg = config(4, false, srq);
	shared = config(0, true, srq);
	conn = connected(cfg);
	assert_non_null(script.qp_attr.srq);
	assert_ptr_not_equal(script.qp_attr.send_cq, script.qp_attr.recv_cq);
	assert_int_equal(rpma_conn_get_rcq(conn, &rcq), 0);
	assert_null(rcq);
	assert_int_equal(rpma_conn_req_new(&peer, "a", "1", shared, &req), RPMA_E_INVAL);
	assert_null(req);
	assert_int_equal(rpma_conn_delete(&conn), 0);
	assert_int_equal(rpma_srq_delete(&srq), 0);
	assert_int_equal(rpma_conn_cfg_delete(&cfg), 0);
	assert_int_equal(rpma_conn_cfg_delete(&shared), 0);
}

static void a_receive_may_be_posted_before_the_connection_exists(void **state)
{
	struct rpma_conn_req *req = NULL;
	struct rpma_mr_local *mr = NULL;
	char buf[32];

	assert_int_equal(rpma_mr_reg(&peer, buf, sizeof(buf), RPMA_MR_USAGE_RECV, &mr), 0);
	assert_int_equal(rpma_conn_req_new(&peer, "a", "1", NULL, &req), 0);
	assert_int_equal(rpma_conn_req_recv(req, mr, 4, 8, buf), 0);
	assert_true(script.recv.wr_id == (uintptr_t)buf);
	assert_true(script.sge.addr == (uintptr_t)buf + 4);
	assert_int_equal(script.sge.length, 8);
	assert_int_equal(rpma_conn_req_recv(req, mr, 0, 8, NULL), 0);
	assert_int_equal(rpma_conn_req_delete(&req), 0);
	assert_int_equal(script.rejects, 0);
	assert_int_equal(rpma_mr_dereg(&mr), 0);
}

#define OVER_SEAM(test) cmocka_unit_test_setup_teardown(test, setup, nothing_left)

int main(void)
{
	const struct CMUnitTest tests[] = {
		OVER_SEAM(a_connection_is_asked_for_with_the_documented_parameters),
		OVER_SEAM(private_data_goes_out_and_comes_in),
		OVER_SEAM(the_accepting_side_keeps_what_came_with_the_request),
		OVER_SEAM(a_request_that_is_deleted_is_rejected_and_its_id_gone),
		OVER_SEAM(wrong_private_data_consumes_the_request),
		OVER_SEAM(no_event_is_told_apart_from_a_failure),
		OVER_SEAM(an_endpoint_refuses_events_that_are_no_requests),
		OVER_SEAM(events_of_rdma_cm_have_their_names),
		OVER_SEAM(receives_may_complete_in_a_queue_of_their_own),
		OVER_SEAM(a_shared_channel_tells_which_queue_has_something),
		OVER_SEAM(an_srq_with_its_own_queue_replaces_the_connections),
		OVER_SEAM(a_receive_may_be_posted_before_the_connection_exists),
	};

	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
	return cmocka_run_group_tests_name("connections", tests, NULL, NULL);
}
