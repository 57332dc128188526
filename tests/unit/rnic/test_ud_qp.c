/* SPDX-License-Identifier: BSD-3-Clause */
/* Two datagram queue pairs. The test carries their packets, loses some and forges others. */
#include "lib/unit.h"

#include <errno.h>
#include <string.h>

#include "softrnic/rnic/rnic.h"
#include "softrnic/rnic/ud_qp.h"

#define QKEY  0x11111111u
#define DEPTH 4

static struct mr_table *table;
static struct ibv_pd pd;
static struct mr *region;
static uint8_t memory[16384];
static struct cq send_cq, recv_cq;
static struct ud_qp *qp;
static struct ud_ah ah = {.path = {.from = {[10] = 0xff, 0xff, 192, 0, 2, 1},
				   .to = {[10] = 0xff, 0xff, 192, 0, 2, 2}}};
static unsigned events[32];
static uint8_t wire[DEPTH][UD_DATAGRAM_MAX];
static struct ud_packet packets[DEPTH];
static struct ud_flows flows;

static void on_async(void *owner, enum ibv_event_type event)
{
	events[event]++;
}

static struct srq srq;

static void make_qp(struct srq *shared)
{
	struct ud_qp_config cfg = {
		.mrs = table,
		.srq = shared,
		.pd = &pd,
		.send_cq = &send_cq,
		.recv_cq = &recv_cq,
		.qp_num = 0x9c4107,
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 2,
			.max_recv_sge = 2,
			.max_inline_data = 64},
		.async = on_async,
	};

	assert_int_equal(ud_qp_new(&cfg, &qp), 0);
}

static int setup(void **state)
{
	memset(events, 0, sizeof(events));
	memset(memory, 0, sizeof(memory));
	memset(&send_cq, 0, sizeof(send_cq));
	memset(&recv_cq, 0, sizeof(recv_cq));
	assert_int_equal(cq_init(&send_cq, 16), 0);
	assert_int_equal(cq_init(&recv_cq, 16), 0);
	assert_int_equal(mr_table_new(&table), 0);
	assert_int_equal(mr_new(table, &pd, memory, sizeof(memory), (uintptr_t)memory,
				IBV_ACCESS_LOCAL_WRITE, NULL, &region),
			 0);
	make_qp(NULL);
	for (int i = 0; i < DEPTH; i++)
		packets[i].bytes = wire[i];
	return 0;
}

static int teardown(void **state)
{
	ud_qp_delete(qp);
	mr_kill(region);
	mr_wait_idle(region);
	mr_delete(region);
	mr_table_delete(table);
	cq_fini(&send_cq);
	cq_fini(&recv_cq);
	return 0;
}

static void to_rts(void)
{
	ud_qp_set_qkey(qp, QKEY);
	ud_qp_move(qp, IBV_QPS_INIT, false);
	ud_qp_move(qp, IBV_QPS_RTR, false);
	ud_qp_move(qp, IBV_QPS_RTS, false);
}

static struct ibv_sge entry(size_t at, uint32_t len)
{
	return (struct ibv_sge){
		.addr = (uintptr_t)memory + at, .length = len, .lkey = region->ibv.lkey};
}

/* Post a signalled Send whose wr_id is its length. */
static int post(uint32_t lkey, uint32_t len, unsigned flags, uint32_t qkey)
{
	struct ibv_sge sge = entry(0, len);
	struct ibv_send_wr wr = {
		.wr_id = len,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = flags | IBV_SEND_SIGNALED,
		.wr.ud = {.ah = &ah.ibv, .remote_qpn = 0xc350ff, .remote_qkey = qkey},
	};
	struct ibv_send_wr *bad = NULL;
	int err;

	sge.lkey = lkey;
	err = ud_qp_post_send(qp, &wr, &bad);
	assert_ptr_equal(bad, err ? &wr : NULL);
	return err;
}

static int post_good(uint32_t len)
{
	return post(region->ibv.lkey, len, 0, QKEY);
}

static int post_recv(uint64_t wr_id, struct ibv_sge *sges, int n)
{
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = sges, .num_sge = n}, *bad;

	return ud_qp_post_recv(qp, &wr, &bad);
}

static void receive(uint32_t qkey, const void *bytes, size_t len)
{
	struct ud_header h = {.from_qpn = 0xc350ff, .to_qpn = 0x9c4107, .qkey = qkey};

	ud_qp_receive(qp, &h, &ah.path, bytes, len);
}

static struct ibv_wc polled(struct cq *cq)
{
	struct ibv_wc wc;

	assert_int_equal(cq_poll(cq, 1, &wc), 1);
	return wc;
}

static void nothing_polled(struct cq *cq)
{
	struct ibv_wc wc;

	assert_int_equal(cq_poll(cq, 1, &wc), 0);
}

/* --- sending -------------------------------------------------------------------------------- */

static void a_send_is_one_packet_and_completes_when_it_left(void **state)
{
	struct ud_header h;
	struct ibv_wc wc;

	to_rts();
	memcpy(memory, "hello", 5);
	assert_int_equal(post_good(5), 0);
	assert_int_equal(ud_qp_gather(qp, &flows, 0, packets, DEPTH), 1);
	assert_int_equal(packets[0].len, UD_HEADER_LEN + 5);
	assert_int_equal(packets[0].port, 0xc350);
	assert_memory_equal(packets[0].path.to, ah.path.to, UD_GID_LEN);
	assert_int_equal(ud_header_decode(wire[0], packets[0].len, &h), 0);
	assert_int_equal(h.from_qpn, 0x9c4107);
	assert_int_equal(h.to_qpn, 0xc350ff);
	assert_int_equal(h.qkey, QKEY);
	assert_memory_equal(wire[0] + UD_HEADER_LEN, "hello", 5);
	nothing_polled(&send_cq);
	ud_qp_sent(qp, 1);
	wc = polled(&send_cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_SEND);
	assert_int_equal(wc.wr_id, 5);
	assert_int_equal(wc.qp_num, 0x9c4107);
	assert_int_equal(ud_qp_gather(qp, &flows, 0, packets, DEPTH), 0);
}

static void inline_bytes_are_taken_when_posted(void **state)
{
	to_rts();
	memcpy(memory, "first", 5);
	assert_int_equal(post(0, 5, IBV_SEND_INLINE, QKEY), 0);
	memcpy(memory, "later", 5);
	assert_int_equal(ud_qp_gather(qp, &flows, 0, packets, DEPTH), 1);
	assert_memory_equal(wire[0] + UD_HEADER_LEN, "first", 5);
	assert_int_equal(post(0, 65, IBV_SEND_INLINE, QKEY), EINVAL);
}

static void a_key_with_the_highest_bit_is_the_queue_pairs_own(void **state)
{
	struct ud_header h;

	to_rts();
	assert_int_equal(post(region->ibv.lkey, 1, 0, 0x80000001), 0);
	assert_int_equal(ud_qp_gather(qp, &flows, 0, packets, DEPTH), 1);
	assert_int_equal(ud_header_decode(wire[0], packets[0].len, &h), 0);
	assert_int_equal(h.qkey, QKEY);
}

static void a_message_longer_than_a_packet_is_refused(void **state)
{
	to_rts();
	assert_int_equal(post_good(UD_PAYLOAD_MAX), 0);
	assert_int_equal(post_good(UD_PAYLOAD_MAX + 1), EINVAL);
}

static void a_slot_is_free_when_its_completion_is_polled(void **state)
{
	to_rts();
	for (uint32_t i = 0; i < DEPTH; i++)
		assert_int_equal(post_good(i), 0);
	assert_int_equal(post_good(9), ENOMEM);
	assert_int_equal(ud_qp_gather(qp, &flows, 0, packets, DEPTH), DEPTH);
	ud_qp_sent(qp, DEPTH);
	assert_int_equal(post_good(9), ENOMEM);
	assert_int_equal(polled(&send_cq).wr_id, 0);
	assert_int_equal(post_good(9), 0);
}

static void nothing_is_posted_before_rts_and_nothing_leaves_in_sqd(void **state)
{
	assert_int_equal(post_good(1), EINVAL);
	to_rts();
	ud_qp_move(qp, IBV_QPS_SQD, true);
	assert_int_equal(events[IBV_EVENT_SQ_DRAINED], 1);
	assert_int_equal(post_good(1), 0);
	assert_int_equal(ud_qp_gather(qp, &flows, 0, packets, DEPTH), 0);
	ud_qp_move(qp, IBV_QPS_RTS, false);
	assert_int_equal(ud_qp_gather(qp, &flows, 0, packets, DEPTH), 1);
}

static void a_send_of_other_memory_fails_after_those_before_it(void **state)
{
	to_rts();
	assert_int_equal(post_good(1), 0);
	assert_int_equal(post(region->ibv.lkey + 1, 2, 0, QKEY), 0);
	assert_int_equal(post_good(3), 0);
	assert_int_equal(ud_qp_gather(qp, &flows, 0, packets, DEPTH), 1);
	ud_qp_sent(qp, 1);
	assert_int_equal(ud_qp_gather(qp, &flows, 0, packets, DEPTH), 0);
	assert_int_equal(polled(&send_cq).status, IBV_WC_SUCCESS);
	assert_int_equal(polled(&send_cq).status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(polled(&send_cq).status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ud_qp_ibv(qp)->state, IBV_QPS_SQE);
	ud_qp_move(qp, IBV_QPS_RTS, false);
	assert_int_equal(post_good(4), 0);
	assert_int_equal(ud_qp_gather(qp, &flows, 0, packets, DEPTH), 1);
}

/* --- receiving ------------------------------------------------------------------------------ */

static void a_message_fills_a_receive_behind_forty_bytes(void **state)
{
	struct ibv_sge sges[2] = {entry(0, 42), entry(100, 50)};
	struct ibv_wc wc;

	to_rts();
	assert_int_equal(post_recv(7, sges, 2), 0);
	receive(QKEY, "hello", 5);
	wc = polled(&recv_cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.wr_id, 7);
	assert_int_equal(wc.byte_len, 45);
	assert_int_equal(wc.src_qp, 0xc350ff);
	assert_int_equal(wc.wc_flags, IBV_WC_GRH);
	assert_int_equal(memory[20], 0x45);
	assert_memory_equal(memory + 40, "he", 2);
	assert_memory_equal(memory + 100, "llo", 3);
	assert_int_equal(memory[103], 0);
}

/* A dropped message writes nothing, and the next message takes the receive. */
static void assert_dropped_then_taken(uint64_t dropped, const uint64_t *counter)
{
	static const uint8_t zeros[64];

	assert_int_equal(*counter, dropped);
	nothing_polled(&recv_cq);
	assert_memory_equal(memory, zeros, sizeof(zeros));
	receive(QKEY, "x", 1);
	assert_int_equal(polled(&recv_cq).status, IBV_WC_SUCCESS);
	assert_int_equal(memory[40], 'x');
}

static void a_message_with_another_key_is_dropped(void **state)
{
	struct ibv_sge sge = entry(0, 64);

	to_rts();
	assert_int_equal(post_recv(1, &sge, 1), 0);
	receive(QKEY + 1, "y", 1);
	assert_dropped_then_taken(1, &ud_qp_counters(qp)->bad_qkey);
}

static void a_message_that_does_not_fit_is_dropped(void **state)
{
	static const uint8_t bytes[25] = {1};
	struct ibv_sge sge = entry(0, 64);

	to_rts();
	assert_int_equal(post_recv(1, &sge, 1), 0);
	receive(QKEY, bytes, sizeof(bytes));
	receive(QKEY, bytes, sizeof(bytes));
	assert_dropped_then_taken(2, &ud_qp_counters(qp)->too_long);
}

static void a_message_before_rtr_is_dropped(void **state)
{
	struct ibv_sge sge = entry(0, 64);

	assert_int_equal(post_recv(1, &sge, 1), EINVAL);
	ud_qp_set_qkey(qp, QKEY);
	ud_qp_move(qp, IBV_QPS_INIT, false);
	assert_int_equal(post_recv(1, &sge, 1), 0);
	receive(QKEY, "y", 1);
	ud_qp_move(qp, IBV_QPS_RTR, false);
	assert_dropped_then_taken(1, &ud_qp_counters(qp)->not_ready);
}

static void a_message_without_a_receive_is_dropped(void **state)
{
	struct ibv_sge sge = entry(0, 64);

	to_rts();
	receive(QKEY, "y", 1);
	assert_int_equal(post_recv(1, &sge, 1), 0);
	assert_dropped_then_taken(1, &ud_qp_counters(qp)->no_receive);
}

static void a_receive_into_other_memory_fails_the_queue_pair(void **state)
{
	struct ibv_sge sge = entry(0, 64);

	to_rts();
	sge.lkey++;
	assert_int_equal(post_recv(1, &sge, 1), 0);
	assert_int_equal(post_recv(2, &sge, 1), 0);
	receive(QKEY, "y", 1);
	assert_int_equal(polled(&recv_cq).status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(polled(&recv_cq).status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ud_qp_ibv(qp)->state, IBV_QPS_ERR);
}

static int post_shared(uint64_t wr_id)
{
	struct ibv_sge sge = entry(0, 64);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	return srq_post(&srq, &wr, &bad);
}

static void receives_are_taken_from_a_shared_queue(void **state)
{
	static const uint8_t bytes[25] = {1};
	struct ibv_sge sge = entry(0, 64);

	ud_qp_delete(qp);
	memset(&srq, 0, sizeof(srq));
	assert_int_equal(srq_init(&srq, 4, 1), 0);
	make_qp(&srq);
	to_rts();
	assert_int_equal(post_recv(1, &sge, 1), EINVAL);
	receive(QKEY, "y", 1); /* the message is dropped, because no receive is posted */
	assert_int_equal(post_shared(1), 0);
	nothing_polled(&recv_cq);
	/* the message is too long, so the receive stays posted */
	receive(QKEY, bytes, sizeof(bytes));
	assert_int_equal(post_shared(2), 0);
	receive(QKEY, "x", 1);
	assert_int_equal(polled(&recv_cq).wr_id, 1);
	receive(QKEY, bytes, sizeof(bytes));
	ud_qp_move(qp, IBV_QPS_ERR, false);
	assert_int_equal(polled(&recv_cq).wr_id, 2);
	assert_int_equal(events[IBV_EVENT_QP_LAST_WQE_REACHED], 1);
	ud_qp_delete(qp);
	srq_fini(&srq);
	make_qp(NULL);
}

/* --- failures and ends ---------------------------------------------------------------------- */

static void a_full_completion_queue_fails_the_queue_pair(void **state)
{
	struct ibv_sge sge = entry(0, 64);

	assert_int_equal(cq_resize(&recv_cq, 1), 0);
	to_rts();
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(post_recv(i, &sge, 1), 0);
	receive(QKEY, "y", 1);
	assert_int_equal(events[IBV_EVENT_QP_FATAL], 0);
	receive(QKEY, "y", 1);
	assert_int_equal(events[IBV_EVENT_QP_FATAL], 1);
	assert_int_equal(ud_qp_ibv(qp)->state, IBV_QPS_ERR);
	receive(QKEY, "y", 1);
	assert_int_equal(ud_qp_counters(qp)->not_ready, 1);
}

static void in_err_all_of_it_is_flushed(void **state)
{
	static const uint8_t bytes[25];
	struct ibv_sge sge = entry(0, 64);

	to_rts();
	assert_int_equal(post_recv(1, &sge, 1), 0);
	assert_int_equal(post_recv(2, &sge, 1), 0);
	/* the first receive is filled, and its completion waits */
	receive(QKEY, bytes, sizeof(bytes));
	assert_int_equal(post_good(3), 0);
	ud_qp_move(qp, IBV_QPS_ERR, false);
	assert_int_equal(polled(&send_cq).status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(polled(&recv_cq).wr_id, 1);
	assert_int_equal(polled(&recv_cq).wr_id, 2);
	assert_int_equal(post_good(4), 0);
	assert_int_equal(polled(&send_cq).status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(post_recv(5, &sge, 1), 0);
	assert_int_equal(polled(&recv_cq).status, IBV_WC_WR_FLUSH_ERR);
}

static void reset_drops_all_of_it(void **state)
{
	struct ibv_sge sge = entry(0, 64);

	to_rts();
	assert_int_equal(post_recv(1, &sge, 1), 0);
	receive(QKEY, "y", 1);
	assert_int_equal(post_recv(2, &sge, 1), 0);
	for (uint32_t i = 0; i < DEPTH; i++)
		assert_int_equal(post_good(i), 0);
	ud_qp_move(qp, IBV_QPS_RESET, false);
	nothing_polled(&recv_cq);
	nothing_polled(&send_cq);
	to_rts();
	for (uint32_t i = 0; i < DEPTH; i++)
		assert_int_equal(post_good(i), 0);
	receive(QKEY, "y", 1);
	assert_int_equal(ud_qp_counters(qp)->no_receive, 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_send_is_one_packet_and_completes_when_it_left),
		CASE(inline_bytes_are_taken_when_posted),
		CASE(a_key_with_the_highest_bit_is_the_queue_pairs_own),
		CASE(a_message_longer_than_a_packet_is_refused),
		CASE(a_slot_is_free_when_its_completion_is_polled),
		CASE(nothing_is_posted_before_rts_and_nothing_leaves_in_sqd),
		CASE(a_send_of_other_memory_fails_after_those_before_it),
		CASE(a_message_fills_a_receive_behind_forty_bytes),
		CASE(a_message_with_another_key_is_dropped),
		CASE(a_message_that_does_not_fit_is_dropped),
		CASE(a_message_before_rtr_is_dropped),
		CASE(a_message_without_a_receive_is_dropped),
		CASE(a_receive_into_other_memory_fails_the_queue_pair),
		CASE(receives_are_taken_from_a_shared_queue),
		CASE(a_full_completion_queue_fails_the_queue_pair),
		CASE(in_err_all_of_it_is_flushed),
		CASE(reset_drops_all_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
