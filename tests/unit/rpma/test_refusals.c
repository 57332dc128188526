/* SPDX-License-Identifier: BSD-3-Clause */
/* test_refusals.c -- a device and a kernel that refuse calls that rarely fail. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/unit.h"
#include "rpma/flush.h"
#include "script.h"

static bool unmapping_fails;

/* These functions replace those of libsoftrnic and libc in this program. */
#pragma GCC visibility push(default)
struct ibv_pd *softrnic_alloc_pd(struct ibv_context *context);
#pragma GCC visibility pop

struct ibv_pd *softrnic_alloc_pd(struct ibv_context *context)
{
	errno = 0;
	return NULL;
}

__attribute__((visibility("default"))) int munmap(void *addr, size_t len)
{
	if (!unmapping_fails)
		return (int)syscall(SYS_munmap, addr, len);
	errno = EINVAL;
	return -1;
}

static void a_device_that_gives_no_reason_has_an_unknown_one(void **state)
{
	struct rpma_peer *peer = NULL;
	struct ibv_context *ctx = NULL;

	setenv("RPMA_PROVIDER", "softrnic", 1);
	assert_int_equal(rpma_utils_get_ibv_context("127.0.0.1", RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx),
			 0);
	assert_int_equal(rpma_peer_new(ctx, &peer), RPMA_E_UNKNOWN);
	assert_null(peer);
}

static void memory_for_flushes_that_cannot_be_unmapped_is_told_of(void **state)
{
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;
	struct rpma_peer peer;

	script_reset();
	peer = script_peer(&provider_script);
	assert_int_equal(rpma_conn_req_new(&peer, "a", "1", NULL, &req), 0);
	assert_int_equal(rpma_conn_req_connect(&req, NULL, &conn), 0);
	assert_int_equal(rpma_conn_delete(&conn), 0);
	unmapping_fails = true;
	assert_int_equal(flush_sink_put(peer.flush_sink), RPMA_E_INVAL);
	unmapping_fails = false;
	assert_int_equal(script.live, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_device_that_gives_no_reason_has_an_unknown_one),
		cmocka_unit_test(memory_for_flushes_that_cannot_be_unmapped_is_told_of),
	};

	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
	return cmocka_run_group_tests_name("refusals", tests, NULL, NULL);
}
