/* SPDX-License-Identifier: BSD-3-Clause */
/* life_more.c -- the parts of a life with a named provider, limits, a rejection with private data,
 * and a cancelled connect. */
#include "fault/life_impl.h"

enum { COMMON_SIZE = 16, LIMIT_MS = 20000 };

void life_look_around(struct life *l)
{
	struct ibv_context *ctx;
	struct rpma_provider_list *list = NULL;
	enum rpma_durability durability;

	MAKE(l, &ctx, rpma_utils_get_ibv_context_from, "softrnic", LIFE_ADDR,
	     RPMA_UTIL_IBV_CONTEXT_REMOTE);
	MAKE(l, &list, rpma_provider_list_new, LIFE_ADDR, RPMA_UTIL_IBV_CONTEXT_LOCAL);
	RELEASE(l, rpma_provider_list_delete, &list);
	STEP(l, rpma_utils_get_durability, l->desc, sizeof(l->desc), &durability, NULL, 0);
}

void life_make_common_queue(struct life *l)
{
	MAKE(l, &l->common, rpma_cq_new, l->peer, COMMON_SIZE);
	STEP(l, rpma_conn_cfg_new, &l->limited_cfg);
	if (l->over)
		return;
	rpma_conn_cfg_set_cq(l->limited_cfg, l->common);
	rpma_conn_cfg_set_cq(l->passive_cfg, l->common);
	rpma_conn_cfg_set_connect_timeout(l->limited_cfg, LIMIT_MS);
	rpma_conn_cfg_set_liveness(l->limited_cfg, LIMIT_MS);
	rpma_conn_cfg_set_owner(l->limited_cfg, "life", 4);
}

static void life_expect_event(struct life *l, enum rpma_conn_event wanted)
{
	enum rpma_conn_event event;

	MAKE(l, &event, rpma_conn_next_event_timeout, l->active, LIMIT_MS);
	if (l->over || event == wanted)
		return;
	l->judge->broke(rpma_utils_conn_event_2str(event));
	l->over = true;
}

void life_refuse_with_a_word(struct life *l, const char *port)
{
	struct rpma_conn_private_data word = {l->desc, sizeof(l->desc)};

	MAKE(l, &l->out, rpma_conn_req_new, l->peer, LIFE_ADDR, port, l->limited_cfg);
	MAKE(l, &l->active, rpma_conn_req_connect, &l->out, NULL);
	life_await_request(l);
	MAKE(l, &l->in, rpma_ep_next_conn_req_timeout, l->ep, l->limited_cfg, LIMIT_MS);
	STEP(l, rpma_conn_req_reject, &l->in, &word);
	life_expect_event(l, RPMA_CONN_REJECTED);
	STEP(l, rpma_conn_delete, &l->active);
}

/* This part is the last one, because afterwards it is unknown whether the endpoint received the
 * request. */
void life_give_up(struct life *l, const char *port)
{
	MAKE(l, &l->out, rpma_conn_req_new, l->peer, LIFE_ADDR, port, l->limited_cfg);
	MAKE(l, &l->active, rpma_conn_req_connect, &l->out, NULL);
	STEP(l, rpma_conn_cancel, l->active);
	life_expect_event(l, RPMA_CONN_UNREACHABLE);
}
