/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_objects.c -- regions, completion queues and shared receive queues, on the scripted provider.
 */
#include <errno.h>
#include <limits.h>

#include "lib/unit.h"
#include "script.h"

static struct rpma_peer peer;

static int setup(void **state)
{
	script_reset();
	peer = script_peer(&provider_script);
	return 0;
}

/* At the end of a test every object must be released. */
static int nothing_left(void **state)
{
	return script_peer_end(&peer) ? -1 : 0;
}

static struct rpma_mr_local *region(void *buf, size_t size, int usage)
{
	struct rpma_mr_local *mr = NULL;

	assert_int_equal(rpma_mr_reg(&peer, buf, size, usage, &mr), 0);
	return mr;
}

static void usages_ask_for_no_more_access_than_they_need(void **state)
{
	enum {
		L = IBV_ACCESS_LOCAL_WRITE,
		W = IBV_ACCESS_REMOTE_WRITE,
		R = IBV_ACCESS_REMOTE_READ
	};
	static const struct {
		/* usage: of the registration; alone, with_sink: the expected access rights, also if
		 * the sink of a Read needs the right to write */
		int usage, alone, with_sink;
	} table[] = {
		{RPMA_MR_USAGE_READ_SRC, R, R},
		{RPMA_MR_USAGE_READ_DST, L, L | W},
		{RPMA_MR_USAGE_WRITE_SRC, L, L},
		{RPMA_MR_USAGE_WRITE_DST, L | W, L | W},
		{RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY, R, R},
		{RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT, R, R},
		{RPMA_MR_USAGE_SEND, 0, 0},
		{RPMA_MR_USAGE_RECV, L, L},
		{0xff, L | W | R, L | W | R},
	};
	char buf[8];

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		for (int sink = 0; sink <= 1; sink++) {
			struct rpma_mr_local *mr;

			script.read_sink_access = sink ? W : 0;
			mr = region(buf, sizeof(buf), table[i].usage);
			assert_int_equal(script.access, sink ? table[i].with_sink : table[i].alone);
			assert_int_equal(rpma_mr_dereg(&mr), 0);
			assert_null(mr);
		}
	}
}

static void a_region_describes_itself_in_21_little_endian_bytes(void **state)
{
	void *buf = (void *)(uintptr_t)0x0000a1a2a3a4a5a6u;
	unsigned char expected[] = {0xa6, 0xa5, 0xa4, 0xa3, 0xa2, 0xa1, 0, 0,
				    0xb3, 0xb2, 0xb1, 0,    0,    0,    0, 0,
				    0x64, 0x63, 0x62, 0x61, 0x0a, 0xee};
	struct rpma_mr_local *mr =
		region(buf, 0xb1b2b3, RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_DST);
	unsigned char desc[22];
	size_t size = 0;
	void *ptr = NULL;

	desc[21] = 0xee;
	assert_int_equal(rpma_mr_get_descriptor_size(mr, &size), 0);
	assert_int_equal(size, 21);
	assert_int_equal(rpma_mr_get_descriptor(mr, desc), 0);
	assert_memory_equal(desc, expected, sizeof(expected));
	assert_int_equal(rpma_mr_get_ptr(mr, &ptr), 0);
	assert_ptr_equal(ptr, buf);
	assert_int_equal(rpma_mr_get_size(mr, &size), 0);
	assert_int_equal(size, 0xb1b2b3);
	assert_int_equal(rpma_mr_dereg(&mr), 0);
}

static void memory_that_cannot_be_pinned_is_paged_on_demand_where_possible(void **state)
{
	struct rpma_mr_local *mr = NULL;
	char buf[8];

	script.reg_mr_err_unless_odp = EOPNOTSUPP;
	assert_int_equal(rpma_mr_reg(&peer, buf, 8, RPMA_MR_USAGE_READ_SRC, &mr), RPMA_E_PROVIDER);
	peer.can.odp = true;
	assert_int_equal(rpma_mr_reg(&peer, buf, 8, RPMA_MR_USAGE_READ_SRC, &mr), 0);
	assert_int_equal(script.access, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND);
	assert_int_equal(rpma_mr_dereg(&mr), 0);
	script.reg_mr_err_unless_odp = ENOMEM;
	assert_int_equal(rpma_mr_reg(&peer, buf, 8, RPMA_MR_USAGE_READ_SRC, &mr), RPMA_E_PROVIDER);
	assert_null(mr);
}

static int access_for(int usage)
{
	struct rpma_mr_local *mr = NULL;
	char buf[8];
	int ret = rpma_mr_reg(&peer, buf, 8, usage, &mr);

	assert_int_equal(rpma_mr_dereg(&mr), 0);
	return ret ? ret : script.access;
}

/* Regions also permit reads: a peer whose librpma cannot send a flush sends a Read instead. */
static void a_device_that_flushes_is_given_the_rights_for_it(void **state)
{
	const int visible = RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY,
		  persistent = RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;

	assert_int_equal(access_for(visible | persistent), IBV_ACCESS_REMOTE_READ);
	peer.can.flush = true;
	assert_int_equal(access_for(visible), IBV_ACCESS_REMOTE_READ | VEXT_ACCESS_FLUSH_GLOBAL);
	assert_int_equal(access_for(persistent),
			 IBV_ACCESS_REMOTE_READ | VEXT_ACCESS_FLUSH_PERSISTENT);
	assert_int_equal(access_for(RPMA_MR_USAGE_READ_SRC), IBV_ACCESS_REMOTE_READ);
}

static void memory_that_is_not_persistent_is_registered_without_that_right(void **state)
{
	const int persistent = RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;

	peer.can.flush = true;
	script.reg_mr_err_if_pmem = EINVAL;
	assert_int_equal(access_for(persistent), IBV_ACCESS_REMOTE_READ);
	script.reg_mr_err_if_pmem = ENOMEM;
	assert_int_equal(access_for(persistent), RPMA_E_PROVIDER);
}

static void both_halves_make_a_device_that_flushes(void **state)
{
	static const uint64_t caps[] = {0, VEXT_DEVICE_FLUSH_GLOBAL, VEXT_DEVICE_FLUSH_PERSISTENT,
					VEXT_DEVICE_FLUSH};

	for (size_t i = 0; i < ARRAY_LEN(caps); i++) {
		struct abilities can;

		script.device_caps = caps[i];
		assert_int_equal(utils_query(&provider_script, peer.pd->context, &can), 0);
		assert_int_equal(can.flush, caps[i] == VEXT_DEVICE_FLUSH);
	}
}

static void advice_tells_unsupported_from_wrong_from_broken(void **state)
{
	static const struct {
		int err, ret;
	} table[] = {{0, 0},
		     {EOPNOTSUPP, RPMA_E_NOSUPP},
		     {ENOTSUP, RPMA_E_NOSUPP},
		     {EFAULT, RPMA_E_INVAL},
		     {EINVAL, RPMA_E_INVAL},
		     {EIO, RPMA_E_PROVIDER}};
	char buf[64];
	struct rpma_mr_local *mr = region(buf, sizeof(buf), RPMA_MR_USAGE_READ_SRC);

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		script.advise_err = table[i].err;
		assert_int_equal(rpma_mr_advise(mr, 8, 16, IBV_ADVISE_MR_ADVICE_PREFETCH, 0),
				 table[i].ret);
	}
	assert_true(script.sge.addr == (uintptr_t)buf + 8);
	assert_int_equal(script.sge.length, 16);
	assert_int_equal(rpma_mr_advise(NULL, 0, 1, 0, 0), RPMA_E_INVAL);
	assert_int_equal(rpma_mr_dereg(&mr), 0);
}

static struct rpma_srq *srq_with(uint32_t rq_size, uint32_t rcq_size)
{
	struct rpma_srq_cfg *cfg = NULL;
	struct rpma_srq *srq = NULL;

	assert_int_equal(rpma_srq_cfg_new(&cfg), 0);
	assert_int_equal(rpma_srq_cfg_set_rq_size(cfg, rq_size), 0);
	assert_int_equal(rpma_srq_cfg_set_rcq_size(cfg, rcq_size), 0);
	assert_int_equal(rpma_srq_new(&peer, cfg, &srq), 0);
	assert_int_equal(rpma_srq_cfg_delete(&cfg), 0);
	return srq;
}

static void a_shared_receive_queue_has_a_completion_queue_unless_its_size_is_0(void **state)
{
	struct rpma_srq *srq = NULL;
	struct rpma_cq *rcq = NULL;

	assert_int_equal(rpma_srq_new(&peer, NULL, &srq), 0);
	assert_int_equal(script.srq_attr.attr.max_wr, 20);
	assert_int_equal(script.srq_attr.attr.max_sge, 1);
	assert_int_equal(script.srq_attr.attr.srq_limit, 0);
	assert_int_equal(script.cqe, 20);
	assert_int_equal(rpma_srq_get_rcq(srq, &rcq), 0);
	assert_non_null(rcq);
	assert_int_equal(rpma_srq_delete(&srq), 0);
	assert_null(srq);

	srq = srq_with(3, 0);
	assert_int_equal(script.srq_attr.attr.max_wr, 3);
	assert_int_equal(rpma_srq_get_rcq(srq, &rcq), 0);
	assert_null(rcq);
	assert_int_equal(rpma_srq_delete(&srq), 0);
}

static void a_shared_receive_takes_a_segment_or_nothing(void **state)
{
	char buf[64], token;
	struct rpma_mr_local *mr = region(buf, sizeof(buf), RPMA_MR_USAGE_RECV);
	struct rpma_srq *srq = srq_with(1, 0);

	assert_int_equal(rpma_srq_recv(srq, mr, 8, 16, &token), 0);
	assert_int_equal(script.recv.num_sge, 1);
	assert_true(script.recv.wr_id == (uintptr_t)&token);
	assert_true(script.sge.addr == (uintptr_t)buf + 8);
	assert_int_equal(script.sge.length, 16);
	assert_int_equal(rpma_srq_recv(srq, NULL, 0, 0, NULL), 0);
	assert_int_equal(script.recv.num_sge, 0);
	script.post_err = ENOMEM;
	assert_int_equal(rpma_srq_recv(srq, mr, 0, 1, NULL), RPMA_E_PROVIDER);
	assert_int_equal(rpma_srq_delete(&srq), 0);
	assert_int_equal(rpma_mr_dereg(&mr), 0);
}

static void a_queue_of_more_than_int_max_is_clipped(void **state)
{
	struct rpma_srq *srq = srq_with(1, UINT32_MAX);

	assert_int_equal(script.cqe, INT_MAX);
	assert_int_equal(rpma_srq_delete(&srq), 0);
}

static void completions_are_counted_and_an_empty_queue_says_so(void **state)
{
	struct rpma_srq *srq = srq_with(1, 1);
	struct ibv_wc wc[4];
	struct rpma_cq *cq;
	int got = 77, fd = -1;

	assert_int_equal(rpma_srq_get_rcq(srq, &cq), 0);
	assert_int_equal(rpma_cq_get_wc(cq, 1, wc, &got), RPMA_E_NO_COMPLETION);
	assert_int_equal(got, 77);
	script.polled = 3;
	assert_int_equal(rpma_cq_get_wc(cq, 4, wc, &got), 0);
	assert_int_equal(got, 3);
	assert_int_equal(rpma_cq_get_wc(cq, 2, wc, &got), RPMA_E_UNKNOWN);
	script.polled = 1;
	assert_int_equal(rpma_cq_get_wc(cq, 1, wc, NULL), 0);
	script.polled = -1;
	assert_int_equal(rpma_cq_get_wc(cq, 1, wc, NULL), RPMA_E_PROVIDER);

	assert_int_equal(rpma_cq_get_fd(cq, &fd), 0);
	assert_true(fd >= 0);
	assert_int_equal(rpma_cq_wait(cq), RPMA_E_NO_COMPLETION);
	assert_int_equal(rpma_srq_delete(&srq), 0);
}

#define OVER_SEAM(test) cmocka_unit_test_setup_teardown(test, setup, nothing_left)

int main(void)
{
	const struct CMUnitTest tests[] = {
		OVER_SEAM(usages_ask_for_no_more_access_than_they_need),
		OVER_SEAM(a_region_describes_itself_in_21_little_endian_bytes),
		OVER_SEAM(memory_that_cannot_be_pinned_is_paged_on_demand_where_possible),
		OVER_SEAM(a_device_that_flushes_is_given_the_rights_for_it),
		OVER_SEAM(memory_that_is_not_persistent_is_registered_without_that_right),
		OVER_SEAM(both_halves_make_a_device_that_flushes),
		OVER_SEAM(advice_tells_unsupported_from_wrong_from_broken),
		OVER_SEAM(a_shared_receive_queue_has_a_completion_queue_unless_its_size_is_0),
		OVER_SEAM(a_shared_receive_takes_a_segment_or_nothing),
		OVER_SEAM(a_queue_of_more_than_int_max_is_clipped),
		OVER_SEAM(completions_are_counted_and_an_empty_queue_says_so),
	};

	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
	return cmocka_run_group_tests_name("objects", tests, NULL, NULL);
}
