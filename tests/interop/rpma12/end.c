/* SPDX-License-Identifier: BSD-3-Clause */
/* end.c -- code that server and client share. */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rpma12.h"

void must(int ret, const char *what)
{
	if (ret)
		errx(1, "%s: %s", what, rpma_err_2str(ret));
}

static uint8_t end_pattern(size_t i, uint32_t seed)
{
	return (uint8_t)(i * 31 + (i >> 8) * 7 + seed * 101 + 1);
}

void fill(uint8_t *p, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++)
		p[i] = end_pattern(i, seed);
}

bool is_filled(const uint8_t *p, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != end_pattern(i, seed))
			return false;
	return true;
}

void end_open(struct end *e, const char *addr, bool is_server, uint8_t *region, int usage)
{
	struct ibv_context *ctx;

	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm(50);
	must(rpma_utils_get_ibv_context(
		     addr, is_server ? RPMA_UTIL_IBV_CONTEXT_LOCAL : RPMA_UTIL_IBV_CONTEXT_REMOTE,
		     &ctx),
	     "device");
	must(rpma_peer_new(ctx, &e->peer), "peer");
	must(rpma_conn_cfg_new(&e->cfg), "configuration");
	must(rpma_conn_cfg_set_rcq_size(e->cfg, 2 * SLOTS), "size of the receive CQ");
	e->region = region;
	e->slots = aligned_alloc(SLOT, SLOT * SLOTS);
	if (!e->slots)
		err(1, "memory");
	must(rpma_mr_reg(e->peer, region, REGION, usage, &e->mr), "register");
	must(rpma_mr_reg(e->peer, e->slots, SLOT * SLOTS, RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_SEND,
			 &e->slots_mr),
	     "register");
}

void end_close(struct end *e)
{
	must(rpma_conn_delete(&e->conn), "delete the connection");
	must(rpma_mr_dereg(&e->mr), "deregister");
	must(rpma_mr_dereg(&e->slots_mr), "deregister");
	must(rpma_conn_cfg_delete(&e->cfg), "delete the configuration");
	free(e->slots);
}

void end_expect(struct end *e, enum rpma_conn_event want)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;

	must(rpma_conn_next_event(e->conn, &event), "next event");
	if (event != want)
		errx(1, "event \"%s\", not \"%s\"", rpma_utils_conn_event_2str(event),
		     rpma_utils_conn_event_2str(want));
}

void end_wait(struct rpma_cq *cq, struct ibv_wc *wc)
{
	int ret;

	while ((ret = rpma_cq_get_wc(cq, 1, wc, NULL)) == RPMA_E_NO_COMPLETION) {
		ret = rpma_cq_wait(cq);
		if (ret && ret != RPMA_E_NO_COMPLETION)
			break;
	}
	must(ret, "completion");
}
