/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * If an end announced native flushes, its Reads cause no write-back. Without this announcement its
 * Reads are flushes. In both cases an end may send native flushes. The tests look at a file's pages
 * and at the counters of the end that has the file.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "end_file.h"
#include "lib/medium.h"

static uint64_t writebacks_at(struct end *e)
{
	const char *const *names;
	uint64_t values[64];
	int n = softrnic_qp_counters(e->id->qp, &names, values, 64);

	for (int i = 0; i < n; i++)
		if (!strcmp(names[i], "writebacks"))
			return values[i];
	fail_msg("no such counter");
	return 0;
}

static void do_one(struct end *e, struct vext_wr *wr)
{
	int posted = 0;

	wr->wr.send_flags = IBV_SEND_SIGNALED;
	assert_int_equal(softrnic_post(e->id->qp, wr, 1, &posted), 0);
	assert_int_equal(end_wait_wc(e).status, IBV_WC_SUCCESS);
}

static void do_verbs(struct end *e, enum ibv_wr_opcode opcode, const struct end_file *to,
		     uint32_t len)
{
	struct ibv_sge sge = {.addr = (uintptr_t)e->buf, .length = len, .lkey = e->mr->lkey};
	struct vext_wr wr = {
		.wr = {.opcode = opcode,
		       .sg_list = &sge,
		       .num_sge = 1,
		       .wr.rdma = {.remote_addr = (uintptr_t)to->map, .rkey = to->mr->rkey}}};

	do_one(e, &wr);
}

static void do_flush(struct end *e, const struct end_file *to)
{
	struct vext_wr wr = {
		.op = VEXT_OP_FLUSH,
		.wr.wr.rdma = {.remote_addr = (uintptr_t)to->map, .rkey = to->mr->rkey},
		.len = END_FILE,
		.type = VEXT_FLUSH_PERSISTENT};

	do_one(e, &wr);
}

/* `from` writes to a file of `to`, and then reads it. flush: the Read must flush the file. */
static void expect_reads_flush(struct end *from, struct end *to, bool flush)
{
	uint64_t before = writebacks_at(to);
	struct end_file file;

	end_file_open(&file, to);
	do_verbs(from, IBV_WR_RDMA_WRITE, &file, END_BUF);
	do_verbs(from, IBV_WR_RDMA_READ, &file, 8);
	assert_int_equal(writebacks_at(to) - before, flush);
	assert_int_equal(medium_dirty(file.fd, 0, END_FILE), flush ? 0 : END_BUF);
	do_verbs(from, IBV_WR_RDMA_WRITE, &file, END_BUF);
	do_flush(from, &file);
	assert_int_equal(writebacks_at(to) - before, flush + 1);
	assert_int_equal(medium_dirty(file.fd, 0, END_FILE), 0);
	end_file_close(&file);
}

static void a_read_is_a_flush_for_a_peer_without_announced_flushes(void **state)
{
	for (unsigned announce = 0; announce < 4; announce++) {
		bool client = announce & 1, server = announce & 2;
		struct ends e;

		ends_open(&e);
		assert_int_equal(softrnic_listen(e.listener.id, 1), 0);
		if (client)
			assert_int_equal(softrnic_announce_flushes(e.client.id), 0);
		assert_int_equal(softrnic_connect(e.client.id, NULL), 0);
		end_take(&e.listener, &e.server);
		if (server)
			assert_int_equal(softrnic_announce_flushes(e.server.id), 0);
		assert_int_equal(softrnic_accept(e.server.id, NULL), 0);
		end_expect(&e.client, RDMA_CM_EVENT_ESTABLISHED);
		end_expect(&e.server, RDMA_CM_EVENT_ESTABLISHED);
		expect_reads_flush(&e.client, &e.server, !client);
		expect_reads_flush(&e.server, &e.client, !server);
		ends_close(&e);
	}
}

static void announcing_comes_before_the_connection(void **state)
{
	struct ends e;

	ends_open(&e);
	assert_int_equal(softrnic_listen(e.listener.id, 1), 0);
	assert_int_equal(softrnic_announce_flushes(e.listener.id), EINVAL);
	assert_int_equal(softrnic_connect(e.client.id, NULL), 0);
	assert_int_equal(softrnic_announce_flushes(e.client.id), EINVAL);
	ends_establish(&e);
	assert_int_equal(softrnic_announce_flushes(e.client.id), EINVAL);
	assert_int_equal(softrnic_announce_flushes(e.server.id), EINVAL);
	expect_reads_flush(&e.client, &e.server, true);
	ends_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_read_is_a_flush_for_a_peer_without_announced_flushes),
		cmocka_unit_test(announcing_comes_before_the_connection),
	};

	if (!end_file_is_possible()) {
		printf("the current directory is on no file system that writes back\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
