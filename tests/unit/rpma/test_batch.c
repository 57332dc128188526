/* SPDX-License-Identifier: BSD-3-Clause */
/* test_batch.c -- which operations a batch passes to the provider, and which stay in it after a
 * failure. */
#include <errno.h>
#include <string.h>

#include "lib/unit.h"
#include "script.h"

#define ALWAYS     RPMA_F_COMPLETION_ALWAYS
#define ON_ERROR   RPMA_F_COMPLETION_ON_ERROR
#define PERSISTENT RPMA_FLUSH_TYPE_PERSISTENT
#define VISIBLE    RPMA_FLUSH_TYPE_VISIBILITY
#define NATIVE     (VEXT_CAP_FLUSH | VEXT_CAP_FLUSH_ALL | VEXT_CAP_ATOMIC_WRITE)

enum { RADDR = 0x10000, RKEY = 0x42, SIZE = 4 };

static struct rpma_peer peer;
static struct rpma_conn *conn;
static struct rpma_mr_local *local;
static struct rpma_mr_remote *remote;
static struct rpma_batch *batch;
static char buf[64], token;

static int setup(void **state)
{
	const unsigned char desc[21] = {0, 0, RADDR >> 16, [9] = 4, [16] = RKEY, [20] = 0xff};
	struct rpma_conn_req *req = NULL;

	script_reset();
	peer = script_peer(&provider_script);
	return rpma_mr_remote_from_descriptor(desc, sizeof(desc), &remote) ||
	       rpma_mr_reg(&peer, buf, sizeof(buf), 0xff, &local) ||
	       rpma_conn_req_new(&peer, "a", "1", NULL, &req) ||
	       rpma_conn_req_connect(&req, NULL, &conn) || rpma_batch_new(conn, SIZE, &batch);
}

static int teardown(void **state)
{
	rpma_batch_delete(&batch);
	rpma_conn_delete(&conn);
	rpma_mr_dereg(&local);
	rpma_mr_remote_delete(&remote);
	return script_peer_end(&peer) ? -1 : 0;
}

static int add_write(size_t at)
{
	return rpma_batch_write(batch, remote, at, local, at, 1, ON_ERROR, NULL);
}

static void expect_count(uint32_t want)
{
	uint32_t n = 77;

	assert_int_equal(rpma_batch_get_count(batch, &n), 0);
	assert_int_equal(n, want);
}

static void expect_write(int i, size_t at)
{
	assert_int_equal(script.list[i].op, VEXT_OP_VERBS);
	assert_int_equal(script.list[i].wr.opcode, IBV_WR_RDMA_WRITE);
	assert_int_equal(script.list[i].wr.num_sge, 1);
	assert_true(script.list[i].wr.wr.rdma.remote_addr == RADDR + at);
	assert_true(script.segs[i][0].addr == (uintptr_t)buf + at);
}

static void a_batch_goes_out_as_one_list_in_its_order(void **state)
{
	static const char word[8] = "commit!";

	script.caps = NATIVE;
	assert_int_equal(add_write(8), 0);
	assert_int_equal(rpma_batch_flush(batch, remote, 8, 16, PERSISTENT, ON_ERROR, NULL), 0);
	assert_int_equal(rpma_batch_atomic_write(batch, remote, 24, word, ON_ERROR, NULL), 0);
	assert_int_equal(rpma_batch_flush_all(batch, VISIBLE, ALWAYS, &token), 0);
	expect_count(4);
	assert_int_equal(script.listed, 0); /* nothing is posted before rpma_batch_post() */
	assert_int_equal(rpma_batch_post(batch), 0);
	expect_count(0);
	assert_int_equal(script.listed, 4);
	expect_write(0, 8);
	assert_int_equal(script.list[0].wr.send_flags, 0);
	assert_int_equal(script.list[1].op, VEXT_OP_FLUSH);
	assert_int_equal(script.list[1].type, VEXT_FLUSH_STRICT);
	assert_true(script.list[1].wr.wr.rdma.remote_addr == RADDR + 8);
	assert_true(script.list[1].len == 16);
	assert_int_equal(script.list[2].op, VEXT_OP_ATOMIC_WRITE);
	assert_memory_equal(script.list[2].bytes, word, 8);
	assert_int_equal(script.list[3].op, VEXT_OP_FLUSH_ALL);
	assert_int_equal(script.list[3].type, VEXT_FLUSH_VISIBLE);
	assert_int_equal(script.list[3].wr.send_flags, IBV_SEND_SIGNALED);
	assert_true(script.list[3].wr.wr_id == (uintptr_t)&token);
}

static void towards_others_flush_and_atomic_write_are_what_they_are_alone(void **state)
{
	static const char word[8] = "commit!";

	assert_int_equal(add_write(0), 0);
	assert_int_equal(rpma_batch_flush(batch, remote, 8, 16, VISIBLE, ON_ERROR, NULL), 0);
	assert_int_equal(rpma_batch_atomic_write(batch, remote, 24, word, ALWAYS, NULL), 0);
	assert_int_equal(rpma_batch_post(batch), 0);
	assert_int_equal(script.listed, 3);
	assert_int_equal(script.list[1].wr.opcode, IBV_WR_RDMA_READ);
	assert_int_equal(script.segs[1][0].length, 8);
	assert_int_equal(script.list[2].wr.opcode, IBV_WR_RDMA_WRITE);
	assert_int_equal(script.list[2].wr.send_flags,
			 IBV_SEND_INLINE | IBV_SEND_FENCE | IBV_SEND_SIGNALED);
	assert_memory_equal(&script.inlined[2], word, 8);
}

static void what_the_peer_cannot_do_is_not_added(void **state)
{
	assert_int_equal(rpma_batch_flush(batch, remote, 0, 8, PERSISTENT, ALWAYS, NULL),
			 RPMA_E_NOSUPP);
	assert_int_equal(rpma_batch_flush_all(batch, PERSISTENT, ALWAYS, NULL), RPMA_E_NOSUPP);
	expect_count(0);
}

static void describe_before_the_peer_is_known(void)
{
	static const char word[8] = "commit!";

	script.caps_unknown = true;
	assert_int_equal(add_write(8), 0);
	assert_int_equal(rpma_batch_flush(batch, remote, 8, 16, PERSISTENT, ON_ERROR, NULL), 0);
	assert_int_equal(rpma_batch_atomic_write(batch, remote, 24, word, ALWAYS, NULL), 0);
	expect_count(3);
}

static void a_batch_is_chosen_for_the_peer_when_it_is_posted(void **state)
{
	describe_before_the_peer_is_known();
	assert_int_equal(rpma_batch_flush_all(batch, PERSISTENT, ALWAYS, NULL), 0);
	script.caps_unknown = false;
	script.caps = NATIVE;
	assert_int_equal(rpma_batch_post(batch), 0);
	assert_int_equal(script.listed, 4);
	assert_int_equal(script.list[1].op, VEXT_OP_FLUSH);
	assert_int_equal(script.list[1].type, VEXT_FLUSH_STRICT);
	assert_int_equal(script.list[2].op, VEXT_OP_ATOMIC_WRITE);
	assert_int_equal(script.list[2].wr.send_flags, IBV_SEND_SIGNALED);
	assert_int_equal(script.list[3].op, VEXT_OP_FLUSH_ALL);
}

static void apply_direct_write(bool direct)
{
	struct rpma_peer_cfg *pcfg = NULL;

	assert_int_equal(rpma_peer_cfg_new(&pcfg), 0);
	assert_int_equal(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, direct), 0);
	assert_int_equal(rpma_conn_apply_remote_peer_cfg(conn, pcfg), 0);
	assert_int_equal(rpma_peer_cfg_delete(&pcfg), 0);
}

/* When the batch is posted, the description of the region may have been deleted, and a declaration
 * may have been made or withdrawn. */
static void what_a_peer_turns_out_to_lack_is_not_posted(void **state)
{
	describe_before_the_peer_is_known();
	assert_int_equal(rpma_mr_remote_delete(&remote), 0);
	script.caps_unknown = false;
	assert_int_equal(rpma_batch_post(batch), RPMA_E_NOSUPP);
	assert_int_equal(script.listed, 0);
	expect_count(3);
	apply_direct_write(true);
	script.post_err = ENOMEM;
	assert_int_equal(rpma_batch_post(batch), RPMA_E_AGAIN);
	apply_direct_write(false);
	assert_int_equal(rpma_batch_post(batch), RPMA_E_NOSUPP);
	apply_direct_write(true);
	script.post_err = 0;
	assert_int_equal(rpma_batch_post(batch), 0);
	assert_int_equal(script.list[1].wr.opcode, IBV_WR_RDMA_READ);
	assert_true(script.list[1].wr.wr.rdma.remote_addr == RADDR + 8);
	assert_int_equal(script.segs[1][0].length, 8);
	assert_int_equal(script.list[2].wr.opcode, IBV_WR_RDMA_WRITE);
	assert_memory_equal(&script.inlined[2], "commit!", 8);
}

/* The provider refuses a post that is too early. The adaptations that librpma made for this post
 * must be undone. */
static void a_batch_posted_too_early_can_be_posted_again(void **state)
{
	describe_before_the_peer_is_known();
	script.post_err = EINVAL;
	assert_int_equal(rpma_batch_post(batch), RPMA_E_PROVIDER);
	assert_int_equal(script.list[1].op, VEXT_OP_FLUSH);
	assert_int_equal(script.list[2].op, VEXT_OP_ATOMIC_WRITE);
	expect_count(3);
	script.caps_unknown = false;
	script.post_err = 0;
	apply_direct_write(true);
	assert_int_equal(rpma_batch_post(batch), 0);
	assert_int_equal(script.list[1].wr.opcode, IBV_WR_RDMA_READ);
	assert_int_equal(script.list[2].wr.opcode, IBV_WR_RDMA_WRITE);
}

static void a_wrong_operation_is_not_added(void **state)
{
	struct rpma_segment segment = {local, 0, 1};

	script.caps = NATIVE;
	assert_int_equal(rpma_batch_write(batch, remote, 0, local, 0, 1, 0, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_batch_write(batch, remote, 0, NULL, 0, 0, ALWAYS, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_batch_write(batch, NULL, 0, local, 0, 0, ALWAYS, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_batch_atomic_write(batch, remote, 4, buf, ALWAYS, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_batch_atomic_write(batch, NULL, 8, buf, ALWAYS, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_batch_atomic_write(batch, remote, 8, NULL, ALWAYS, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_batch_atomic_write(batch, remote, 8, buf, 0, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_batch_flush(batch, NULL, 0, 1, VISIBLE, ALWAYS, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_batch_flush(batch, remote, 0, 1, VISIBLE, 0, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_batch_flush_all(batch, VISIBLE, 0, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_batch_flush_all(batch, (enum rpma_flush_type)7, ALWAYS, NULL),
			 RPMA_E_INVAL);
	assert_int_equal(rpma_batch_send(batch, &segment, 0, ALWAYS, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_batch_send(batch, NULL, 1, ALWAYS, NULL), RPMA_E_INVAL);
	assert_int_equal(rpma_batch_send(batch, &segment, 1, 0, NULL), RPMA_E_INVAL);
	expect_count(0);
}

static void a_full_batch_takes_nothing_more_until_it_is_posted_or_cleared(void **state)
{
	struct rpma_segment segment = {local, 0, 1};

	script.caps = NATIVE;
	for (size_t i = 0; i < SIZE; i++)
		assert_int_equal(add_write(i), 0);
	assert_int_equal(add_write(9), RPMA_E_AGAIN);
	assert_int_equal(rpma_batch_atomic_write(batch, remote, 8, buf, ALWAYS, NULL),
			 RPMA_E_AGAIN);
	assert_int_equal(rpma_batch_flush(batch, remote, 0, 1, VISIBLE, ALWAYS, NULL),
			 RPMA_E_AGAIN);
	assert_int_equal(rpma_batch_flush_all(batch, VISIBLE, ALWAYS, NULL), RPMA_E_AGAIN);
	assert_int_equal(rpma_batch_send(batch, &segment, 1, ALWAYS, NULL), RPMA_E_AGAIN);
	expect_count(SIZE);
	assert_int_equal(rpma_batch_post(batch), 0);
	for (int i = 0; i < SIZE; i++)
		expect_write(i, (size_t)i);
	assert_int_equal(add_write(9), 0);
	assert_int_equal(rpma_batch_clear(batch), 0);
	expect_count(0);
	script.listed = 0;
	/* posting an empty batch succeeds and posts nothing */
	assert_int_equal(rpma_batch_post(batch), 0);
	assert_int_equal(script.listed, 0);
}

static void no_room_in_the_send_queue_keeps_the_batch(void **state)
{
	assert_int_equal(add_write(0), 0);
	assert_int_equal(add_write(1), 0);
	script.post_err = ENOMEM;
	assert_int_equal(rpma_batch_post(batch), RPMA_E_AGAIN);
	expect_count(2);
	script.post_err = EINVAL;
	assert_int_equal(rpma_batch_post(batch), RPMA_E_PROVIDER);
	expect_count(2);
	script.post_err = 0;
	assert_int_equal(rpma_batch_post(batch), 0);
	expect_write(0, 0);
	expect_write(1, 1);
}

/* Some devices accept the first few operations. The remaining operations move up in the batch, with
 * their segments and inline bytes. */
static void what_was_not_posted_is_posted_next(void **state)
{
	struct rpma_segment segments[2] = {{local, 3, 5}, {local, 30, 7}};
	static const char word[8] = "commit!";

	assert_int_equal(add_write(0), 0);
	assert_int_equal(add_write(1), 0);
	assert_int_equal(rpma_batch_atomic_write(batch, remote, 24, word, ON_ERROR, NULL), 0);
	assert_int_equal(rpma_batch_send(batch, segments, 2, ALWAYS, &token), 0);
	script.post_err = ENOMEM;
	script.post_taken = 2;
	assert_int_equal(rpma_batch_post(batch), RPMA_E_AGAIN);
	expect_count(2);
	script.post_err = 0;
	/* this write takes the slot of the one that was posted */
	assert_int_equal(add_write(2), 0);
	assert_int_equal(rpma_batch_post(batch), 0);
	assert_int_equal(script.listed, 3);
	assert_memory_equal(&script.inlined[0], word, 8);
	assert_int_equal(script.list[1].wr.opcode, IBV_WR_SEND);
	assert_int_equal(script.list[1].wr.num_sge, 2);
	assert_true(script.segs[1][0].addr == (uintptr_t)buf + 3);
	assert_int_equal(script.segs[1][1].length, 7);
	expect_write(2, 2);
}

static void a_batch_is_not_larger_than_the_send_queue(void **state)
{
	struct rpma_batch *other = NULL;

	assert_int_equal(rpma_batch_new(conn, 11, &other), RPMA_E_INVAL);
	assert_null(other);
	assert_int_equal(rpma_batch_new(conn, 10, &other), 0); /* 10 is the default */
	assert_int_equal(rpma_batch_delete(&other), 0);
	assert_null(other);
}

static void a_gathered_message_names_its_segments(void **state)
{
	struct rpma_segment segments[4] = {
		{local, 0, 1}, {local, 8, 2}, {local, 16, 3}, {local, 24, 4}};

	assert_int_equal(script.qp_attr.cap.max_send_sge, RPMA_SEND_SEGMENTS_MAX);
	assert_int_equal(rpma_send_gather(conn, segments, 4, ALWAYS, &token), 0);
	assert_int_equal(script.send.opcode, IBV_WR_SEND);
	assert_int_equal(script.send.num_sge, 4);
	assert_true(script.send.wr_id == (uintptr_t)&token);
	for (int i = 0; i < 4; i++) {
		assert_true(script.segs[0][i].addr == (uintptr_t)buf + 8 * (size_t)i);
		assert_int_equal(script.segs[0][i].length, i + 1);
		assert_int_equal(script.segs[0][i].lkey, 0x51525354);
	}
	script.post_err = ENOMEM;
	assert_int_equal(rpma_send_gather(conn, segments, 4, ALWAYS, &token), RPMA_E_PROVIDER);
}

static void a_device_with_one_segment_gathers_nothing(void **state)
{
	struct rpma_segment segments[2] = {{local, 0, 1}, {local, 8, 2}};
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *poor = NULL;
	struct rpma_batch *b = NULL;

	peer.can.send_sge = 1;
	assert_int_equal(rpma_conn_req_new(&peer, "a", "1", NULL, &req), 0);
	assert_int_equal(rpma_conn_req_connect(&req, NULL, &poor), 0);
	assert_int_equal(rpma_send_gather(poor, segments, 2, ALWAYS, NULL), RPMA_E_NOSUPP);
	assert_int_equal(rpma_send_gather(poor, segments, 1, ALWAYS, NULL), 0);
	assert_int_equal(rpma_batch_new(poor, 1, &b), 0);
	assert_int_equal(rpma_batch_send(b, segments, 2, ALWAYS, NULL), RPMA_E_NOSUPP);
	assert_int_equal(rpma_batch_delete(&b), 0);
	assert_int_equal(rpma_conn_delete(&poor), 0);
}

#define ON_CONN(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_CONN(a_batch_goes_out_as_one_list_in_its_order),
		ON_CONN(towards_others_flush_and_atomic_write_are_what_they_are_alone),
		ON_CONN(what_the_peer_cannot_do_is_not_added),
		ON_CONN(a_batch_is_chosen_for_the_peer_when_it_is_posted),
		ON_CONN(what_a_peer_turns_out_to_lack_is_not_posted),
		ON_CONN(a_batch_posted_too_early_can_be_posted_again),
		ON_CONN(a_wrong_operation_is_not_added),
		ON_CONN(a_full_batch_takes_nothing_more_until_it_is_posted_or_cleared),
		ON_CONN(no_room_in_the_send_queue_keeps_the_batch),
		ON_CONN(what_was_not_posted_is_posted_next),
		ON_CONN(a_batch_is_not_larger_than_the_send_queue),
		ON_CONN(a_gathered_message_names_its_segments),
		ON_CONN(a_device_with_one_segment_gathers_nothing),
	};

	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
	return cmocka_run_group_tests_name("batches", tests, NULL, NULL);
}
