/* SPDX-License-Identifier: BSD-3-Clause */
/* test_ops.c -- which work requests, or native flushes, the operations become. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "lib/unit.h"
#include "script.h"

#define ALWAYS   RPMA_F_COMPLETION_ALWAYS
#define ON_ERROR RPMA_F_COMPLETION_ON_ERROR

enum { RADDR = 0x10000, RSIZE = 1000, RKEY = 0x42 };

static struct rpma_peer peer;
static struct rpma_conn *conn;
static struct rpma_mr_local *local;
static struct rpma_mr_remote *remote;
static char buf[64], token;

static struct rpma_mr_remote *remote_region(uint64_t size, int usage)
{
	struct rpma_mr_remote *mr = NULL;
	unsigned char desc[21] = {0, 0, RADDR >> 16, [16] = RKEY, [20] = (unsigned char)usage};

	for (int i = 0; i < 8; i++)
		desc[8 + i] = (unsigned char)(size >> 8 * i);
	assert_int_equal(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &mr), 0);
	return mr;
}

static int setup(void **state)
{
	struct rpma_conn_req *req = NULL;

	script_reset();
	peer = script_peer(&provider_script);
	remote = remote_region(RSIZE, 0xff);
	return rpma_mr_reg(&peer, buf, sizeof(buf), 0xff, &local) ||
	       rpma_conn_req_new(&peer, "a", "1", NULL, &req) ||
	       rpma_conn_req_connect(&req, NULL, &conn);
}

static int teardown(void **state)
{
	rpma_conn_delete(&conn);
	rpma_mr_dereg(&local);
	rpma_mr_remote_delete(&remote);
	return script_peer_end(&peer) ? -1 : 0;
}

/* Check the segment and the target address of the last work request. */
static void expect_rdma(enum ibv_wr_opcode opcode, size_t local_offset, size_t remote_offset,
			uint32_t len)
{
	assert_int_equal(script.send.opcode, opcode);
	assert_int_equal(script.send.num_sge, 1);
	assert_true(script.sge.addr == (uintptr_t)buf + local_offset);
	assert_int_equal(script.sge.length, len);
	assert_int_equal(script.sge.lkey, 0x51525354);
	assert_true(script.send.wr.rdma.remote_addr == RADDR + remote_offset);
	assert_int_equal(script.send.wr.rdma.rkey, RKEY);
	assert_true(script.send.wr_id == (uintptr_t)&token);
}

static void reads_and_writes_name_both_memories(void **state)
{
	assert_int_equal(rpma_read(conn, local, 8, remote, 16, 32, ALWAYS, &token), 0);
	expect_rdma(IBV_WR_RDMA_READ, 8, 16, 32);
	assert_int_equal(script.send.send_flags, IBV_SEND_SIGNALED);
	assert_int_equal(rpma_write(conn, remote, 16, local, 8, 32, ON_ERROR, &token), 0);
	expect_rdma(IBV_WR_RDMA_WRITE, 8, 16, 32);
	assert_int_equal(script.send.send_flags, 0);
	assert_int_equal(
		rpma_write_with_imm(conn, remote, 16, local, 8, 32, ALWAYS, 0x01020304, &token), 0);
	expect_rdma(IBV_WR_RDMA_WRITE_WITH_IMM, 8, 16, 32);
	assert_int_equal(ntohl(script.send.imm_data), 0x01020304);
}

static void an_operation_of_no_bytes_names_no_memory(void **state)
{
	assert_int_equal(rpma_read(conn, NULL, 0, NULL, 0, 0, ALWAYS, &token), 0);
	assert_int_equal(script.send.num_sge, 0);
	assert_int_equal(script.send.wr.rdma.rkey, 0);
	assert_true(script.send.wr.rdma.remote_addr == 0);
	assert_int_equal(rpma_write(conn, NULL, 0, NULL, 0, 0, ALWAYS, &token), 0);
	assert_int_equal(script.send.num_sge, 0);
	assert_int_equal(rpma_send(conn, NULL, 0, 0, ALWAYS, &token), 0);
	assert_int_equal(script.send.num_sge, 0);
	assert_int_equal(rpma_recv(conn, NULL, 0, 0, &token), 0);
	assert_int_equal(script.recv.num_sge, 0);
	/* A call with only one of the two memory regions is an error. A call without regions and
	 * without bytes is permitted. */
	assert_int_equal(rpma_write(conn, remote, 0, local, 0, 0, ALWAYS, &token), 0);
	assert_int_equal(script.send.num_sge, 1);
}

static void any_flags_but_0_are_taken_and_bit_1_asks_for_a_completion(void **state)
{
	for (int flags = 1; flags < 16; flags++) {
		assert_int_equal(rpma_write(conn, remote, 0, local, 0, 1, flags, NULL), 0);
		assert_int_equal(script.send.send_flags, flags & 2 ? IBV_SEND_SIGNALED : 0);
	}
}

static void messages_carry_their_segment_and_immediate(void **state)
{
	assert_int_equal(rpma_send(conn, local, 4, 8, ALWAYS, &token), 0);
	assert_int_equal(script.send.opcode, IBV_WR_SEND);
	assert_true(script.sge.addr == (uintptr_t)buf + 4);
	assert_int_equal(script.sge.length, 8);
	assert_int_equal(rpma_send_with_imm(conn, local, 4, 8, ALWAYS, 7, &token), 0);
	assert_int_equal(script.send.opcode, IBV_WR_SEND_WITH_IMM);
	assert_int_equal(ntohl(script.send.imm_data), 7);
	assert_int_equal(rpma_recv(conn, local, 8, 16, &token), 0);
	assert_true(script.recv.wr_id == (uintptr_t)&token);
	assert_true(script.sge.addr == (uintptr_t)buf + 8);
	assert_int_equal(script.sge.length, 16);
}

static void an_atomic_write_is_eight_inline_bytes_after_a_fence(void **state)
{
	static const char word[8] = "commit!";

	assert_int_equal(rpma_atomic_write(conn, remote, 24, word, ALWAYS, &token), 0);
	assert_int_equal(script.send.opcode, IBV_WR_RDMA_WRITE);
	assert_int_equal(script.send.send_flags,
			 IBV_SEND_INLINE | IBV_SEND_FENCE | IBV_SEND_SIGNALED);
	assert_int_equal(script.sge.length, 8);
	assert_memory_equal(&script.inlined[0], word, 8);
	assert_true(script.send.wr.rdma.remote_addr == RADDR + 24);
}

static void
towards_a_capable_peer_an_atomic_write_is_native_and_fenced_after_reads_only(void **state)
{
	static const char word[8] = "commit!";

	script.caps = VEXT_CAP_ATOMIC_WRITE | VEXT_CAP_FLUSH;
	assert_int_equal(rpma_atomic_write(conn, remote, 24, word, ALWAYS, &token), 0);
	/* the operation was not an ordinary work request */
	assert_int_equal(script.send.num_sge, 0);
	assert_true(script.atomic.wr_id == (uintptr_t)&token);
	assert_int_equal(script.atomic.send_flags, IBV_SEND_SIGNALED);
	assert_int_equal(script.atomic.rkey, RKEY);
	assert_true(script.atomic.addr == RADDR + 24);
	assert_memory_equal(script.atomic.bytes, word, 8);
	script.post_err = ENOMEM;
	assert_int_equal(rpma_atomic_write(conn, remote, 24, word, ALWAYS, &token),
			 RPMA_E_PROVIDER);
	/* The device cannot flush, so a read is posted instead. */
	script.post_err = 0;
	script.caps = VEXT_CAP_ATOMIC_WRITE;
	assert_int_equal(rpma_atomic_write(conn, remote, 24, word, ALWAYS, &token), 0);
	assert_int_equal(script.atomic.send_flags, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
}

static void a_failed_post_is_a_provider_error(void **state)
{
	script.post_err = ENOMEM;
	assert_int_equal(rpma_read(conn, local, 0, remote, 0, 1, ALWAYS, NULL), RPMA_E_PROVIDER);
	assert_int_equal(rpma_write(conn, remote, 0, local, 0, 1, ALWAYS, NULL), RPMA_E_PROVIDER);
	assert_int_equal(rpma_write_with_imm(conn, remote, 0, local, 0, 1, ALWAYS, 0, NULL),
			 RPMA_E_PROVIDER);
	assert_int_equal(rpma_atomic_write(conn, remote, 0, buf, ALWAYS, NULL), RPMA_E_PROVIDER);
	assert_int_equal(rpma_send(conn, local, 0, 1, ALWAYS, NULL), RPMA_E_PROVIDER);
	assert_int_equal(rpma_send_with_imm(conn, local, 0, 1, ALWAYS, 0, NULL), RPMA_E_PROVIDER);
	assert_int_equal(rpma_recv(conn, local, 0, 1, NULL), RPMA_E_PROVIDER);
	assert_int_equal(rpma_flush(conn, remote, 0, 1, RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS, NULL),
			 RPMA_E_PROVIDER);
	script.caps = VEXT_CAP_FLUSH;
	assert_int_equal(rpma_flush(conn, remote, 0, 1, RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS, NULL),
			 RPMA_E_PROVIDER);
}

static void declare_direct_write(bool direct)
{
	struct rpma_peer_cfg *pcfg = NULL;

	assert_int_equal(rpma_peer_cfg_new(&pcfg), 0);
	assert_int_equal(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, direct), 0);
	assert_int_equal(rpma_conn_apply_remote_peer_cfg(conn, pcfg), 0);
	assert_int_equal(rpma_peer_cfg_delete(&pcfg), 0);
}

static int flush(struct rpma_mr_remote *mr, size_t offset, size_t len, enum rpma_flush_type type)
{
	return rpma_flush(conn, mr, offset, len, type, ALWAYS, &token);
}

static void an_old_peer_is_flushed_by_a_read_of_eight_bytes(void **state)
{
	assert_int_equal(flush(remote, 16, 100, RPMA_FLUSH_TYPE_VISIBILITY), 0);
	assert_int_equal(script.send.opcode, IBV_WR_RDMA_READ);
	assert_int_equal(script.sge.length, 8);
	assert_true(script.send.wr.rdma.remote_addr == RADDR + 16);
	assert_true(script.send.wr_id == (uintptr_t)&token);
	assert_int_equal(script.send.send_flags, IBV_SEND_SIGNALED);
	assert_int_equal(script.flushes, 0);
}

static void persistence_of_an_old_peer_needs_its_declaration(void **state)
{
	assert_int_equal(flush(remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT), RPMA_E_NOSUPP);
	declare_direct_write(true);
	assert_int_equal(flush(remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT), 0);
	declare_direct_write(false);
	assert_int_equal(flush(remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT), RPMA_E_NOSUPP);
}

/* The peer agreed to the extensions, so it does not treat this end's reads as flushes. */
static void persistence_is_no_read_of_a_peer_that_writes_nothing_back_for_reads(void **state)
{
	script.caps = VEXT_CAP_SOFTRNIC;
	declare_direct_write(true);
	assert_int_equal(flush(remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT), RPMA_E_NOSUPP);
	assert_int_equal(script.posts, 0);
	assert_int_equal(flush(remote, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY), 0);
	assert_int_equal(script.send.opcode, IBV_WR_RDMA_READ);
}

static void the_read_of_a_flush_stays_inside_the_region(void **state)
{
	static const struct {
		uint64_t size;
		size_t offset, len;
		uint64_t read_offset;
		uint32_t read_len;
	} table[] = {
		{1000, 0, 8, 0, 8},
		{1000, 992, 8, 992, 8},
		{1000, 993, 7, 992, 8},
		{1000, 999, 1, 992, 8},
		{1000, 1000, 1, 1000, 8},
		{1000, 1000, 0, 0, 8}, /* a length of 0 means the whole region */
		{8, 5, 1, 0, 8},
		{5, 0, 5, 0, 5},
		{1, 0, 1, 0, 1},
		/* The range is outside the region, so the peer has to refuse it. */
		{1000, 999, 2, 999, 8},
		{1000, 2000, 8, 2000, 8},
		{1000, 2000, 0, 2000, 8},
		{1000, 0, 1001, 993, 8},
		{1000, 500, 2000, 2492, 8},
		{1000, 990, SIZE_MAX - 990, SIZE_MAX - 8, 8},
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct rpma_mr_remote *mr = remote_region(table[i].size, 0xff);

		assert_int_equal(
			flush(mr, table[i].offset, table[i].len, RPMA_FLUSH_TYPE_VISIBILITY), 0);
		assert_true(script.send.wr.rdma.remote_addr == RADDR + table[i].read_offset);
		assert_int_equal(script.sge.length, table[i].read_len);
		assert_int_equal(rpma_mr_remote_delete(&mr), 0);
	}
}

static void a_consenting_peer_is_flushed_natively_and_needs_no_declaration(void **state)
{
	script.caps = VEXT_CAP_FLUSH;
	assert_int_equal(flush(remote, 16, 100, RPMA_FLUSH_TYPE_PERSISTENT), 0);
	assert_int_equal(script.flushes, 1);
	assert_int_equal(script.flush.type, VEXT_FLUSH_STRICT);
	assert_true(script.flush.addr == RADDR + 16);
	assert_true(script.flush.len == 100);
	assert_int_equal(script.flush.rkey, RKEY);
	assert_true(script.flush.wr_id == (uintptr_t)&token);
	assert_int_equal(script.flush.send_flags, IBV_SEND_SIGNALED);
	assert_int_equal(rpma_flush(conn, remote, 0, 1, RPMA_FLUSH_TYPE_VISIBILITY, ON_ERROR, NULL),
			 0);
	assert_int_equal(script.flush.type, VEXT_FLUSH_VISIBLE);
	assert_int_equal(script.flush.send_flags, 0);
}

/*
 * A peer with the extensions expects flushes as such, and need not write back for reads. So no read
 * may be posted before the peer is known.
 */
static void before_the_peer_is_known_nothing_becomes_what_it_is_for_others(void **state)
{
	static const char word[8] = "commit!";
	enum rpma_durability class;
	struct rpma_digest digest;

	script.caps_unknown = true;
	script.post_err = EINVAL; /* like the software RNIC before the connection is established */
	script.send.opcode = IBV_WR_SEND;
	assert_int_equal(flush(remote, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY), RPMA_E_PROVIDER);
	assert_int_equal(flush(remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT), RPMA_E_PROVIDER);
	assert_int_equal(script.flushes, 2);
	assert_int_equal(rpma_atomic_write(conn, remote, 24, word, ALWAYS, NULL), RPMA_E_PROVIDER);
	assert_memory_equal(script.atomic.bytes, word, 8);
	/* the last ordinary work request was an earlier one */
	assert_int_equal(script.send.opcode, IBV_WR_SEND);
	/* Whether the peer supports the other operations is unknown, too. */
	assert_int_equal(rpma_flush_all(conn, RPMA_FLUSH_TYPE_PERSISTENT, ALWAYS, NULL),
			 RPMA_E_PROVIDER);
	assert_int_equal(rpma_verify(conn, remote, 0, 8, RPMA_DIGEST_AUTO, &digest, ALWAYS, NULL),
			 RPMA_E_PROVIDER);
	assert_int_equal(rpma_query_durability(conn, remote, 0, 8, &class, ALWAYS, NULL),
			 RPMA_E_PROVIDER);
}

static void a_flush_of_no_known_type_is_invalid(void **state)
{
	script.caps = VEXT_CAP_FLUSH;
	assert_int_equal(flush(remote, 0, 8, (enum rpma_flush_type)2), RPMA_E_INVAL);
	/* A usage flag is not a flush type, though the names are similar. */
	assert_int_equal(
		flush(remote, 0, 8, (enum rpma_flush_type)RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT),
		RPMA_E_INVAL);
	assert_int_equal(script.flushes, 0);
}

static void a_region_is_flushed_only_as_it_was_registered(void **state)
{
	static const struct {
		int usage, persistent, visible;
	} table[] = {
		{RPMA_MR_USAGE_WRITE_DST, RPMA_E_NOSUPP, RPMA_E_NOSUPP},
		{RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT, 0, RPMA_E_NOSUPP},
		{RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY, RPMA_E_NOSUPP, 0},
	};

	declare_direct_write(true);
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct rpma_mr_remote *mr = remote_region(RSIZE, table[i].usage);

		for (int native = 0; native <= 1; native++) {
			script.caps = native ? VEXT_CAP_FLUSH : 0;
			assert_int_equal(flush(mr, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT),
					 table[i].persistent);
			assert_int_equal(flush(mr, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY),
					 table[i].visible);
		}
		assert_int_equal(rpma_mr_remote_delete(&mr), 0);
	}
}

#define ON_CONN(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_CONN(reads_and_writes_name_both_memories),
		ON_CONN(an_operation_of_no_bytes_names_no_memory),
		ON_CONN(any_flags_but_0_are_taken_and_bit_1_asks_for_a_completion),
		ON_CONN(messages_carry_their_segment_and_immediate),
		ON_CONN(an_atomic_write_is_eight_inline_bytes_after_a_fence),
		ON_CONN(towards_a_capable_peer_an_atomic_write_is_native_and_fenced_after_reads_only),
		ON_CONN(a_failed_post_is_a_provider_error),
		ON_CONN(an_old_peer_is_flushed_by_a_read_of_eight_bytes),
		ON_CONN(persistence_of_an_old_peer_needs_its_declaration),
		ON_CONN(persistence_is_no_read_of_a_peer_that_writes_nothing_back_for_reads),
		ON_CONN(the_read_of_a_flush_stays_inside_the_region),
		ON_CONN(a_consenting_peer_is_flushed_natively_and_needs_no_declaration),
		ON_CONN(before_the_peer_is_known_nothing_becomes_what_it_is_for_others),
		ON_CONN(a_flush_of_no_known_type_is_invalid),
		ON_CONN(a_region_is_flushed_only_as_it_was_registered),
	};

	rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
	return cmocka_run_group_tests_name("operations", tests, NULL, NULL);
}
