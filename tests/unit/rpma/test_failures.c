/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_failures.c -- both sides of a connection in one thread, while every call of the provider and
 * every allocation fails once. A call must then return an error, no object may be left, and no
 * output may be changed.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/unit.h"
#include "provider/fault.h"
#include "script.h"

static struct rpma_peer peer;

/* allocations_left: allocations until one fails. The linker replaces malloc and calloc by the
 * functions below. */
static int allocations_left = -1;

#pragma GCC visibility push(default)
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
#pragma GCC visibility pop

static bool allocation_fails(void)
{
	return allocations_left >= 0 && allocations_left-- == 0;
}

void *__wrap_malloc(size_t size)
{
	return allocation_fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return allocation_fails() ? NULL : __real_calloc(n, size);
}

static struct rpma_conn_cfg *rich_config(void)
{
	struct rpma_conn_cfg *cfg = NULL;

	assert_int_equal(rpma_conn_cfg_new(&cfg), 0);
	assert_int_equal(rpma_conn_cfg_set_rcq_size(cfg, 4), 0);
	assert_int_equal(rpma_conn_cfg_set_compl_channel(cfg, true), 0);
	return cfg;
}

static int event_for_last_id(enum rdma_cm_event_type type)
{
	script_event(script.last_id, type, "x", 1);
	return 0;
}

#define THEN(call) ret = ret ? ret : (call)

/* Connect, listen, accept and post. The first failure ends the sequence, and all objects are
 * released. */
static int live_once(const struct rpma_conn_cfg *cfg)
{
	static char buf[64];
	struct rpma_mr_local *mr = NULL;
	struct rpma_srq *srq = NULL;
	struct rpma_ep *ep = NULL;
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *active = NULL, *passive = NULL;
	struct rpma_batch *batch = NULL;
	struct rpma_segment part;
	enum rpma_conn_event event;
	int ret = 0;

	THEN(rpma_mr_reg(&peer, buf, sizeof(buf), 0xff, &mr));
	THEN(rpma_srq_new(&peer, NULL, &srq));
	THEN(rpma_srq_recv(srq, mr, 0, 8, NULL));
	THEN(rpma_conn_req_new(&peer, "a", "1", cfg, &req));
	THEN(rpma_conn_req_recv(req, mr, 0, 8, NULL));
	THEN(rpma_conn_req_connect(&req, NULL, &active));
	THEN(event_for_last_id(RDMA_CM_EVENT_ESTABLISHED));
	THEN(rpma_conn_next_event(active, &event));
	THEN(rpma_send(active, mr, 0, 8, RPMA_F_COMPLETION_ALWAYS, NULL));
	part = (struct rpma_segment){mr, 0, 8};
	THEN(rpma_batch_new(active, 2, &batch));
	THEN(rpma_batch_send(batch, &part, 1, RPMA_F_COMPLETION_ALWAYS, NULL));
	THEN(rpma_batch_post(batch));
	THEN(rpma_ep_listen(&peer, "a", "1", &ep));
	THEN(event_for_last_id(RDMA_CM_EVENT_CONNECT_REQUEST));
	THEN(rpma_ep_next_conn_req(ep, cfg, &req));
	THEN(rpma_conn_req_connect(&req, NULL, &passive));
	THEN(rpma_conn_disconnect(passive));
	THEN(rpma_conn_delete(&passive));
	THEN(rpma_conn_delete(&active));
	THEN(rpma_srq_delete(&srq));

	rpma_batch_delete(&batch);
	rpma_conn_req_delete(&req);
	rpma_conn_delete(&passive);
	rpma_conn_delete(&active);
	rpma_srq_delete(&srq);
	rpma_ep_shutdown(&ep);
	rpma_mr_dereg(&mr);
	assert_null(req);
	assert_null(passive);
	assert_null(active);
	assert_null(ep);
	assert_null(mr);
	return ret;
}

static void whatever_call_fails_nothing_is_left(void **state)
{
	struct rpma_conn_cfg *cfg = rich_config();
	unsigned int nth;

	for (nth = 1;; nth++) {
		int ret;

		script_reset();
		peer = script_peer(provider_fault_around(&provider_script));
		fault_decorate_context(peer.pd->context);
		fault_arm("*", nth, EIO);
		ret = live_once(cfg);
		if (script_peer_end(&peer))
			fail_msg("failing call %u left %d objects", nth, script.live);
		if (!fault_fired())
			break;
		if (ret && ret != RPMA_E_PROVIDER)
			fail_msg("failing call %u gave %d", nth, ret);
		fault_disarm();
	}
	fault_disarm();
	/*
	 * A complete sequence has some dozens of calls; if there were fewer, some code was not
	 * reached.
	 */
	assert_in_range(nth, 50, 200);
	assert_int_equal(rpma_conn_cfg_delete(&cfg), 0);
}

static void whatever_allocation_fails_nothing_is_left(void **state)
{
	struct rpma_conn_cfg *cfg = rich_config();
	int nth, ret;

	for (nth = 0;; nth++) {
		script_reset();
		peer = script_peer(&provider_script);
		allocations_left = nth;
		ret = live_once(cfg);
		if (script_peer_end(&peer))
			fail_msg("failing allocation %d left %d objects", nth, script.live);
		if (allocations_left >= 0)
			break;
		assert_int_equal(ret, RPMA_E_NOMEM);
	}
	allocations_left = -1;
	assert_int_equal(ret, 0);
	assert_in_range(nth, 10, 100);
	assert_int_equal(rpma_conn_cfg_delete(&cfg), 0);
}

static void configurations_and_descriptors_tell_of_missing_memory(void **state)
{
	struct rpma_conn_cfg *cfg = (struct rpma_conn_cfg *)state;
	struct rpma_srq_cfg *scfg = (struct rpma_srq_cfg *)state;
	struct rpma_peer_cfg *pcfg = NULL;
	struct rpma_mr_remote *mr = NULL;
	unsigned char desc[21] = {[20] = 1};

	allocations_left = 0;
	assert_int_equal(rpma_conn_cfg_new(&cfg), RPMA_E_NOMEM);
	assert_null(cfg);
	allocations_left = 0;
	assert_int_equal(rpma_srq_cfg_new(&scfg), RPMA_E_NOMEM);
	assert_null(scfg);
	allocations_left = 0;
	assert_int_equal(rpma_peer_cfg_new(&pcfg), RPMA_E_NOMEM);
	allocations_left = 0;
	assert_int_equal(rpma_peer_cfg_from_descriptor(desc, 1, &pcfg), RPMA_E_NOMEM);
	assert_null(pcfg);
	allocations_left = 0;
	assert_int_equal(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &mr), RPMA_E_NOMEM);
	assert_null(mr);
	allocations_left = -1;
}

static void a_request_that_cannot_be_served_is_rejected(void **state)
{
	static const char *const calls[] = {"create_cq", "create_comp_channel", "create_qp_ex",
					    "req_notify_cq"};

	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		struct rpma_conn_req *req = NULL;
		struct rpma_ep *ep = NULL;

		script_reset();
		peer = script_peer(provider_fault_around(&provider_script));
		fault_decorate_context(peer.pd->context);
		assert_int_equal(rpma_ep_listen(&peer, "a", "1", &ep), 0);
		script_event(script.last_id, RDMA_CM_EVENT_CONNECT_REQUEST, NULL, 0);
		fault_arm(calls[i], 1, EMFILE);
		assert_int_equal(rpma_ep_next_conn_req(ep, NULL, &req), RPMA_E_PROVIDER);
		assert_null(req);
		assert_int_equal(script.rejects, 1);
		fault_disarm();
		assert_int_equal(rpma_ep_shutdown(&ep), 0);
		assert_int_equal(script.live, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whatever_call_fails_nothing_is_left),
		cmocka_unit_test(whatever_allocation_fails_nothing_is_left),
		cmocka_unit_test(configurations_and_descriptors_tell_of_missing_memory),
		cmocka_unit_test(a_request_that_cannot_be_served_is_rejected),
	};

	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
	return cmocka_run_group_tests_name("failures", tests, NULL, NULL);
}
