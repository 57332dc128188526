/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_sweep.c -- repeats a complete use of librpma over the software RNIC ("a life"), with both
 * sides in this thread. In each life another call of the provider fails. No call may hang, and no
 * object may be left.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/fds.h"
#include "lib/unit.h"
#include "librpma.h"
#include "provider/fault.h"
#include "rpma/conn.h"

#define ADDR       "127.0.0.1"
#define THEN(call) ret = ret ? ret : (call)

enum { SIZE = 4096, CALLS_MAX = 300 };

struct life {
	struct rpma_peer *peer;
	struct rpma_mr_local *mr;
	struct rpma_mr_remote *remote;
	struct rpma_srq *srq;
	struct rpma_ep *ep;
	struct rpma_conn_cfg *cfg;
	struct rpma_conn_req *out, *in;
	struct rpma_conn *active, *passive;
};

#define NO_CUT LONG_MAX

/* bytes that may still be sent before the connection breaks */
static atomic_long sends_left = NO_CUT;

/* visible to softrnic, whose calls these functions replace */
#define INTERPOSED __attribute__((visibility("default")))

INTERPOSED ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	static ssize_t (*real)(int, const struct msghdr *, int);
	long left = atomic_load(&sends_left);
	struct msghdr part = *msg;
	struct iovec first = msg->msg_iov[0];

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "sendmsg");
	if (left == NO_CUT)
		return real(fd, msg, flags);
	if (left == 0) {
		shutdown(fd, SHUT_RDWR);
		errno = ECONNRESET;
		return -1;
	}
	first.iov_len = (long)first.iov_len < left ? first.iov_len : (size_t)left;
	part.msg_iov = &first;
	part.msg_iovlen = 1;
	atomic_fetch_sub(&sends_left, (long)first.iov_len);
	return real(fd, &part, flags);
}

INTERPOSED ssize_t send(int fd, const void *buf, size_t len, int flags)
{
	struct iovec iov = {.iov_base = (void *)buf, .iov_len = len};

	return sendmsg(fd, &(struct msghdr){.msg_iov = &iov, .msg_iovlen = 1}, flags);
}

static char memory[SIZE];
static int idle_fds; /* descriptors that the engine keeps open between two lives */

/* The engine's thread closes sockets, even listening ones, a moment later, so wait. */
static int fds_left_open(void)
{
	int n = open_fds();

	for (int ms = 0; ms < 5000 && n > idle_fds; ms++) {
		usleep(1000);
		n = open_fds();
	}
	return n - idle_fds;
}

static int expect_event(struct rpma_conn *conn, enum rpma_conn_event wanted)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	int ret = rpma_conn_next_event(conn, &event);

	return ret ? ret : event == wanted ? 0 : RPMA_E_UNKNOWN;
}

static int make_objects(struct life *l)
{
	struct ibv_context *ctx = NULL;
	int ret = 0, odp;

	THEN(rpma_utils_get_ibv_context(ADDR, RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx));
	THEN(rpma_utils_ibv_context_is_odp_capable(ctx, &odp));
	THEN(rpma_peer_new(ctx, &l->peer));
	THEN(rpma_mr_reg(l->peer, memory, SIZE, 0xff, &l->mr));
	THEN(rpma_mr_advise(l->mr, 0, SIZE, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0));
	THEN(rpma_srq_new(l->peer, NULL, &l->srq));
	THEN(rpma_srq_recv(l->srq, l->mr, 0, 8, NULL));
	THEN(rpma_conn_cfg_new(&l->cfg));
	THEN(rpma_conn_cfg_set_rcq_size(l->cfg, 4));
	THEN(rpma_conn_cfg_set_compl_channel(l->cfg, true));
	return ret;
}

static int connect_both(struct life *l)
{
	struct rpma_conn_private_data pdata;
	unsigned char desc[21];
	uint16_t number = 0;
	char port[8];
	int ret = 0;

	THEN(rpma_mr_get_descriptor(l->mr, desc));
	pdata = (struct rpma_conn_private_data){desc, sizeof(desc)};
	THEN(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &l->remote));
	THEN(rpma_ep_listen(l->peer, ADDR, "0", &l->ep));
	THEN(rpma_ep_get_port(l->ep, &number));
	snprintf(port, sizeof(port), "%u", (unsigned)number);
	THEN(rpma_conn_req_new(l->peer, ADDR, port, l->cfg, &l->out));
	THEN(rpma_conn_req_recv(l->out, l->mr, 0, 8, NULL));
	THEN(rpma_conn_req_connect(&l->out, NULL, &l->active));
	THEN(rpma_ep_next_conn_req(l->ep, NULL, &l->in));
	THEN(rpma_conn_req_connect(&l->in, &pdata, &l->passive));
	THEN(expect_event(l->active, RPMA_CONN_ESTABLISHED));
	THEN(expect_event(l->passive, RPMA_CONN_ESTABLISHED));
	return ret;
}

static int transfer(struct life *l)
{
	struct rpma_cq *cq = NULL;
	struct ibv_wc wc;
	bool is_rcq;
	int ret = 0;

	THEN(rpma_recv(l->active, l->mr, 0, 8, NULL));
	THEN(rpma_write(l->active, l->remote, 64, l->mr, 0, 64, RPMA_F_COMPLETION_ON_ERROR, NULL));
	THEN(rpma_flush(l->active, l->remote, 64, 64, RPMA_FLUSH_TYPE_VISIBILITY,
			RPMA_F_COMPLETION_ALWAYS, NULL));
	THEN(rpma_conn_wait(l->active, 0, &cq, &is_rcq));
	THEN(rpma_cq_get_wc(cq, 1, &wc, NULL));
	THEN(rpma_conn_disconnect(l->active));
	THEN(expect_event(l->active, RPMA_CONN_CLOSED));
	return ret;
}

/* Release all objects. Afterwards every pointer is NULL, whatever failed. */
static int release(struct life *l)
{
	int ret = rpma_conn_req_delete(&l->out);

	ret |= rpma_conn_req_delete(&l->in);
	ret |= rpma_conn_delete(&l->active);
	ret |= rpma_conn_delete(&l->passive);
	ret |= rpma_ep_shutdown(&l->ep);
	ret |= rpma_conn_cfg_delete(&l->cfg);
	ret |= rpma_srq_delete(&l->srq);
	ret |= rpma_mr_remote_delete(&l->remote);
	ret |= rpma_mr_dereg(&l->mr);
	ret |= rpma_peer_delete(&l->peer);
	assert_true(!l->out && !l->in && !l->active && !l->passive && !l->ep && !l->srq && !l->mr &&
		    !l->peer);
	return ret;
}

static int live_once(void)
{
	struct life l = {0};
	int ret = 0;

	THEN(make_objects(&l));
	THEN(connect_both(&l));
	THEN(transfer(&l));
	/* Not THEN(): the objects must be released in any case. */
	return release(&l) | ret;
}

/* Start the engine, which keeps some descriptors open. */
static int setup(void **state)
{
	int ret = live_once();

	usleep(200000);
	idle_fds = open_fds();
	return ret;
}

/* Run a life in which the nth call fails. Returns false if a life has fewer calls. */
static bool fail_call(unsigned int nth)
{
	bool fired;
	int ret, left;

	fault_arm("*", nth, EIO);
	ret = live_once();
	fired = fault_fired();
	fault_disarm();
	if (fired && !ret)
		fail_msg("call %u failed and nobody said so", nth);
	if (!fired && ret)
		fail_msg("no call failed at %u, but a life did", nth);
	left = fds_left_open();
	if (left > 0)
		fail_msg("failing call %u left %d descriptors open", nth, left);
	return fired;
}

static void whatever_call_fails_nothing_hangs_or_is_left(void **state)
{
	unsigned int nth = 0;

	while (fail_call(++nth))
		assert_in_range(nth, 1, CALLS_MAX);
	/* A life makes some dozens of calls; if it made fewer, it stopped early. */
	assert_in_range(nth, 50, CALLS_MAX);
	assert_int_equal(live_once(), 0);
	assert_int_equal(fds_left_open(), 0);
}

static void a_failed_accept_reaches_the_other_end(void **state)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	struct life l = {0};
	int ret = 0;

	THEN(make_objects(&l));
	fault_arm("accept", 1, EIO);
	THEN(connect_both(&l));
	assert_true(fault_fired());
	fault_disarm();
	assert_int_equal(ret, RPMA_E_PROVIDER);
	assert_null(l.passive);
	assert_int_equal(rpma_conn_next_event(l.active, &event), 0);
	assert_int_equal(event, RPMA_CONN_REJECTED);
	assert_int_equal(release(&l), 0);
	assert_int_equal(fds_left_open(), 0);
}

static void a_cut_link_fails_what_is_under_way(void **state)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	struct rpma_cq *cq = NULL;
	struct life l = {0};
	struct ibv_wc wc;
	int ret = 0;

	THEN(make_objects(&l));
	THEN(connect_both(&l));
	assert_int_equal(ret, 0);
	atomic_store(&sends_left, 100);
	THEN(rpma_write(l.active, l.remote, 0, l.mr, 0, SIZE, RPMA_F_COMPLETION_ALWAYS, memory));
	THEN(rpma_flush(l.active, l.remote, 0, SIZE, RPMA_FLUSH_TYPE_VISIBILITY,
			RPMA_F_COMPLETION_ALWAYS, NULL));
	THEN(rpma_conn_get_cq(l.active, &cq));
	assert_int_equal(ret, 0);
	do
		ret = rpma_cq_get_wc(cq, 1, &wc, NULL);
	while (ret == RPMA_E_NO_COMPLETION || (!ret && wc.status == IBV_WC_SUCCESS));
	assert_int_equal(ret, 0);
	assert_int_equal(rpma_conn_next_event(l.passive, &event), 0);
	assert_true(event == RPMA_CONN_LOST || event == RPMA_CONN_CLOSED);
	atomic_store(&sends_left, NO_CUT);
	assert_int_equal(release(&l), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whatever_call_fails_nothing_hangs_or_is_left),
		cmocka_unit_test(a_failed_accept_reaches_the_other_end),
		cmocka_unit_test(a_cut_link_fails_what_is_under_way),
	};

	setenv("RPMA_PROVIDER", "fault", 1);
	setenv("RPMA_FAULT_INNER", "softrnic", 1);
	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
	return cmocka_run_group_tests_name("faults over the software RNIC", tests, setup, NULL);
}
