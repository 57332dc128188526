/* SPDX-License-Identifier: BSD-3-Clause */
/* test_life.c -- connections with a common completion queue, time limits, cancellations and
 * rejections. The provider is the scripted one (script.h). */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "lib/unit.h"
#include "rpma/addr.h"
#include "rpma/conn.h"
#include "script.h"

static struct rpma_peer peer;
static struct rpma_conn_cfg *cfg;

static int setup(void **state)
{
	script_reset();
	peer = script_peer(&provider_script);
	return rpma_conn_cfg_new(&cfg);
}

static int nothing_left(void **state)
{
	rpma_conn_cfg_delete(&cfg);
	return script_peer_end(&peer) ? -1 : 0;
}

static struct rpma_conn *connected(void)
{
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;

	assert_int_equal(rpma_conn_req_new(&peer, "10.0.0.1", "7204", cfg, &req), 0);
	assert_int_equal(rpma_conn_req_connect(&req, NULL, &conn), 0);
	return conn;
}

static struct rpma_ep *listening(void)
{
	struct rpma_ep *ep = NULL;

	assert_int_equal(rpma_ep_listen(&peer, "10.0.0.1", "7204", &ep), 0);
	return ep;
}

/* --- common queues --------------------------------------------------------------------------- */

static void connections_share_a_queue_that_outlives_them(void **state)
{
	struct rpma_conn *one, *two;
	struct rpma_cq *cq = NULL, *got = NULL;

	assert_int_equal(rpma_cq_new(&peer, 100, &cq), 0);
	assert_int_equal(script.cqe, 100);
	assert_int_equal(rpma_conn_cfg_set_cq(cfg, cq), 0);
	one = connected();
	assert_ptr_equal(script.qp_attr.send_cq, cq->ibv);
	assert_ptr_equal(script.qp_attr.recv_cq, cq->ibv);
	two = connected();
	assert_ptr_equal(script.qp_attr.send_cq, cq->ibv);
	assert_int_equal(script.cqe, 100); /* no further queue was made */
	assert_int_equal(rpma_conn_get_cq(two, &got), 0);
	assert_ptr_equal(got, cq);

	assert_int_equal(rpma_conn_delete(&one), 0);
	assert_int_equal(rpma_cq_delete(&cq), RPMA_E_AGAIN);
	assert_ptr_equal(got, cq);
	assert_int_equal(rpma_conn_delete(&two), 0);
	assert_int_equal(rpma_cq_delete(&cq), 0);
	assert_null(cq);
}

static void a_failed_request_gives_the_queue_free(void **state)
{
	struct rpma_conn_req *req = NULL;
	struct rpma_cq *cq = NULL;

	assert_int_equal(rpma_cq_new(&peer, 8, &cq), 0);
	assert_int_equal(rpma_conn_cfg_set_cq(cfg, cq), 0);
	assert_int_equal(rpma_conn_cfg_set_compl_channel(cfg, true), 0);
	assert_int_equal(rpma_conn_req_new(&peer, "a", "1", cfg, &req), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_cfg_set_compl_channel(cfg, false), 0);
	assert_int_equal(rpma_conn_cfg_set_liveness(cfg, 5), 0);
	script.limits_err = EOPNOTSUPP;
	assert_int_equal(rpma_conn_req_new(&peer, "a", "1", cfg, &req), RPMA_E_NOSUPP);
	assert_null(req);
	assert_int_equal(rpma_cq_delete(&cq), 0);
}

static void a_queue_of_another_device_is_refused(void **state)
{
	struct ibv_context other = {0};
	struct ibv_pd pd = {.context = &other};
	struct rpma_peer elsewhere = {.prov = &provider_script, .pd = &pd};
	struct rpma_conn_req *req = NULL;
	struct rpma_cq *cq = NULL;

	other.ops = peer.pd->context->ops;
	assert_int_equal(rpma_cq_new(&elsewhere, 8, &cq), 0);
	assert_int_equal(rpma_conn_cfg_set_cq(cfg, cq), 0);
	assert_int_equal(rpma_conn_req_new(&peer, "a", "1", cfg, &req), RPMA_E_INVAL);
	assert_null(req);
	assert_int_equal(rpma_cq_delete(&cq), 0);
}

static void queues_that_belong_to_others_are_not_deleted(void **state)
{
	struct rpma_srq *srq = NULL;
	struct rpma_cq *cq = NULL;
	struct rpma_conn *conn = connected();

	assert_int_equal(rpma_conn_get_cq(conn, &cq), 0);
	assert_int_equal(rpma_cq_delete(&cq), RPMA_E_INVAL);
	assert_int_equal(rpma_conn_delete(&conn), 0);
	assert_int_equal(rpma_srq_new(&peer, NULL, &srq), 0);
	assert_int_equal(rpma_srq_get_rcq(srq, &cq), 0);
	assert_int_equal(rpma_cq_delete(&cq), RPMA_E_INVAL);
	assert_int_equal(rpma_srq_delete(&srq), 0);
}

/* --- limits ---------------------------------------------------------------------------------- */

static void limits_reach_the_provider_only_where_they_are_set(void **state)
{
	struct rpma_conn *conn;

	script.connect_ms = script.liveness_ms = 77;
	conn = connected();
	assert_int_equal(script.connect_ms, 77);
	assert_int_equal(rpma_conn_delete(&conn), 0);

	assert_int_equal(rpma_conn_cfg_set_connect_timeout(cfg, 1500), 0);
	conn = connected();
	assert_int_equal(script.connect_ms, 1500);
	assert_int_equal(script.liveness_ms, 0);
	assert_int_equal(rpma_conn_delete(&conn), 0);

	assert_int_equal(rpma_conn_cfg_set_liveness(cfg, -1), 0);
	conn = connected();
	assert_int_equal(script.connect_ms, 1500);
	assert_int_equal(script.liveness_ms, -1);
	assert_int_equal(rpma_conn_delete(&conn), 0);
}

/* An end that accepts does not connect, so the limit of a connect does not apply. */
static void an_accepting_end_has_no_limit_of_a_connect(void **state)
{
	struct rpma_conn_req *req = NULL;
	struct rpma_ep *ep = listening();

	script.connect_ms = script.liveness_ms = 77;
	assert_int_equal(rpma_conn_cfg_set_connect_timeout(cfg, 1500), 0);
	script_event(script.last_id, RDMA_CM_EVENT_CONNECT_REQUEST, NULL, 0);
	assert_int_equal(rpma_ep_next_conn_req(ep, cfg, &req), 0);
	assert_int_equal(script.connect_ms, 77);
	assert_int_equal(rpma_conn_req_delete(&req), 0);
	assert_int_equal(rpma_ep_shutdown(&ep), 0);
}

static void a_device_that_takes_no_limits_is_told_apart_from_a_failure(void **state)
{
	struct rpma_conn_req *req = NULL;
	struct rpma_ep *ep = listening();
	struct rdma_cm_id *listener = script.last_id;

	assert_int_equal(rpma_conn_cfg_set_liveness(cfg, 100), 0);
	script.limits_err = EOPNOTSUPP;
	assert_int_equal(rpma_conn_req_new(&peer, "a", "1", cfg, &req), RPMA_E_NOSUPP);
	script_event(listener, RDMA_CM_EVENT_CONNECT_REQUEST, NULL, 0);
	assert_int_equal(rpma_ep_next_conn_req_timeout(ep, cfg, 5, &req), RPMA_E_NOSUPP);
	assert_int_equal(script.rejects, 1);
	script.limits_err = EINVAL;
	assert_int_equal(rpma_conn_req_new(&peer, "a", "1", cfg, &req), RPMA_E_PROVIDER);
	assert_null(req);
	assert_int_equal(rpma_ep_shutdown(&ep), 0);
}

/* --- waits ----------------------------------------------------------------------------------- */

static void waits_hand_their_limit_on(void **state)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = connected();
	struct rdma_cm_id *id = script.last_id;
	struct rpma_ep *ep = listening();
	struct rpma_cq *cq = NULL;

	script.get_event_errno = EAGAIN;
	assert_int_equal(rpma_conn_next_event_timeout(conn, 11, &event), RPMA_E_NO_EVENT);
	assert_int_equal(script.timeout_ms, 11);
	assert_int_equal(rpma_ep_next_conn_req_timeout(ep, NULL, -1, &req), RPMA_E_NO_EVENT);
	assert_int_equal(script.timeout_ms, -1);
	script.get_event_errno = EIO;
	assert_int_equal(rpma_conn_next_event_timeout(conn, 12, &event), RPMA_E_PROVIDER);
	assert_int_equal(rpma_ep_next_conn_req_timeout(ep, NULL, 12, &req), RPMA_E_PROVIDER);
	assert_int_equal(event, RPMA_CONN_UNDEFINED);
	script_event(id, RDMA_CM_EVENT_UNREACHABLE, NULL, 0);
	assert_int_equal(rpma_conn_next_event_timeout(conn, 13, &event), 0);
	assert_int_equal(event, RPMA_CONN_UNREACHABLE);
	script_event(id, RDMA_CM_EVENT_ADDR_CHANGE, NULL, 0);
	assert_int_equal(rpma_conn_next_event_timeout(conn, 13, &event), RPMA_E_UNKNOWN);

	assert_int_equal(rpma_conn_get_cq(conn, &cq), 0);
	assert_int_equal(rpma_cq_wait_timeout(cq, 14), RPMA_E_NO_COMPLETION);
	assert_int_equal(script.timeout_ms, 14);
	script.announce = cq->ibv;
	assert_int_equal(rpma_cq_wait_timeout(cq, 0), 0);
	assert_int_equal(script.timeout_ms, 0);
	assert_int_equal(rpma_conn_wait_timeout(conn, 0, &cq, NULL), RPMA_E_NOT_SHARED_CHNL);
	script.announce = NULL;
	assert_int_equal(rpma_conn_delete(&conn), 0);
	assert_int_equal(rpma_ep_shutdown(&ep), 0);
}

static void what_is_no_request_is_refused_within_the_limit_too(void **state)
{
	struct rpma_conn_req *req = NULL;
	struct rpma_ep *ep = listening();

	script_event(script.last_id, RDMA_CM_EVENT_DEVICE_REMOVAL, NULL, 0);
	assert_int_equal(rpma_ep_next_conn_req_timeout(ep, NULL, 5, &req), RPMA_E_INVAL);
	assert_null(req);
	assert_int_equal(rpma_ep_shutdown(&ep), 0);
}

static void a_shared_channel_tells_of_foreign_queues_as_without_a_limit(void **state)
{
	struct rpma_cq *stranger = NULL, *cq = NULL, *own = NULL;
	struct rpma_conn *conn;
	bool is_rcq = true;

	assert_int_equal(rpma_cq_new(&peer, 4, &stranger), 0);
	assert_int_equal(rpma_conn_cfg_set_compl_channel(cfg, true), 0);
	conn = connected();
	assert_int_equal(rpma_conn_get_cq(conn, &own), 0);
	assert_int_equal(rpma_cq_wait_timeout(own, 0), RPMA_E_SHARED_CHANNEL);
	assert_int_equal(rpma_conn_wait_timeout(conn, 21, &cq, &is_rcq), RPMA_E_NO_COMPLETION);
	assert_int_equal(script.timeout_ms, 21);
	script.announce = stranger->ibv;
	assert_int_equal(rpma_conn_wait_timeout(conn, 21, &cq, &is_rcq), RPMA_E_UNKNOWN);
	script.announce = own->ibv;
	assert_int_equal(rpma_conn_wait_timeout(conn, 21, &cq, &is_rcq), 0);
	assert_ptr_equal(cq, own);
	assert_false(is_rcq);
	assert_int_equal(rpma_conn_delete(&conn), 0);
	assert_int_equal(rpma_cq_delete(&stranger), 0);
}

/* --- cancelling, and rejections -------------------------------------------------------------- */

static void giving_up_is_the_providers_to_do(void **state)
{
	struct rpma_conn *conn = connected();

	assert_int_equal(rpma_conn_cancel(conn), 0);
	assert_int_equal(script.cancels, 1);
	script.cancel_err = EOPNOTSUPP;
	assert_int_equal(rpma_conn_cancel(conn), RPMA_E_NOSUPP);
	script.cancel_err = ENODEV;
	assert_int_equal(rpma_conn_cancel(conn), RPMA_E_PROVIDER);
	assert_int_equal(rpma_conn_delete(&conn), 0);
}

static void a_rejection_goes_out_with_its_word_and_comes_in_with_it(void **state)
{
	char no[] = "no";
	struct rpma_conn_private_data out = {no, sizeof(no)}, in = {0};
	enum rpma_conn_event event;
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn;
	struct rpma_ep *ep = listening();

	script_event(script.last_id, RDMA_CM_EVENT_CONNECT_REQUEST, NULL, 0);
	assert_int_equal(rpma_ep_next_conn_req(ep, NULL, &req), 0);
	assert_int_equal(rpma_conn_req_reject(&req, &out), 0);
	assert_null(req);
	assert_int_equal(script.rejects, 1);
	assert_int_equal(script.reject_len, sizeof(no));
	assert_int_equal(rpma_ep_shutdown(&ep), 0);

	conn = connected();
	script_event(script.last_id, RDMA_CM_EVENT_REJECTED, "full", 5);
	assert_int_equal(rpma_conn_next_event(conn, &event), 0);
	assert_int_equal(event, RPMA_CONN_REJECTED);
	assert_int_equal(rpma_conn_get_private_data(conn, &in), 0);
	assert_int_equal(in.len, 5);
	assert_string_equal(in.ptr, "full");
	assert_int_equal(rpma_conn_delete(&conn), 0);
}

static void a_rejection_that_is_wrong_consumes_the_request_all_the_same(void **state)
{
	char x = 'x';
	const struct rpma_conn_private_data no_len = {&x, 0}, no_ptr = {NULL, 1};
	struct rpma_conn_req *req = NULL;
	struct rpma_ep *ep = listening();
	struct rdma_cm_id *listener = script.last_id;

	for (int i = 0; i < 2; i++) {
		script_event(listener, RDMA_CM_EVENT_CONNECT_REQUEST, NULL, 0);
		assert_int_equal(rpma_ep_next_conn_req(ep, NULL, &req), 0);
		assert_int_equal(rpma_conn_req_reject(&req, i ? &no_len : &no_ptr), RPMA_E_INVAL);
		assert_null(req);
		assert_int_equal(script.rejects, i + 1);
		assert_int_equal(script.reject_len, 0);
	}
	assert_int_equal(rpma_conn_req_new(&peer, "a", "1", NULL, &req), 0);
	assert_int_equal(rpma_conn_req_reject(&req, NULL), RPMA_E_INVAL);
	assert_null(req);
	assert_int_equal(script.rejects, 2);
	assert_int_equal(rpma_ep_shutdown(&ep), 0);
}

/* --- addresses ------------------------------------------------------------------------------- */

static void a_device_without_addresses_says_so(void **state)
{
	char addr[RPMA_ADDR_MAX] = "old";
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = connected();

	assert_int_equal(rpma_conn_get_remote_addr(conn, addr, sizeof(addr)), RPMA_E_UNKNOWN);
	assert_int_equal(rpma_conn_delete(&conn), 0);
	assert_int_equal(rpma_conn_req_new(&peer, "a", "1", NULL, &req), 0);
	assert_int_equal(rpma_conn_req_get_remote_addr(req, addr, sizeof(addr)), RPMA_E_UNKNOWN);
	assert_int_equal(rpma_conn_req_delete(&req), 0);
	assert_string_equal(addr, "old");
}

static void expect_text(const char *v6, uint32_t scope, const char *text)
{
	struct sockaddr_in6 sin6 = {
		.sin6_family = AF_INET6, .sin6_port = 99, .sin6_scope_id = scope};
	char addr[RPMA_ADDR_MAX];

	assert_int_equal(inet_pton(AF_INET6, v6, &sin6.sin6_addr), 1);
	assert_int_equal(addr_text((struct sockaddr *)&sin6, addr, sizeof(addr)), 0);
	assert_string_equal(addr, text);
}

static void addresses_are_written_in_their_shortest_form(void **state)
{
	expect_text("2001:db8:0:0:0:0:0:1", 0, "2001:db8::1");
	expect_text("::ffff:192.0.2.7", 0, "192.0.2.7");
	expect_text("fe80::1", 1, "fe80::1%lo");
}

static void an_endpoint_tells_its_port_of_either_family(void **state)
{
	struct rpma_ep *ep = listening();
	uint16_t port = 0;

	script.last_id->route.addr.src_sin.sin_family = AF_INET;
	script.last_id->route.addr.src_sin.sin_port = htons(7204);
	assert_int_equal(rpma_ep_get_port(ep, &port), 0);
	assert_int_equal(port, 7204);
	script.last_id->route.addr.src_sin6.sin6_family = AF_INET6;
	script.last_id->route.addr.src_sin6.sin6_port = htons(7205);
	assert_int_equal(rpma_ep_get_port(ep, &port), 0);
	assert_int_equal(port, 7205);
	assert_int_equal(rpma_ep_shutdown(&ep), 0);
}

#define ALONE(test) cmocka_unit_test_setup_teardown(test, setup, nothing_left)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ALONE(connections_share_a_queue_that_outlives_them),
		ALONE(a_failed_request_gives_the_queue_free),
		ALONE(a_queue_of_another_device_is_refused),
		ALONE(queues_that_belong_to_others_are_not_deleted),
		ALONE(limits_reach_the_provider_only_where_they_are_set),
		ALONE(an_accepting_end_has_no_limit_of_a_connect),
		ALONE(a_device_that_takes_no_limits_is_told_apart_from_a_failure),
		ALONE(waits_hand_their_limit_on),
		ALONE(what_is_no_request_is_refused_within_the_limit_too),
		ALONE(a_shared_channel_tells_of_foreign_queues_as_without_a_limit),
		ALONE(giving_up_is_the_providers_to_do),
		ALONE(a_rejection_goes_out_with_its_word_and_comes_in_with_it),
		ALONE(a_rejection_that_is_wrong_consumes_the_request_all_the_same),
		ALONE(a_device_without_addresses_says_so),
		ALONE(addresses_are_written_in_their_shortest_form),
		ALONE(an_endpoint_tells_its_port_of_either_family),
	};

	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
	return cmocka_run_group_tests_name("life over the seam", tests, NULL, NULL);
}
