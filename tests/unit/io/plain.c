/* SPDX-License-Identifier: BSD-3-Clause */
#include "plain.h"

#include <string.h>
#include <time.h>

#define PATIENCE_MS 10000

static const uint8_t plain_gid[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};

static uint64_t plain_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void plain_create_qp(struct plain *p)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = p->cq,
		.recv_cq = p->cq,
		.cap = {.max_send_wr = PLAIN_DEPTH,
			.max_recv_wr = PLAIN_DEPTH,
			.max_send_sge = 2,
			.max_recv_sge = 1},
		.qp_type = p->type,
		.sq_sig_all = 1,
	};

	p->qp = softrnic_create_plain_qp(p->pd, &attr);
	assert_non_null(p->qp);
}

void plain_open_as(struct plain *p, enum ibv_qp_type type)
{
	struct ibv_context *ctx = softrnic_context();
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		     IBV_ACCESS_REMOTE_ATOMIC;

	memset(p, 0, sizeof(*p));
	p->type = type;
	p->rd_atomic = 4;
	p->sq_psn = 1;
	p->rnr_retry = 7;
	p->min_rnr_timer = 12;
	p->pd = softrnic_alloc_pd(ctx);
	assert_non_null(p->pd);
	p->cq = softrnic_create_cq(ctx, 4 * PLAIN_DEPTH, NULL, NULL, 0);
	assert_non_null(p->cq);
	p->mr = softrnic_reg_mr(p->pd, p->buf, sizeof(p->buf), access);
	assert_non_null(p->mr);
	plain_create_qp(p);
}

void plain_open(struct plain *p)
{
	plain_open_as(p, IBV_QPT_RC);
}

void plain_destroy_qp(struct plain *p)
{
	if (p->qp)
		assert_int_equal(softrnic_destroy_plain_qp(p->qp), 0);
	p->qp = NULL;
}

void plain_close(struct plain *p)
{
	plain_destroy_qp(p);
	assert_int_equal(softrnic_dereg_mr(p->mr), 0);
	assert_int_equal(softrnic_destroy_cq(p->cq), 0);
	assert_int_equal(softrnic_dealloc_pd(p->pd), 0);
}

/* --- states --------------------------------------------------------------------------------- */

void plain_reset(struct plain *p)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	assert_int_equal(softrnic_modify_qp(p->qp, &attr, IBV_QP_STATE), 0);
}

void plain_init(struct plain *p)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						      IBV_ACCESS_REMOTE_READ |
						      IBV_ACCESS_REMOTE_ATOMIC};

	assert_int_equal(softrnic_modify_qp(p->qp, &attr,
					    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						    IBV_QP_ACCESS_FLAGS),
			 0);
}

void plain_rtr(struct plain *p, uint32_t peer)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
				   .path_mtu = IBV_MTU_1024,
				   .dest_qp_num = peer,
				   .rq_psn = 1,
				   .max_dest_rd_atomic = p->rd_atomic,
				   .min_rnr_timer = p->min_rnr_timer,
				   .ah_attr = {.is_global = 1, .port_num = 1}};
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	memcpy(attr.ah_attr.grh.dgid.raw, plain_gid, sizeof(plain_gid));
	attr.ah_attr.grh.hop_limit = 1;
	if (p->type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	assert_int_equal(softrnic_modify_qp(p->qp, &attr, mask), 0);
}

void plain_rts(struct plain *p)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS,
				   .timeout = p->timeout,
				   .retry_cnt = p->retry_cnt,
				   .rnr_retry = p->rnr_retry,
				   .sq_psn = p->sq_psn,
				   .max_rd_atomic = p->rd_atomic};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (p->type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	assert_int_equal(softrnic_modify_qp(p->qp, &attr, mask), 0);
}

void plain_ready(struct plain *p, uint32_t peer)
{
	plain_init(p);
	plain_rtr(p, peer);
	plain_rts(p);
}

enum ibv_qp_state plain_state(struct plain *p)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	assert_int_equal(softrnic_query_qp(p->qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

bool plain_dials(const struct plain *p, const struct plain *peer)
{
	return p->qp->qp_num > peer->qp->qp_num;
}

static void plain_renew_qp(struct plain *p)
{
	plain_destroy_qp(p);
	plain_create_qp(p);
}

/* Make two queue pairs, of which the first has the greater number. Numbers are given in turn, so a
 * second try is needed only after the last number of a port. */
void plain_pair_open(struct plain *dials, struct plain *awaits)
{
	plain_open(awaits);
	plain_open(dials);
	while (!plain_dials(dials, awaits)) {
		plain_renew_qp(awaits);
		plain_renew_qp(dials);
	}
}

/* --- messages ------------------------------------------------------------------------------- */

void plain_recv(struct plain *p, uint64_t wr_id)
{
	struct ibv_sge sge = {.addr = (uintptr_t)p->buf, .length = 64, .lkey = p->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(ibv_post_recv(p->qp, &wr, &bad), 0);
}

void plain_send(struct plain *p, uint64_t wr_id, const char *text)
{
	char *at = p->buf + 1024;
	struct ibv_sge sge = {
		.addr = (uintptr_t)at, .length = (uint32_t)strlen(text) + 1, .lkey = p->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = wr_id,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND},
			   *bad;

	strcpy(at, text);
	assert_int_equal(ibv_post_send(p->qp, &wr, &bad), 0);
}

static bool plain_poll_until(struct plain *p, uint64_t end_ms, struct ibv_wc *wc)
{
	const struct timespec pause = {.tv_nsec = 100000};
	int n;

	while ((n = ibv_poll_cq(p->cq, 1, wc)) == 0 && plain_now_ms() < end_ms)
		nanosleep(&pause, NULL);
	assert_true(n >= 0);
	return n == 1;
}

struct ibv_wc plain_wait(struct plain *p)
{
	struct ibv_wc wc;

	assert_true(plain_poll_until(p, plain_now_ms() + PATIENCE_MS, &wc));
	return wc;
}

void plain_expect_none(struct plain *p, int ms)
{
	struct ibv_wc wc;

	assert_false(plain_poll_until(p, plain_now_ms() + (uint64_t)ms, &wc));
}

static void plain_expect(struct plain *p, uint64_t wr_id, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc = plain_wait(p);

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.opcode, opcode);
}

static void plain_tell(struct plain *from, struct plain *to, const char *text)
{
	memset(to->buf, 0, 64);
	plain_recv(to, 7);
	plain_send(from, 8, text);
	plain_expect(to, 7, IBV_WC_RECV);
	assert_string_equal(to->buf, text);
	plain_expect(from, 8, IBV_WC_SEND);
}

void plain_talk(struct plain *a, struct plain *b)
{
	plain_tell(a, b, "there");
	plain_tell(b, a, "and back");
}
