/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_flush_here.c -- the thread of the engine that receives a flush writes back by itself, and
 * what goes on meanwhile if that takes long.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "end_file.h"
#include "lib/medium.h"
#include "softrnic/persist/region.h"
#include "softrnic/rnic/mr.h"
#include "unit/persist/gate.h"

#define LIMIT_NS (20 * NSEC_PER_SEC)
#define LEN      64

/* In one of so many tries, as the machine may be busy. */
#define SERVED_NS (10 * NSEC_PER_MS)
#define TRIES     20

static struct ends ends;
static struct end_file file;

/* Whatever the disk of this machine takes. */
static void seem_quick(void)
{
	struct persist_region *region = container_of(file.mr, struct mr, ibv)->backing.persist;

	persist_atfork_prepare(); /* the pool's lock */
	region->ranges[0].file->single_ns = 1000;
	region->ranges[0].file->calm_at = 0;
	persist_atfork_parent();
}

static int setup(void **state)
{
	ends_open(&ends);
	assert_int_equal(softrnic_listen(ends.listener.id, 1), 0);
	assert_int_equal(softrnic_announce_flushes(ends.client.id), 0);
	assert_int_equal(softrnic_connect(ends.client.id, NULL), 0);
	ends_establish(&ends);
	end_file_open(&file, &ends.server);
	return 0;
}

static int teardown(void **state)
{
	gate_fail(0);
	gate_set(false);
	end_file_close(&file);
	ends_close(&ends);
	return 0;
}

/* In a tight loop: the engine serves the other end alone then. */
static struct ibv_wc poll_wc(struct end *e)
{
	uint64_t until = clock_now_ns() + LIMIT_NS;
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(e->cq, 1, &wc);
	while (n == 0 && clock_now_ns() < until);
	assert_int_equal(n, 1);
	return wc;
}

static void post(enum ibv_wr_opcode opcode, enum vext_op op, size_t at)
{
	struct end *c = &ends.client;
	struct ibv_sge sge = {.addr = (uintptr_t)c->buf, .length = LEN, .lkey = c->mr->lkey};
	struct vext_wr wr = {
		.wr = {.opcode = opcode,
		       .send_flags = IBV_SEND_SIGNALED,
		       .sg_list = &sge,
		       .num_sge = op ? 0 : 1,
		       .wr.rdma = {.remote_addr = (uintptr_t)file.map + at, .rkey = file.mr->rkey}},
		.op = op,
		.len = op ? LEN : 0,
		.type = op ? VEXT_FLUSH_PERSISTENT : 0};
	int posted = 0;

	assert_int_equal(softrnic_post(c->id->qp, &wr, 1, &posted), 0);
}

static void write_to(size_t at)
{
	post(IBV_WR_RDMA_WRITE, 0, at);
	assert_int_equal(poll_wc(&ends.client).status, IBV_WC_SUCCESS);
}

/* Is it the engine's thread that called msync() last? */
static bool engine_wrote_back(void)
{
	char path[64], name[16] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/comm", (int)gate_thread());
	f = fopen(path, "re");
	if (f && !fgets(name, sizeof(name), f))
		name[0] = 0;
	if (f)
		fclose(f);
	return !strncmp(name, "softrnic", strlen("softrnic"));
}

/* Flushes of written bytes, each seen on the medium, until the engine makes one by itself. */
static void flush_until_here(void)
{
	uint64_t until = clock_now_ns() + LIMIT_NS;

	do {
		seem_quick();
		write_to(0);
		post(0, VEXT_OP_FLUSH, 0);
		assert_int_equal(poll_wc(&ends.client).status, IBV_WC_SUCCESS);
		assert_int_equal(medium_dirty(file.fd, 0, END_FILE), 0);
	} while (!engine_wrote_back() && clock_now_ns() < until);
	assert_true(engine_wrote_back());
}

/* One that does not end until the gate is opened. */
static void hold_one_here(void)
{
	uint64_t until = clock_now_ns() + LIMIT_NS;

	for (;;) {
		flush_until_here();
		seem_quick();
		write_to(0);
		gate_set(true);
		post(0, VEXT_OP_FLUSH, 0);
		gate_await(1);
		if (engine_wrote_back())
			return;
		gate_set(false);
		assert_int_equal(poll_wc(&ends.client).status, IBV_WC_SUCCESS);
		assert_true(clock_now_ns() < until);
	}
}

static void expect_no_answer(void)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(ends.client.cq, 1, &wc), 0);
}

static void the_thread_that_receives_a_flush_writes_back(void **state)
{
	flush_until_here();
}

/* Bytes of the client, at some time within the limit. */
static void await_byte(size_t at, char value)
{
	uint64_t until = clock_now_ns() + LIMIT_NS;
	volatile char *there = (char *)file.map + at;

	while (*there != value && clock_now_ns() < until)
		usleep(1000);
	assert_int_equal(*there, value);
}

static void other_connections_go_on_meanwhile(void **state)
{
	struct ends others;

	hold_one_here();
	ends_open(&others);
	assert_int_equal(softrnic_listen(others.listener.id, 1), 0);
	assert_int_equal(softrnic_connect(others.client.id, NULL), 0);
	ends_establish(&others);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(end_post_recv(&others.server, 1), 0);
		assert_int_equal(end_post_send(&others.client, 2, 8), 0);
		assert_int_equal(end_wait_wc(&others.client).status, IBV_WC_SUCCESS);
		assert_int_equal(end_wait_wc(&others.server).status, IBV_WC_SUCCESS);
	}
	expect_no_answer();
	gate_set(false);
	assert_int_equal(poll_wc(&ends.client).status, IBV_WC_SUCCESS);
	ends_close(&others);
}

/*
 * How long until the engine takes a message of another connection, while a write-back that has just
 * begun goes on? This thread only looks at the memory, as one that polls would take it by itself.
 */
static uint64_t served_after(struct ends *others, char value)
{
	volatile char *there = others->server.buf;
	uint64_t begin, ns;

	assert_int_equal(end_post_recv(&others->server, 1), 0);
	others->client.buf[0] = value;
	hold_one_here();
	begin = clock_now_ns();
	assert_int_equal(end_post_send(&others->client, 2, 8), 0);
	while (*there != value && clock_now_ns() - begin < LIMIT_NS)
		usleep(100);
	ns = clock_now_ns() - begin;
	expect_no_answer();
	gate_set(false);
	assert_int_equal(poll_wc(&ends.client).status, IBV_WC_SUCCESS);
	assert_int_equal(end_wait_wc(&others->client).status, IBV_WC_SUCCESS);
	assert_int_equal(end_wait_wc(&others->server).status, IBV_WC_SUCCESS);
	usleep(10000); /* the polls are over: the engine looks for bytes again */
	return ns;
}

/* Not only at the guard's second look, which is 20 ms behind its first one. */
static void other_connections_wait_for_a_few_milliseconds(void **state)
{
	uint64_t best = UINT64_MAX, ns;
	struct ends others;

	ends_open(&others);
	assert_int_equal(softrnic_listen(others.listener.id, 1), 0);
	assert_int_equal(softrnic_connect(others.client.id, NULL), 0);
	ends_establish(&others);
	for (int i = 0; i < TRIES && best > SERVED_NS; i++) {
		ns = served_after(&others, (char)('a' + i));
		best = ns < best ? ns : best;
	}
	printf("served after %u us\n", (unsigned)(best / NSEC_PER_US));
	assert_true(best <= SERVED_NS);
	ends_close(&others);
}

/* Its Writes are placed, and calls on it return; the answer comes with the write-back. */
static void its_own_connection_goes_on_meanwhile(void **state)
{
	hold_one_here();
	memset(ends.client.buf, 'w', LEN);
	post(IBV_WR_RDMA_WRITE, 0, 4096); /* completes behind the flush */
	await_byte(4096, 'w');
	assert_int_equal(end_post_recv(&ends.server, 1), 0);
	assert_int_equal(end_post_send(&ends.client, 2, 8), 0);
	assert_int_equal(end_wait_wc(&ends.server).status, IBV_WC_SUCCESS);
	expect_no_answer();
	gate_set(false);
	for (int i = 0; i < 3; i++)
		assert_int_equal(poll_wc(&ends.client).status, IBV_WC_SUCCESS);
	assert_int_equal(medium_dirty(file.fd, 0, LEN), 0);
}

static void its_region_can_go_meanwhile(void **state)
{
	hold_one_here();
	assert_int_equal(softrnic_dereg_mr(file.mr), 0);
	file.mr = NULL;
	expect_no_answer();
	gate_set(false);
	assert_int_equal(poll_wc(&ends.client).status, IBV_WC_SUCCESS);
}

/* The write-back is not waited for; afterwards the file is used again. */
static void its_connection_can_end_meanwhile(void **state)
{
	hold_one_here();
	end_file_close(&file);
	ends_close(&ends);
	setup(NULL);
	gate_set(false);
	flush_until_here();
}

static void a_failure_is_reported_and_stays(void **state)
{
	flush_until_here();
	seem_quick();
	gate_fail(EIO);
	write_to(0);
	post(0, VEXT_OP_FLUSH, 0);
	assert_int_not_equal(poll_wc(&ends.client).status, IBV_WC_SUCCESS);
	gate_fail(0);
	assert_true(
		persist_region_has_failed(container_of(file.mr, struct mr, ibv)->backing.persist));
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_thread_that_receives_a_flush_writes_back),
		TEST(other_connections_go_on_meanwhile),
		TEST(other_connections_wait_for_a_few_milliseconds),
		TEST(its_own_connection_goes_on_meanwhile),
		TEST(its_region_can_go_meanwhile),
		TEST(its_connection_can_end_meanwhile),
		TEST(a_failure_is_reported_and_stays),
	};

	if (!end_file_is_possible()) {
		printf("the current directory is on no file system that writes back\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
