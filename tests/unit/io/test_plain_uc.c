/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreliable queue pairs (UC) without rdma_cm: they connect, lose messages without an error, and
 * survive their peer. */
#include "plain.h"

#include <errno.h>
#include <string.h>

static struct plain a, b;
static char notices[8192];

static void keep_notice(enum log_level level, const char *file, int line, const char *func,
			const char *text)
{
	if (level <= LOG_LVL_NOTICE)
		strncat(notices, text, sizeof(notices) - strlen(notices) - 1);
}

static int open_pair(void **state)
{
	notices[0] = '\0';
	softrnic_log_set(keep_notice, LOG_LVL_NOTICE);
	plain_open_as(&a, IBV_QPT_UC);
	plain_open_as(&b, IBV_QPT_UC);
	return 0;
}

static int close_pair(void **state)
{
	plain_close(&a);
	plain_close(&b);
	softrnic_log_set(NULL, LOG_LVL_NOTICE);
	return 0;
}

static void meet(void)
{
	plain_ready(&a, b.qp->qp_num);
	plain_ready(&b, a.qp->qp_num);
	plain_talk(&a, &b);
}

static void expect_sent(struct plain *p, uint64_t wr_id)
{
	struct ibv_wc wc = plain_wait(p);

	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

static uint64_t lost_in(struct plain *p)
{
	const char *const *names;
	uint64_t values[64];
	int n = softrnic_qp_counters(p->qp, &names, values, 64);

	for (int i = 0; i < n; i++)
		if (strcmp(names[i], "lost_in") == 0)
			return values[i];
	fail();
	return 0;
}

/* Wait until a message is lost: a Send completes before it arrives, so its completion does not show
 * whether it was lost. */
static void wait_until_lost(struct plain *p, uint64_t n)
{
	for (int i = 0; i < 1000 && lost_in(p) < n; i++)
		plain_expect_none(p, 5);
	assert_int_equal(lost_in(p), n);
}

static void write_to(struct plain *p, uint64_t wr_id, uint32_t rkey, const void *at)
{
	struct ibv_sge sge = {.addr = (uintptr_t)p->buf, .length = 64, .lkey = p->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = wr_id,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .wr.rdma = {.remote_addr = (uintptr_t)at, .rkey = rkey}},
			   *bad;

	assert_int_equal(ibv_post_send(p->qp, &wr, &bad), 0);
}

static void they_meet_and_say_what_they_are(void **state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	meet();
	assert_int_equal(a.qp->qp_type, IBV_QPT_UC);
	assert_int_equal(softrnic_query_qp(a.qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(init.qp_type, IBV_QPT_UC);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
}

static void lost_messages_are_not_reported(void **state)
{
	meet();
	plain_send(&a, 1, "without a receive");
	expect_sent(&a, 1);
	write_to(&a, 2, b.mr->rkey + 1, b.buf);
	expect_sent(&a, 2);
	wait_until_lost(&b, 2);
	plain_talk(&a, &b);
}

static void one_may_be_its_own_peer(void **state)
{
	plain_ready(&a, a.qp->qp_num);
	plain_recv(&a, 1);
	plain_send(&a, 2, "to itself");
	for (int i = 0; i < 2; i++)
		assert_int_equal(plain_wait(&a).status, IBV_WC_SUCCESS);
	assert_string_equal(a.buf, "to itself");
}

static void after_a_reset_both_meet_again(void **state)
{
	meet();
	plain_reset(&a);
	plain_reset(&b);
	meet();
}

/* As on a network, nothing reports that the peer has ended. */
static void without_its_peer_it_sends_into_the_void(void **state)
{
	meet();
	plain_destroy_qp(&b);
	for (uint64_t i = 0; i < 50; i++) {
		plain_send(&a, i, "gone");
		expect_sent(&a, i);
	}
	assert_int_equal(plain_state(&a), IBV_QPS_RTS);
}

/* Messages wait until the two queue pairs are connected for the first time. */
static void what_is_sent_early_waits(void **state)
{
	plain_ready(&a, b.qp->qp_num);
	plain_send(&a, 1, "early");
	plain_expect_none(&a, 400); /* longer than SOFTRNIC_RETRY_MS */
	plain_init(&b);
	plain_recv(&b, 2);
	plain_rtr(&b, a.qp->qp_num);
	assert_int_equal(plain_wait(&b).status, IBV_WC_SUCCESS);
	assert_string_equal(b.buf, "early");
	expect_sent(&a, 1);
}

static void a_reliable_peer_is_refused_and_explained(void **state)
{
	plain_close(&b);
	plain_open_as(&b, IBV_QPT_RC);
	plain_ready(&a, b.qp->qp_num);
	plain_ready(&b, a.qp->qp_num);
	plain_recv(&b, 1);
	plain_send(&a, 2, "to another type");
	plain_expect_none(&b, 200);
	plain_expect_none(&a, 1);
	assert_non_null(strstr(notices, "make both of the same type"));
}

static void reads_are_refused(void **state)
{
	struct ibv_sge sge = {.addr = (uintptr_t)a.buf, .length = 8, .lkey = a.mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ}, *bad;

	plain_ready(&a, b.qp->qp_num);
	assert_int_equal(ibv_post_send(a.qp, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_pair, close_pair)
	const struct CMUnitTest tests[] = {
		CASE(they_meet_and_say_what_they_are),
		CASE(lost_messages_are_not_reported),
		CASE(one_may_be_its_own_peer),
		CASE(after_a_reset_both_meet_again),
		CASE(without_its_peer_it_sends_into_the_void),
		CASE(what_is_sent_early_waits),
		CASE(a_reliable_peer_is_refused_and_explained),
		CASE(reads_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
