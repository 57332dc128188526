/* SPDX-License-Identifier: BSD-3-Clause */
/* life.c -- one use of librpma: make all objects, refuse a request, use a connection, release
 * all. */
#include "fault/life_impl.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { USAGE_ALL = 0xff, CQ_SIZE = 8, RCQ_SIZE = 4 };

static void *memory;
static char port[8];
static int port_fd;

/* Map a file if possible, so that a flush has something to write back. */
static void *life_map_file(void)
{
	char name[] = "fault-memory-XXXXXX";
	int fd = mkstemp(name);
	void *p;

	assert_true(fd >= 0);
	unlink(name);
	assert_int_equal(ftruncate(fd, LIFE_MEMORY), 0);
	p = mmap(NULL, LIFE_MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	close(fd);
	return p;
}

/* A bound socket that never listens reserves the port for the listeners of this test. */
static void life_choose_port(void)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(sin);
	int on = 1;

	port_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(setsockopt(port_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
	assert_int_equal(bind(port_fd, (struct sockaddr *)&sin, len), 0);
	assert_int_equal(getsockname(port_fd, (struct sockaddr *)&sin, &len), 0);
	snprintf(port, sizeof(port), "%u", (unsigned)ntohs(sin.sin_port));
}

void life_setup(void)
{
	memory = life_map_file();
	life_choose_port();
}

void life_teardown(void)
{
	munmap(memory, LIFE_MEMORY);
	close(port_fd);
}

void life_wake_engine(void)
{
	struct ibv_context *ctx;
	struct rpma_peer *peer;
	struct rpma_ep *ep;

	assert_int_equal(rpma_utils_get_ibv_context(LIFE_ADDR, RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx),
			 0);
	assert_int_equal(rpma_peer_new(ctx, &peer), 0);
	assert_int_equal(rpma_ep_listen(peer, LIFE_ADDR, "0", &ep), 0);
	assert_int_equal(rpma_ep_shutdown(&ep), 0);
	assert_int_equal(rpma_peer_delete(&peer), 0);
}

bool life_can_repeat(const char *function)
{
	/* These calls consume an object that the test cannot restore: a request or an event. */
	static const char *const consuming[] = {
		"rpma_conn_req_connect", "rpma_conn_req_reject",
		"rpma_ep_next_conn_req", "rpma_ep_next_conn_req_timeout",
		"rpma_conn_next_event",  "rpma_conn_next_event_timeout",
		"rpma_conn_wait",        "rpma_conn_wait_timeout",
		"rpma_cq_wait",          "rpma_cq_wait_timeout",
	};

	for (size_t i = 0; i < sizeof(consuming) / sizeof(consuming[0]); i++)
		if (!strcmp(function, consuming[i]))
			return false;
	return true;
}

bool life_judged(struct life *l, const char *function, int ret)
{
	enum life_verdict verdict = l->judge->returned(function, ret);

	l->ret = ret;
	l->over |= verdict == LIFE_OVER;
	return verdict == LIFE_AGAIN;
}

bool life_expects(const struct life *l, void *out, size_t len)
{
	if (!l->over)
		memset(out, LIFE_UNTOUCHED, len);
	return !l->over;
}

bool life_got(struct life *l, const char *function, int ret, void *out, size_t len)
{
	const unsigned char *bytes = out;

	for (size_t i = 0; ret && i < len; i++)
		if (bytes[i] != LIFE_UNTOUCHED)
			fail_msg("%s failed and changed its output", function);
	if (ret)
		memset(out, 0, len);
	return life_judged(l, function, ret);
}

static void life_make_memory(struct life *l)
{
	struct ibv_context *remote;
	int odp;

	MAKE(l, &l->ctx, rpma_utils_get_ibv_context, LIFE_ADDR, RPMA_UTIL_IBV_CONTEXT_LOCAL);
	MAKE(l, &remote, rpma_utils_get_ibv_context, LIFE_ADDR, RPMA_UTIL_IBV_CONTEXT_REMOTE);
	STEP(l, rpma_utils_ibv_context_is_odp_capable, l->ctx, &odp);
	MAKE(l, &l->peer, rpma_peer_new, l->ctx);
	MAKE(l, &l->mr, rpma_mr_reg, l->peer, memory, LIFE_MEMORY, USAGE_ALL);
	STEP(l, rpma_mr_advise, l->mr, 0, LIFE_MEMORY, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0);
	if (l->over)
		return;
	rpma_mr_get_descriptor(l->mr, l->desc);
	MAKE(l, &l->remote, rpma_mr_remote_from_descriptor, l->desc, sizeof(l->desc));
}

static void life_make_configs(struct life *l)
{
	const char direct = 1;

	STEP(l, rpma_peer_cfg_new, &l->pcfg);
	if (!l->over)
		rpma_peer_cfg_delete(&l->pcfg);
	MAKE(l, &l->pcfg, rpma_peer_cfg_from_descriptor, &direct, sizeof(direct));
	STEP(l, rpma_srq_cfg_new, &l->srq_cfg);
	MAKE(l, &l->srq, rpma_srq_new, l->peer, l->srq_cfg);
	STEP(l, rpma_conn_cfg_new, &l->active_cfg);
	STEP(l, rpma_conn_cfg_new, &l->passive_cfg);
	STEP(l, rpma_conn_cfg_new, &l->refused_cfg);
	if (l->over)
		return;
	rpma_conn_cfg_set_cq_size(l->active_cfg, CQ_SIZE);
	rpma_conn_cfg_set_rcq_size(l->active_cfg, RCQ_SIZE);
	rpma_conn_cfg_set_compl_channel(l->active_cfg, true);
	rpma_conn_cfg_set_srq(l->passive_cfg, l->srq);
	rpma_conn_cfg_set_rcq_size(l->refused_cfg, RCQ_SIZE);
}

bool life_await_request(struct life *l)
{
	int fd, failed;

	if (l->over)
		return false;
	rpma_ep_get_fd(l->ep, &fd);
	rpma_conn_get_event_fd(l->active, &failed);
	return life_await_either(l, fd, failed, "connection request");
}

static void await_request(struct life *l, const struct rpma_conn_cfg *cfg)
{
	if (!life_await_request(l))
		return;
	MAKE(l, &l->in, rpma_ep_next_conn_req, l->ep, cfg);
}

/* One request is deleted before it is sent, and the listener refuses another one. */
static void life_refuse(struct life *l)
{
	MAKE(l, &l->out, rpma_conn_req_new, l->peer, LIFE_ADDR, port, l->active_cfg);
	STEP(l, rpma_conn_req_delete, &l->out);
	MAKE(l, &l->out, rpma_conn_req_new, l->peer, LIFE_ADDR, port, NULL);
	MAKE(l, &l->active, rpma_conn_req_connect, &l->out, NULL);
	await_request(l, l->refused_cfg);
	STEP(l, rpma_conn_req_delete, &l->in);
	life_await_event(l, l->active, RPMA_CONN_REJECTED);
	STEP(l, rpma_conn_delete, &l->active);
}

static void life_connect_both(struct life *l)
{
	struct rpma_conn_private_data pdata = {l->desc, sizeof(l->desc)};

	MAKE(l, &l->out, rpma_conn_req_new, l->peer, LIFE_ADDR, port, l->active_cfg);
	STEP(l, rpma_conn_req_recv, l->out, l->mr, 0, LIFE_MSG, NULL);
	MAKE(l, &l->active, rpma_conn_req_connect, &l->out, &pdata);
	await_request(l, l->passive_cfg);
	MAKE(l, &l->passive, rpma_conn_req_connect, &l->in, &pdata);
	life_await_event(l, l->active, RPMA_CONN_ESTABLISHED);
	life_await_event(l, l->passive, RPMA_CONN_ESTABLISHED);
	if (!l->over)
		rpma_conn_apply_remote_peer_cfg(l->active, l->pcfg);
}

static void life_disconnect(struct life *l)
{
	STEP(l, rpma_conn_disconnect, l->active);
	life_await_event(l, l->active, RPMA_CONN_CLOSED);
	life_await_event(l, l->passive, RPMA_CONN_CLOSED);
	STEP(l, rpma_conn_disconnect, l->passive);
}

/* Runs whether or not a call failed; afterwards every pointer is NULL. */
static void life_release(struct life *l)
{
	RELEASE(l, rpma_conn_req_delete, &l->out);
	RELEASE(l, rpma_conn_req_delete, &l->in);
	RELEASE(l, rpma_conn_delete, &l->active);
	RELEASE(l, rpma_conn_delete, &l->passive);
	RELEASE(l, rpma_ep_shutdown, &l->ep);
	RELEASE(l, rpma_conn_cfg_delete, &l->active_cfg);
	RELEASE(l, rpma_conn_cfg_delete, &l->passive_cfg);
	RELEASE(l, rpma_conn_cfg_delete, &l->refused_cfg);
	RELEASE(l, rpma_conn_cfg_delete, &l->limited_cfg);
	RELEASE(l, rpma_cq_delete, &l->common);
	RELEASE(l, rpma_srq_delete, &l->srq);
	RELEASE(l, rpma_srq_cfg_delete, &l->srq_cfg);
	RELEASE(l, rpma_peer_cfg_delete, &l->pcfg);
	RELEASE(l, rpma_mr_remote_delete, &l->remote);
	RELEASE(l, rpma_mr_dereg, &l->mr);
	RELEASE(l, rpma_peer_delete, &l->peer);
}

bool life_run(const struct life_judge *judge)
{
	struct life l = {.judge = judge};

	life_make_memory(&l);
	life_make_configs(&l);
	life_look_around(&l);
	life_make_common_queue(&l);
	MAKE(&l, &l.ep, rpma_ep_listen, l.peer, LIFE_ADDR, port);
	life_refuse(&l);
	life_refuse_with_a_word(&l, port);
	life_connect_both(&l);
	life_transfer(&l);
	life_disconnect(&l);
	STEP(&l, rpma_conn_delete, &l.active);
	life_give_up(&l, port);
	life_release(&l);
	return !l.over;
}
