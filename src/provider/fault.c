/* SPDX-License-Identifier: BSD-3-Clause */
/* fault.c -- implements the decorator of fault.h: wraps every call of a provider's table, and the
 * ops of the contexts that the provider makes. */
#include "provider/fault.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "softrnic/softrnic.h"

enum { NAME_MAX_LEN = 32, CONTEXTS_MAX = 8 };

static const struct provider *_Atomic inner = &provider_stubs;

static struct {
	pthread_mutex_t lock;
	char call[NAME_MAX_LEN];
	unsigned int nth, seen;
	int err;
	bool fired;
} plan = {.lock = PTHREAD_MUTEX_INITIALIZER};
static atomic_uint delay_ms;

/* Contexts whose ops are decorated, and their original ops. */
static struct {
	pthread_mutex_t lock;
	int count;
	struct {
		struct ibv_context *ctx;
		struct ibv_context_ops ops;
	} of[CONTEXTS_MAX];
} patched = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The errno with which this call must fail, or 0. */
static int fault_due(const char *call)
{
	int err = 0;

	pthread_mutex_lock(&plan.lock);
	if (plan.call[0] == '*' || !strcmp(plan.call, call)) {
		plan.seen++;
		if (plan.seen == plan.nth) {
			plan.fired = true;
			err = plan.err;
		}
	}
	pthread_mutex_unlock(&plan.lock);
	return err;
}

static const struct ibv_context_ops *fault_original_ops(const struct ibv_context *ctx)
{
	const struct ibv_context_ops *ops = &ctx->ops;

	pthread_mutex_lock(&patched.lock);
	for (int i = 0; i < patched.count; i++)
		if (patched.of[i].ctx == ctx)
			ops = &patched.of[i].ops;
	pthread_mutex_unlock(&patched.lock);
	return ops;
}

static int fault_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	int err = fault_due("post_send");

	return err ? err : fault_original_ops(qp->context)->post_send(qp, wr, bad);
}

static int fault_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int err = fault_due("post_recv");

	return err ? err : fault_original_ops(qp->context)->post_recv(qp, wr, bad);
}

static int fault_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			       struct ibv_recv_wr **bad)
{
	int err = fault_due("post_srq_recv");

	return err ? err : fault_original_ops(srq->context)->post_srq_recv(srq, wr, bad);
}

static int fault_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	unsigned int ms = atomic_load(&delay_ms);
	int err = fault_due("poll_cq");
	int got;

	if (err)
		return -err;
	got = fault_original_ops(cq->context)->poll_cq(cq, num_entries, wc);
	if (got > 0 && ms) {
		struct timespec pause = {ms / 1000, (long)(ms % 1000) * 1000000};

		nanosleep(&pause, NULL);
	}
	return got;
}

static int fault_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	int err = fault_due("req_notify_cq");

	return err ? err : fault_original_ops(cq->context)->req_notify_cq(cq, solicited_only);
}

void fault_decorate_context(struct ibv_context *ctx)
{
	pthread_mutex_lock(&patched.lock);
	for (int i = 0; i < patched.count; i++)
		if (patched.of[i].ctx == ctx)
			goto out;
	if (patched.count == CONTEXTS_MAX)
		goto out;
	patched.of[patched.count].ctx = ctx;
	patched.of[patched.count++].ops = ctx->ops;
	ctx->ops.post_send = fault_post_send;
	ctx->ops.post_recv = fault_post_recv;
	ctx->ops.post_srq_recv = fault_post_srq_recv;
	ctx->ops.poll_cq = fault_poll_cq;
	ctx->ops.req_notify_cq = fault_req_notify_cq;
out:
	pthread_mutex_unlock(&patched.lock);
}

/* The result of a failed call. The column `failure` in calls.h selects one of these macros. */
#define FAULT_RESULT_NUL(err) (errno = (err), NULL)
#define FAULT_RESULT_NEG(err) (errno = (err), -1)
#define FAULT_RESULT_ERR(err) (err)

#define FAULT_CALL(name, args, result)                                                             \
	int err = fault_due(#name);                                                                \
                                                                                                   \
	return err ? result(err) : inner->name args;
#define FAULT_RELEASE(name, args, result)                                                          \
	int err = fault_due(#name);                                                                \
	int ret = inner->name args;                                                                \
                                                                                                   \
	return err ? result(err) : ret;

#define FAULT_NUL(name, args, act)  FAULT_##act(name, args, FAULT_RESULT_NUL)
#define FAULT_NEG(name, args, act)  FAULT_##act(name, args, FAULT_RESULT_NEG)
#define FAULT_ERR(name, args, act)  FAULT_##act(name, args, FAULT_RESULT_ERR)
#define FAULT_VOID(name, args, act) inner->name args;

#define DECORATE(ret, name, params, args, failure, act)                                            \
	static ret fault_##name params                                                             \
	{                                                                                          \
		FAULT_##failure(name, args, act)                                                   \
	}
PROVIDER_CALLS(DECORATE)

static bool fault_owns_context(const struct ibv_context *ctx)
{
	return inner->owns_context(ctx);
}

static bool fault_serves(const char *addr, enum provider_role role, char *why, size_t why_len)
{
	return inner->serves(addr, role, why, why_len);
}

static const char *fault_event_str(enum rdma_cm_event_type event)
{
	return inner->event_str(event);
}

static int fault_read_sink_access(const struct ibv_context *ctx)
{
	return inner->read_sink_access(ctx);
}

static bool fault_gives_reasons(const struct ibv_context *ctx)
{
	return inner->gives_reasons(ctx);
}

static enum vext_rejection fault_rejection(const struct rdma_cm_event *ev)
{
	return inner->rejection(ev);
}

static uint32_t fault_qp_caps(struct ibv_qp *qp)
{
	return inner->qp_caps(qp);
}

static int fault_qp_counters(struct ibv_qp *qp, const char *const **names, uint64_t *values,
			     int max)
{
	return inner->qp_counters(qp, names, values, max);
}

#define ROW(ret, name, ...) .name = fault_##name,
static const struct provider decorator = {.name = "fault",
					  .owns_context = fault_owns_context,
					  .serves = fault_serves,
					  .event_str = fault_event_str,
					  .read_sink_access = fault_read_sink_access,
					  .gives_reasons = fault_gives_reasons,
					  .rejection = fault_rejection,
					  .qp_caps = fault_qp_caps,
					  .qp_counters = fault_qp_counters,
					  PROVIDER_CALLS(ROW)};

static void fault_arm_from_env(void)
{
	const char *spec = getenv("RPMA_FAULT");
	char call[NAME_MAX_LEN];
	unsigned int nth;
	int err;

	if (!spec)
		return;
	if (sscanf(spec, "%31[^:]:%u:%d", call, &nth, &err) == 3)
		fault_arm(call, nth, err);
	else
		LOG_ERROR("RPMA_FAULT=%s is not of the form call:nth:errno", spec);
}

const struct provider *provider_fault_around(const struct provider *of)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, fault_arm_from_env);
	atomic_store(&inner, of);
	return &decorator;
}

void fault_arm(const char *call, unsigned int nth, int err)
{
	pthread_mutex_lock(&plan.lock);
	snprintf(plan.call, sizeof(plan.call), "%s", call);
	plan.nth = nth;
	plan.err = err;
	plan.seen = 0;
	plan.fired = false;
	pthread_mutex_unlock(&plan.lock);
}

void fault_delay_completions(unsigned int ms)
{
	atomic_store(&delay_ms, ms);
}

void fault_disarm(void)
{
	fault_arm("", 0, 0);
	fault_delay_completions(0);
	pthread_mutex_lock(&patched.lock);
	while (patched.count) {
		patched.count--;
		patched.of[patched.count].ctx->ops = patched.of[patched.count].ops;
	}
	pthread_mutex_unlock(&patched.lock);
}

unsigned int fault_seen(void)
{
	unsigned int seen;

	pthread_mutex_lock(&plan.lock);
	seen = plan.seen;
	pthread_mutex_unlock(&plan.lock);
	return seen;
}

bool fault_fired(void)
{
	bool fired;

	pthread_mutex_lock(&plan.lock);
	fired = plan.fired;
	pthread_mutex_unlock(&plan.lock);
	return fired;
}
