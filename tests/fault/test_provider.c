/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_provider.c -- each call of the provider fails once at each place in librpma that makes the
 * call, with several errno values. The librpma function must return the error in the manual, must
 * not change its outputs, and must be repeatable if it has consumed no object. The life releases
 * all objects, and none must leak.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fault/life.h"
#include "lib/fds.h"
#include "lib/unit.h"
#include "provider/fault.h"

enum { PLACES_MAX = 100, LIFE_LIMIT_S = 60 };

/* The error that a function returns when a provider's call fails; a function without a row returns
 * RPMA_E_PROVIDER. */
static const struct rule {
	const char *function; /* NULL: any function of librpma */
	const char *call;
	int err; /* 0: any errno */
	int ret;
} rules[] = {
	{"rpma_peer_new", "alloc_pd", ENOMEM, RPMA_E_NOMEM},
	{"rpma_mr_advise", "advise_mr", EOPNOTSUPP, RPMA_E_NOSUPP},
	{"rpma_mr_advise", "advise_mr", EFAULT, RPMA_E_INVAL},
	{"rpma_mr_advise", "advise_mr", EINVAL, RPMA_E_INVAL},
	{NULL, "get_cm_event", EAGAIN, RPMA_E_NO_EVENT},
	{NULL, "get_cm_event", ENODATA, RPMA_E_NO_EVENT},
	{NULL, "get_cq_event", 0, RPMA_E_NO_COMPLETION},
	{NULL, "wait_cm_event", ETIMEDOUT, RPMA_E_NO_EVENT},
	{NULL, "wait_cq_event", ETIMEDOUT, RPMA_E_NO_COMPLETION},
	{"rpma_batch_post", "post_list", ENOMEM, RPMA_E_AGAIN},
	{NULL, "set_limits", EOPNOTSUPP, RPMA_E_NOSUPP},
	{NULL, "set_owner", EOPNOTSUPP, RPMA_E_NOSUPP},
	{NULL, "cancel_connect", EOPNOTSUPP, RPMA_E_NOSUPP},
};

/* Every call fails with EIO and with ENOMEM; these calls fail with further errno values. */
static const struct {
	const char *call;
	int err;
} special[] = {
	{"reg_mr", EOPNOTSUPP},         {"advise_mr", EOPNOTSUPP},    {"advise_mr", EFAULT},
	{"advise_mr", EINVAL},          {"get_cm_event", EAGAIN},     {"get_cm_event", ENODATA},
	{"get_cq_event", EAGAIN},       {"connect", EINVAL},          {"accept", ECONNRESET},
	{"wait_cm_event", ETIMEDOUT},   {"wait_cq_event", ETIMEDOUT}, {"set_limits", EOPNOTSUPP},
	{"cancel_connect", EOPNOTSUPP}, {"set_owner", EOPNOTSUPP},
};

/* Functions that reach the provider: in each of them an armed call must have failed. */
static struct {
	const char *function;
	unsigned int hits;
	bool native; /* reached only if the peer has agreed to the extensions */
} reach[] = {
	{"rpma_utils_get_ibv_context", 0, false},
	{"rpma_utils_get_ibv_context_from", 0, false},
	{"rpma_utils_ibv_context_is_odp_capable", 0, false},
	{"rpma_peer_new", 0, false},
	{"rpma_peer_delete", 0, false},
	{"rpma_mr_reg", 0, false},
	{"rpma_mr_dereg", 0, false},
	{"rpma_mr_advise", 0, false},
	{"rpma_srq_new", 0, false},
	{"rpma_srq_delete", 0, false},
	{"rpma_srq_recv", 0, false},
	{"rpma_ep_listen", 0, false},
	{"rpma_ep_shutdown", 0, false},
	{"rpma_ep_next_conn_req", 0, false},
	{"rpma_ep_next_conn_req_timeout", 0, false},
	{"rpma_conn_req_new", 0, false},
	{"rpma_conn_req_delete", 0, false},
	{"rpma_conn_req_reject", 0, false},
	{"rpma_conn_req_recv", 0, false},
	{"rpma_conn_req_connect", 0, false},
	{"rpma_conn_next_event", 0, false},
	{"rpma_conn_next_event_timeout", 0, false},
	{"rpma_conn_wait", 0, false},
	{"rpma_conn_wait_timeout", 0, false},
	{"rpma_conn_cancel", 0, false},
	{"rpma_conn_disconnect", 0, false},
	{"rpma_conn_delete", 0, false},
	{"rpma_read", 0, false},
	{"rpma_write", 0, false},
	{"rpma_write_with_imm", 0, false},
	{"rpma_atomic_write", 0, false},
	{"rpma_flush", 0, false},
	{"rpma_send", 0, false},
	{"rpma_send_with_imm", 0, false},
	{"rpma_recv", 0, false},
	{"rpma_batch_post", 0, false},
	{"rpma_send_gather", 0, false},
	{"rpma_flush_all", 0, true},
	{"rpma_query_durability", 0, true},
	{"rpma_verify", 0, true},
	{"rpma_cq_new", 0, false},
	{"rpma_cq_delete", 0, false},
	{"rpma_cq_wait", 0, false},
	{"rpma_cq_wait_timeout", 0, false},
	{"rpma_cq_get_wc", 0, false},
};

static struct {
	const char *call;
	int err;
	unsigned int nth;
	bool struck; /* the armed failure occurred in this function */
} now;

static int promised(const char *function)
{
	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		const struct rule *r = &rules[i];

		if (!strcmp(r->call, now.call) && (!r->err || r->err == now.err) &&
		    (!r->function || !strcmp(r->function, function)))
			return r->ret;
	}
	return RPMA_E_PROVIDER;
}

static void count_hit(const char *function)
{
	for (size_t i = 0; i < ARRAY_LEN(reach); i++)
		if (!strcmp(reach[i].function, function)) {
			reach[i].hits++;
			return;
		}
	fail_msg("%s is not known to reach the provider", function);
}

static enum life_verdict struck(const char *function, int ret)
{
	bool event_is_there =
		!strcmp(now.call, "get_cm_event") || !strcmp(now.call, "get_cq_event") ||
		!strcmp(now.call, "wait_cm_event") || !strcmp(now.call, "wait_cq_event");

	now.struck = true;
	count_hit(function);
	if (ret != promised(function))
		fail_msg("%s returned \"%s\" for a failed %s (%s), not \"%s\"", function,
			 rpma_err_2str(ret), now.call, strerror(now.err),
			 rpma_err_2str(promised(function)));
	return event_is_there || life_can_repeat(function) ? LIFE_AGAIN : LIFE_OVER;
}

static enum life_verdict returned(const char *function, int ret)
{
	/* A provider need not support these two functions. */
	bool may_refuse =
		!strcmp(function, "rpma_write_with_imm") || !strcmp(function, "rpma_send_with_imm");

	if (!now.struck && fault_fired())
		return struck(function, ret);
	if (ret == RPMA_E_NO_COMPLETION && !strcmp(function, "rpma_cq_get_wc"))
		return LIFE_GO_ON;
	if (ret && !(may_refuse && ret == RPMA_E_PROVIDER))
		fail_msg("%s: %s (%s of call %u of %s)", function, rpma_err_2str(ret),
			 now.struck ? "after" : "before", now.nth, now.call);
	return LIFE_GO_ON;
}

static void broke(const char *what)
{
	fail_msg("%s, but no call of the data path failed", what);
}

static void hung(const char *what)
{
	fail_msg("no %s: call %u of %s failed", what, now.nth, now.call);
}

static const struct life_judge judge = {.returned = returned, .broke = broke, .hung = hung};

static int idle_fds; /* descriptors that the engine keeps between two lives */

/* The engine's thread closes sockets a moment later, so wait. */
static void expect_idle_fds(void)
{
	int n = open_fds();

	for (int ms = 0; ms < 10000 && n > idle_fds; ms++) {
		usleep(1000);
		n = open_fds();
	}
	if (n > idle_fds)
		fail_msg("%d descriptors stay open", n - idle_fds);
}

static void live(void)
{
	bool complete;

	alarm(LIFE_LIMIT_S);
	complete = life_run(&judge);
	alarm(0);
	assert_true(complete || now.struck);
	expect_idle_fds();
}

/* Returns the number of places that make the call. */
static unsigned int fail_in_each_place(const char *call, int err)
{
	for (now.nth = 1; now.nth < PLACES_MAX; now.nth++) {
		now.call = call;
		now.err = err;
		now.struck = false;
		fault_arm(call, now.nth, err);
		live();
		fault_disarm();
		if (!now.struck)
			return now.nth - 1;
	}
	fail_msg("%s is made in too many places", call);
	return 0;
}

static bool can_fail(const char *kind)
{
	return strcmp(kind, "VOID") != 0;
}

static bool peer_is_native(void)
{
	const char *s = getenv("SOFTRNIC_EXTENSIONS");

	return !s || strcmp(s, "0") != 0;
}

/* librpma reaches every call but those for asynchronous events. */
static bool must_be_reached(const char *call)
{
	return strcmp(call, "get_async_event") != 0;
}

static void every_call_fails_in_every_place(void **state)
{
#define NAME(ret, name, params, args, failure, act) {#name, #failure},
	static const struct {
		const char *name, *kind;
	} calls[] = {PROVIDER_CALLS(NAME){"post_send", "ERR"},
		     {"post_recv", "ERR"},
		     {"post_srq_recv", "ERR"},
		     {"poll_cq", "ERR"},
		     {"req_notify_cq", "ERR"}};

	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		unsigned int places;

		if (!can_fail(calls[i].kind))
			continue;
		places = fail_in_each_place(calls[i].name, EIO);
		fail_in_each_place(calls[i].name, ENOMEM);
		if (!places && must_be_reached(calls[i].name))
			fail_msg("a life never calls %s", calls[i].name);
	}
	for (size_t i = 0; i < ARRAY_LEN(reach); i++)
		if (!reach[i].hits && (peer_is_native() || !reach[i].native))
			fail_msg("%s was never hit", reach[i].function);
}

static void errnos_with_a_meaning_keep_it(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(special); i++)
		assert_true(fail_in_each_place(special[i].call, special[i].err) > 0);
}

static void too_long(int sig)
{
	char text[128];
	int n = snprintf(text, sizeof(text), "hung: call %u of %s\n", now.nth, now.call);

	if (write(STDERR_FILENO, text, (size_t)n) == n)
		_exit(1);
	_exit(2);
}

/* A life without a failure makes the objects that the engine keeps. */
static int setup(void **state)
{
	signal(SIGALRM, too_long);
	life_setup();
	idle_fds = 1000;
	now.call = "nothing";
	live();
	usleep(200000);
	idle_fds = open_fds();
	return 0;
}

static int teardown(void **state)
{
	life_teardown();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_fails_in_every_place),
		cmocka_unit_test(errnos_with_a_meaning_keep_it),
	};

	setenv("RPMA_PROVIDER", "fault", 1);
	setenv("RPMA_FAULT_INNER", "softrnic", 1);
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
	return cmocka_run_group_tests_name("faults of the provider", tests, setup, teardown);
}
