/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_medium.c -- a program that uses only libibverbs and librdmacm writes into a file at the
 * other end, and then reads from the file: a read is the only way in which such a program can
 * flush. When the read completes, no page of the file must be dirty. The test queries a counter of
 * the software RNIC by name.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/rdma_verbs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "ends.h"
#include "lib/medium.h"

enum { FILE_SIZE = 1 << 16, BUF = 1 << 16 };
enum { WRITES_MAX = 100, PLACED_MAX_MS = 30000 };

struct medium {
	struct rdma_cm_id *listener, *server, *client;
	struct ibv_mr *mr; /* the client's region, which is buf */
	uint8_t *buf;
	char name[64]; /* name of the server's file */
	int fd;
	uint8_t *map;
	struct ibv_mr *file;
};

static void *connect_client(void *arg)
{
	struct medium *d = arg;

	assert_int_equal(rdma_connect(d->client, NULL), 0);
	return NULL;
}

static void make_file(struct medium *d)
{
	snprintf(d->name, sizeof(d->name), "interop_medium.%ld", (long)getpid());
	d->fd = open(d->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(d->fd >= 0);
	assert_int_equal(posix_fallocate(d->fd, 0, FILE_SIZE), 0);
	assert_int_equal(fsync(d->fd), 0);
	d->map = mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, d->fd, 0);
	assert_ptr_not_equal(d->map, MAP_FAILED);
	d->file = ibv_reg_mr(d->server->pd, d->map, FILE_SIZE,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	assert_non_null(d->file);
}

static int setup(void **state)
{
	static struct medium d;
	pthread_t thread;

	d.listener = end_make(RAI_PASSIVE, 0);
	assert_int_equal(rdma_listen(d.listener, 1), 0);
	d.client = end_make(0, rdma_get_src_port(d.listener));
	assert_int_equal(pthread_create(&thread, NULL, connect_client, &d), 0);
	assert_int_equal(rdma_get_request(d.listener, &d.server), 0);
	assert_int_equal(rdma_accept(d.server, NULL), 0);
	pthread_join(thread, NULL);
	make_file(&d);
	d.buf = calloc(1, BUF);
	d.mr = rdma_reg_msgs(d.client, d.buf, BUF);
	assert_non_null(d.mr);
	*state = &d;
	return 0;
}

static int teardown(void **state)
{
	struct medium *d = *state;

	rdma_dereg_mr(d->mr);
	rdma_dereg_mr(d->file);
	rdma_destroy_ep(d->client);
	rdma_destroy_ep(d->server);
	rdma_destroy_ep(d->listener);
	munmap(d->map, FILE_SIZE);
	close(d->fd);
	unlink(d->name);
	free(d->buf);
	return 0;
}

static uint64_t writebacks(const struct medium *d)
{
	typedef int counters_fn(struct ibv_qp *, const char *const **, uint64_t *, int);
	counters_fn *counters = (counters_fn *)dlsym(RTLD_DEFAULT, "softrnic_qp_counters");
	const char *const *names;
	uint64_t values[64];
	int n;

	assert_non_null(counters);
	n = counters(d->server->qp, &names, values, 64);
	for (int i = 0; i < n; i++)
		if (!strcmp(names[i], "writebacks"))
			return values[i];
	fail_msg("no such counter");
	return 0;
}

static void do_one(struct medium *d, struct ibv_send_wr wr, uint32_t len)
{
	struct ibv_sge sge = {.addr = (uintptr_t)d->buf, .length = len, .lkey = d->mr->lkey};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr.sg_list = &sge;
	wr.num_sge = len > 0;
	wr.send_flags = IBV_SEND_SIGNALED;
	assert_int_equal(ibv_post_send(d->client->qp, &wr, &bad), 0);
	assert_int_equal(rdma_get_send_comp(d->client, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

static void do_rdma(struct medium *d, enum ibv_wr_opcode opcode, size_t at, uint32_t len)
{
	do_one(d,
	       (struct ibv_send_wr){
		       .opcode = opcode,
		       .wr.rdma = {.remote_addr = (uintptr_t)d->map + at, .rkey = d->file->rkey}},
	       len);
}

static void read_as_flush(struct medium *d, size_t at)
{
	do_rdma(d, IBV_WR_RDMA_READ, at, 8);
}

static void expect_written_back(const struct medium *d, uint64_t times)
{
	assert_int_equal(medium_dirty(d->fd, 0, FILE_SIZE), 0);
	assert_int_equal(writebacks(d), times);
}

static void a_read_after_a_write_is_a_flush(void **state)
{
	struct medium *d = *state;

	do_rdma(d, IBV_WR_RDMA_WRITE, 5000, 20000);
	read_as_flush(d, 5000);
	expect_written_back(d, 1);
	read_as_flush(d, 5000);
	expect_written_back(d, 1); /* no dirty byte is left */
}

static void it_covers_all_of_the_region(void **state)
{
	struct medium *d = *state;

	do_rdma(d, IBV_WR_RDMA_WRITE, 0, 100);
	do_rdma(d, IBV_WR_RDMA_WRITE, FILE_SIZE - 100, 100);
	read_as_flush(d, 30000);
	expect_written_back(d, 1);
}

static void it_covers_atomics(void **state)
{
	struct medium *d = *state;

	do_one(d,
	       (struct ibv_send_wr){.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
				    .wr.atomic = {.remote_addr = (uintptr_t)d->map + 64,
						  .rkey = d->file->rkey,
						  .compare_add = 1}},
	       8);
	read_as_flush(d, 64);
	expect_written_back(d, 1);
}

static void post_receive(struct medium *d)
{
	assert_int_equal(rdma_post_recv(d->server, d, d->map, 4096, d->file), 0);
}

static void take_receive(struct medium *d)
{
	struct ibv_wc wc;

	assert_int_equal(rdma_get_recv_comp(d->server, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

static void it_covers_messages_received_into_the_file(void **state)
{
	struct medium *d = *state;

	post_receive(d);
	do_one(d, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 4000);
	take_receive(d);
	read_as_flush(d, 8192);
	expect_written_back(d, 1);
}

static void it_covers_a_write_with_immediate(void **state)
{
	struct medium *d = *state;

	post_receive(d);
	do_rdma(d, IBV_WR_RDMA_WRITE_WITH_IMM, 12288, 4096);
	take_receive(d);
	read_as_flush(d, 0);
	expect_written_back(d, 1);
}

/* Register a region at the server again: the same file, or other memory. */
static struct ibv_mr *register_at_server(struct medium *d, void *addr, size_t len, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(d->server->pd, addr, len, access);

	assert_non_null(mr);
	return mr;
}

static void do_rdma_at(struct medium *d, enum ibv_wr_opcode opcode, const struct ibv_mr *mr,
		       uint32_t len)
{
	do_one(d,
	       (struct ibv_send_wr){
		       .opcode = opcode,
		       .wr.rdma = {.remote_addr = (uintptr_t)mr->addr, .rkey = mr->rkey}},
	       len);
}

static void it_covers_what_was_written_by_another_key(void **state)
{
	struct medium *d = *state;
	struct ibv_mr *write_only = register_at_server(
		d, d->map, FILE_SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

	do_rdma_at(d, IBV_WR_RDMA_WRITE, write_only, 5000);
	read_as_flush(d, 0);
	expect_written_back(d, 1);
	assert_int_equal(ibv_dereg_mr(write_only), 0);
}

static void it_may_be_of_memory_that_is_no_file(void **state)
{
	static uint8_t word[8];
	struct medium *d = *state;
	struct ibv_mr *mr = register_at_server(d, word, sizeof(word), IBV_ACCESS_REMOTE_READ);

	do_rdma(d, IBV_WR_RDMA_WRITE, 5000, 20000);
	do_rdma_at(d, IBV_WR_RDMA_READ, mr, 8);
	expect_written_back(d, 1);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void it_may_be_of_no_bytes(void **state)
{
	struct medium *d = *state;

	do_rdma(d, IBV_WR_RDMA_WRITE, 5000, 20000);
	do_rdma(d, IBV_WR_RDMA_READ, 0, 0);
	expect_written_back(d, 1);
}

static void it_covers_messages_received_where_the_peer_has_no_right(void **state)
{
	struct medium *d = *state;
	struct ibv_mr *mr = register_at_server(d, d->map, FILE_SIZE, IBV_ACCESS_LOCAL_WRITE);

	assert_int_equal(rdma_post_recv(d->server, d, d->map, 4096, mr), 0);
	do_one(d, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 4000);
	take_receive(d);
	read_as_flush(d, 8192);
	expect_written_back(d, 1);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void wait_until_placed(const volatile uint8_t *byte, uint8_t value)
{
	for (int ms = 0; *byte != value; ms++) {
		if (ms == PLACED_MAX_MS)
			fail_msg("no byte of the write was placed in %d s", PLACED_MAX_MS / 1000);
		usleep(1000);
	}
}

/*
 * Write to the start of this registration until its pages are seen dirty. The kernel, or a sync(1)
 * of another process, can write the pages back before the test checks them. If so, write again.
 * Returns the number of dirty bytes of the file.
 */
static long write_until_dirty(struct medium *d, const struct ibv_mr *mr, uint32_t len)
{
	const volatile uint8_t *last = (const uint8_t *)mr->addr + len - 1;
	long dirty = 0;

	for (int i = 0; i < WRITES_MAX && dirty == 0; i++) {
		memset(d->buf, i + 1, len);
		do_rdma_at(d, IBV_WR_RDMA_WRITE, mr, len);
		wait_until_placed(last, d->buf[len - 1]);
		dirty = medium_dirty(d->fd, 0, FILE_SIZE);
	}
	assert_true(dirty > 0);
	return dirty;
}

static void it_covers_what_was_written_before_the_region_was_registered_anew(void **state)
{
	struct medium *d = *state;
	struct ibv_mr *first = register_at_server(d, d->map, FILE_SIZE,
						  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

	write_until_dirty(d, first, 5000);
	assert_int_equal(ibv_dereg_mr(first), 0);
	read_as_flush(d, 0);
	/* the read has written the pages back */
	assert_int_equal(medium_dirty(d->fd, 0, FILE_SIZE), 0);
}

/* A Write leaves dirty pages, which shows that the measured value changes only by a write-back. */
static void a_write_alone_leaves_dirty_pages(void **state)
{
	struct medium *d = *state;

	assert_int_equal(write_until_dirty(d, d->file, 4096), 4096);
	assert_int_equal(writebacks(d), 0);
}

static bool is_on_a_medium(void)
{
	char name[] = "interop_medium.XXXXXX";
	int fd = mkstemp(name);
	bool yes = fd >= 0 && write(fd, name, sizeof(name)) > 0 && medium_is_behind(fd);

	close(fd);
	unlink(name);
	return yes;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_read_after_a_write_is_a_flush, setup, teardown),
		cmocka_unit_test_setup_teardown(it_covers_all_of_the_region, setup, teardown),
		cmocka_unit_test_setup_teardown(it_covers_atomics, setup, teardown),
		cmocka_unit_test_setup_teardown(it_covers_messages_received_into_the_file, setup,
						teardown),
		cmocka_unit_test_setup_teardown(it_covers_a_write_with_immediate, setup, teardown),
		cmocka_unit_test_setup_teardown(it_covers_what_was_written_by_another_key, setup,
						teardown),
		cmocka_unit_test_setup_teardown(it_may_be_of_memory_that_is_no_file, setup,
						teardown),
		cmocka_unit_test_setup_teardown(it_may_be_of_no_bytes, setup, teardown),
		cmocka_unit_test_setup_teardown(
			it_covers_messages_received_where_the_peer_has_no_right, setup, teardown),
		cmocka_unit_test_setup_teardown(
			it_covers_what_was_written_before_the_region_was_registered_anew, setup,
			teardown),
		cmocka_unit_test_setup_teardown(a_write_alone_leaves_dirty_pages, setup, teardown),
	};

	if (!is_on_a_medium()) {
		printf("the current directory is on no file system that writes back\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
