/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who announced native flushes reads without a write-back, who did not flushes by reading; either
 * may ask for native flushes. Seen in a file's pages and in the counters of the end that has it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ends.h"
#include "lib/medium.h"

enum { FILE_SIZE = 16384 };

/* A file in the current directory, open to the peer. */
struct backed {
	char name[64];
	int fd;
	void *map;
	struct ibv_mr *mr;
};

static void backed_open(struct backed *b, struct end *e)
{
	static int number;

	snprintf(b->name, sizeof(b->name), "io_flushes.%ld.%d", (long)getpid(), number++);
	b->fd = open(b->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(b->fd >= 0);
	assert_int_equal(posix_fallocate(b->fd, 0, FILE_SIZE), 0);
	assert_int_equal(fsync(b->fd), 0);
	b->map = mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);
	assert_ptr_not_equal(b->map, MAP_FAILED);
	b->mr = softrnic_reg_mr(e->pd, b->map, FILE_SIZE,
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					IBV_ACCESS_REMOTE_READ);
	assert_non_null(b->mr);
}

static void backed_close(struct backed *b)
{
	assert_int_equal(softrnic_dereg_mr(b->mr), 0);
	munmap(b->map, FILE_SIZE);
	close(b->fd);
	unlink(b->name);
}

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

static void do_verbs(struct end *e, enum ibv_wr_opcode opcode, const struct backed *to,
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

static void do_flush(struct end *e, const struct backed *to)
{
	struct vext_wr wr = {
		.op = VEXT_OP_FLUSH,
		.wr.wr.rdma = {.remote_addr = (uintptr_t)to->map, .rkey = to->mr->rkey},
		.len = FILE_SIZE,
		.type = VEXT_FLUSH_PERSISTENT};

	do_one(e, &wr);
}

/* from writes into a file of to's, and reads there. */
static void expect_reads_flush(struct end *from, struct end *to, bool flush)
{
	uint64_t before = writebacks_at(to);
	struct backed file;

	backed_open(&file, to);
	do_verbs(from, IBV_WR_RDMA_WRITE, &file, END_BUF);
	do_verbs(from, IBV_WR_RDMA_READ, &file, 8);
	assert_int_equal(writebacks_at(to) - before, flush);
	assert_int_equal(medium_dirty(file.fd, 0, FILE_SIZE), flush ? 0 : END_BUF);
	do_verbs(from, IBV_WR_RDMA_WRITE, &file, END_BUF);
	do_flush(from, &file);
	assert_int_equal(writebacks_at(to) - before, flush + 1);
	assert_int_equal(medium_dirty(file.fd, 0, FILE_SIZE), 0);
	backed_close(&file);
}

static void a_read_is_a_flush_for_who_has_not_announced_flushes(void **state)
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

static bool is_on_a_medium(void)
{
	char name[] = "io_flushes.XXXXXX";
	int fd = mkstemp(name);
	bool yes = fd >= 0 && write(fd, name, sizeof(name)) > 0 && medium_is_behind(fd);

	close(fd);
	unlink(name);
	return yes;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_read_is_a_flush_for_who_has_not_announced_flushes),
		cmocka_unit_test(announcing_comes_before_the_connection),
	};

	if (!is_on_a_medium()) {
		printf("the current directory is on no file system that writes back\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
