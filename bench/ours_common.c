/* SPDX-License-Identifier: BSD-3-Clause */
/* Code for both ends. */
#include <stdlib.h>
#include <sys/mman.h>

#include "lib/die.h"
#include "lib/environment.h"
#include "ours_impl.h"

void ours_must(int ret, const char *what)
{
	if (ret)
		die("%s: %s: %s", what, rpma_err_2str(ret), rpma_err_last());
}

void ours_environment(const struct bench_case *c, bool target)
{
	environment_softrnic(c, target);
	/* Permit flushes of volatile memory, which complete when the bytes are visible. */
	environment_set("RPMA_STRICT_PERSIST", "0");
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
}

/* Returns the size of a send queue: slots for the writes and the flush of each unit, and a few
 * more. */
static uint32_t ours_sq_size(const struct bench_case *c)
{
	return c->depth * (c->every + 1) + 16;
}

/* Returns the size of the one queue that gets the completions of all connections. */
static uint32_t ours_cq_size(const struct bench_case *c)
{
	/* The queue has slots for the completions of sends and of receives. */
	return c->conns * (ours_sq_size(c) + c->depth + 1);
}

struct rpma_conn_cfg *ours_conn_cfg(const struct bench_case *c, struct rpma_cq *cq)
{
	struct rpma_conn_cfg *cfg;

	ours_must(rpma_conn_cfg_new(&cfg), "configuration");
	ours_must(rpma_conn_cfg_set_sq_size(cfg, ours_sq_size(c)), "send queue");
	ours_must(rpma_conn_cfg_set_rq_size(cfg, c->depth + 1), "receive queue");
	ours_must(rpma_conn_cfg_set_cq(cfg, cq), "completion queue");
	return cfg;
}

void ours_broke(const struct rpma_conn *conn, const struct ibv_wc *wc)
{
	char why[256];

	ours_must(rpma_wc_explain(conn, wc, why, sizeof(why)), "explain");
	die("the connection broke: %s", why);
}

bool ours_completions(struct rpma_cq *cq, bool poll, struct ibv_wc *wc, int max, int *count)
{
	int ret;

	while ((ret = rpma_cq_get_wc(cq, max, wc, count)) == RPMA_E_NO_COMPLETION) {
		if (poll)
			continue;
		ret = rpma_cq_wait(cq);
		if (ret != RPMA_E_NO_COMPLETION) /* a wake-up without a completion */
			ours_must(ret, "wait for a completion");
	}
	ours_must(ret, "take completions");
	for (int i = 0; i < *count; i++) {
		if (wc[i].status == IBV_WC_WR_FLUSH_ERR) {
			*count = i + 1;
			return false;
		}
		if (wc[i].status != IBV_WC_SUCCESS)
			die("an operation failed: %s", ibv_wc_status_str(wc[i].status));
	}
	return true;
}

void ours_open(struct ours *o, const struct bench_case *c, int usage, char *mem, size_t size)
{
	struct ibv_context *device;

	*o = (struct ours){.c = c, .mem = mem, .size = size};
	o->conns = calloc(c->conns, sizeof(*o->conns));
	if (!o->conns)
		die_errno("connections");
	ours_must(rpma_utils_get_ibv_context(c->addr, RPMA_UTIL_IBV_CONTEXT_REMOTE, &device),
		  "device");
	ours_must(rpma_peer_new(device, &o->peer), "peer");
	ours_must(rpma_cq_new(o->peer, ours_cq_size(c), &o->cq), "completion queue");
	ours_must(rpma_mr_reg(o->peer, mem, size, usage, &o->mr), "register memory");
}

void ours_close(struct ours *o)
{
	for (unsigned i = 0; i < o->c->conns; i++) {
		struct ours_conn *oc = &o->conns[i];

		rpma_batch_delete(&oc->batch);
		rpma_mr_remote_delete(&oc->there);
		rpma_conn_delete(&oc->conn);
		free(oc->begun);
	}
	free(o->conns);
	ours_must(rpma_mr_dereg(&o->mr), "deregister memory");
	ours_must(rpma_cq_delete(&o->cq), "delete the queue");
	ours_must(rpma_peer_delete(&o->peer), "delete the peer");
	munmap(o->mem, o->size);
}
