/* SPDX-License-Identifier: BSD-3-Clause */
/* memory_judge.c -- check results when memory or descriptors run out (memory_judge.h). */
#include "fault/memory_judge.h"

#include <string.h>

#include "lib/unit.h"

static struct {
	unsigned int nth;
	bool for_good;
	const char *failed; /* the function whose failed call the life repeats */
} now;

void memory_judge_start(enum alloc_kind kind, unsigned int nth, bool for_good)
{
	now.nth = nth;
	now.for_good = for_good;
	now.failed = NULL;
	allocs_arm(kind, nth, for_good);
}

/* Returns true for a function that works without a connection. A repeated call of another function
 * can fail again, because the connection has broken. */
static bool judge_needs_no_connection(const char *function)
{
	static const char *const alone[] = {
		"rpma_utils_",       "rpma_peer_",          "rpma_mr_",
		"rpma_srq_",         "rpma_conn_cfg_",      "rpma_ep_listen",
		"rpma_conn_req_new", "rpma_provider_list_", "rpma_cq_new",
	};

	for (size_t i = 0; i < ARRAY_LEN(alone); i++)
		if (!strncmp(function, alone[i], strlen(alone[i])))
			return true;
	return false;
}

static bool judge_is_normal(const char *function, int ret)
{
	if (!ret)
		return true;
	if (ret == RPMA_E_NO_COMPLETION)
		return !strcmp(function, "rpma_cq_get_wc");
	/* a provider need not support these two functions */
	return ret == RPMA_E_PROVIDER && (!strcmp(function, "rpma_write_with_imm") ||
					  !strcmp(function, "rpma_send_with_imm"));
}

/* With no free descriptor librpma cannot query the kernel. */
static bool judge_allows(const char *function, int ret)
{
	return ret == RPMA_E_NOMEM || ret == RPMA_E_PROVIDER ||
	       (ret == RPMA_E_UNKNOWN && !strcmp(function, "rpma_utils_get_durability"));
}

static enum life_verdict judge_returned(const char *function, int ret)
{
	const char *failed_before = now.failed;

	now.failed = NULL;
	if (judge_is_normal(function, ret))
		return LIFE_GO_ON;
	if (!allocs_failed())
		fail_msg("%s: %s, and no allocation had failed", function, rpma_err_2str(ret));
	if (!judge_allows(function, ret))
		fail_msg("%s: %s, of failed allocation %u, %s", function, rpma_err_2str(ret),
			 now.nth, allocs_failed_at());
	if (now.for_good || !life_can_repeat(function))
		return LIFE_OVER;
	if (!failed_before) {
		now.failed = function;
		return LIFE_AGAIN;
	}
	if (judge_needs_no_connection(function))
		fail_msg("%s failed again after allocation %u, %s", function, now.nth,
			 allocs_failed_at());
	return LIFE_OVER;
}

static void judge_broke(const char *what)
{
	if (!allocs_failed())
		fail_msg("%s, and no allocation had failed", what);
}

static void judge_hung(const char *what)
{
	fail_msg("no %s: allocation %u failed, %s", what, now.nth, allocs_failed_at());
}

const struct life_judge memory_judge = {
	.returned = judge_returned, .broke = judge_broke, .hung = judge_hung};
