/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows between queue pairs without rdma_cm in one process, with the calls that programs
 * make. */
#include "plain.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "end_file.h"
#include "lib/medium.h"
#include "softrnic/rnic/mr_impl.h"
#include "softrnic/rnic/mw.h"

#define OPEN_AT  1024
#define OPEN_LEN 1024

static struct plain user, owner; /* user: writes to the owner's memory */
static struct ibv_mr *home;      /* region of owner.buf, which only windows can access */
static struct ibv_mw *window;

static int open_pair(void **state)
{
	plain_open(&user);
	plain_open(&owner);
	plain_ready(&user, owner.qp->qp_num);
	plain_ready(&owner, user.qp->qp_num);
	plain_talk(&user, &owner);
	home = softrnic_reg_mr(owner.pd, owner.buf, sizeof(owner.buf),
			       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	assert_non_null(home);
	window = NULL;
	return 0;
}

static int close_pair(void **state)
{
	if (window)
		assert_int_equal(ibv_dealloc_mw(window), 0);
	if (home)
		assert_int_equal(softrnic_dereg_mr(home), 0);
	plain_close(&user);
	plain_close(&owner);
	return 0;
}

static void make(enum ibv_mw_type type)
{
	window = ibv_alloc_mw(owner.pd, type);
	assert_non_null(window);
}

static struct ibv_mw_bind_info part(void)
{
	return (struct ibv_mw_bind_info){.mr = home,
					 .addr = (uintptr_t)owner.buf + OPEN_AT,
					 .length = OPEN_LEN,
					 .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
}

/* Bind a window of type 1. Returns its key. */
static uint32_t bind_type_1(void)
{
	struct ibv_mw_bind bind = {
		.wr_id = 5, .send_flags = IBV_SEND_SIGNALED, .bind_info = part()};
	struct ibv_wc wc;

	assert_int_equal(ibv_bind_mw(owner.qp, window, &bind), 0);
	wc = plain_wait(&owner);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_BIND_MW);
	return window->rkey;
}

static uint32_t bind_type_2_to(struct ibv_mw_bind_info info)
{
	uint32_t key = ibv_inc_rkey(window->rkey);
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW,
				 .bind_mw = {.mw = window, .rkey = key, .bind_info = info}},
			   *bad;

	assert_int_equal(ibv_post_send(owner.qp, &wr, &bad), 0);
	assert_int_equal(plain_wait(&owner).status, IBV_WC_SUCCESS);
	return key;
}

static uint32_t bind_type_2(void)
{
	return bind_type_2_to(part());
}

static void post_write(uint32_t key, size_t at)
{
	struct ibv_sge sge = {.addr = (uintptr_t)user.buf, .length = 64, .lkey = user.mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .wr.rdma = {.remote_addr = (uintptr_t)owner.buf + at,
					     .rkey = key}},
			   *bad;

	assert_int_equal(ibv_post_send(user.qp, &wr, &bad), 0);
}

static enum ibv_wc_status write_at(uint32_t key, size_t at)
{
	post_write(key, at);
	return plain_wait(&user).status;
}

static void type_1_opens_and_closes(void **state)
{
	struct ibv_mw_bind none = {.send_flags = IBV_SEND_SIGNALED};
	uint32_t key;

	make(IBV_MW_TYPE_1);
	key = bind_type_1();
	strcpy(user.buf, "through a window");
	assert_int_equal(write_at(key, OPEN_AT), IBV_WC_SUCCESS);
	assert_string_equal(owner.buf + OPEN_AT, "through a window");
	assert_int_equal(softrnic_dereg_mr(home), EBUSY);
	assert_int_equal(softrnic_rereg_mr(home, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
					   IBV_ACCESS_LOCAL_WRITE),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EBUSY);
	assert_int_equal(write_at(key, OPEN_AT + 64), IBV_WC_SUCCESS);
	assert_int_equal(ibv_bind_mw(owner.qp, window, &none), 0);
	assert_int_equal(plain_wait(&owner).status, IBV_WC_SUCCESS);
	assert_int_equal(write_at(key, OPEN_AT), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(softrnic_dereg_mr(home), 0);
	home = NULL;
}

static void type_1_is_bound_again(void **state)
{
	uint32_t key;

	make(IBV_MW_TYPE_1);
	for (int i = 0; i < 300; i++) { /* so many times that the window's keys are used again */
		key = bind_type_1();
		assert_int_equal(write_at(key, OPEN_AT), IBV_WC_SUCCESS);
	}
	assert_int_equal(write_at(key, OPEN_AT + OPEN_LEN - 63), IBV_WC_REM_ACCESS_ERR);
}

static void type_2_ends_with_its_queue_pair(void **state)
{
	uint32_t key;

	make(IBV_MW_TYPE_2);
	key = bind_type_2();
	assert_int_equal(write_at(key, OPEN_AT), IBV_WC_SUCCESS);
	plain_reset(&owner);
	plain_reset(&user);
	plain_ready(&user, owner.qp->qp_num);
	plain_ready(&owner, user.qp->qp_num);
	assert_int_equal(write_at(key, OPEN_AT), IBV_WC_REM_ACCESS_ERR);
	/* the region cannot be deregistered before the window is deallocated */
	assert_int_equal(softrnic_dereg_mr(home), EBUSY);
}

static void a_window_that_is_given_back_opens_nothing(void **state)
{
	uint32_t key;

	make(IBV_MW_TYPE_2);
	key = bind_type_2();
	assert_int_equal(write_at(key, OPEN_AT), IBV_WC_SUCCESS);
	assert_int_equal(ibv_dealloc_mw(window), 0);
	window = NULL;
	assert_int_equal(write_at(key, OPEN_AT), IBV_WC_REM_ACCESS_ERR);
}

/* The former binding stays in force. */
static void a_bind_that_is_not_posted_changes_nothing(void **state)
{
	struct ibv_mw_bind bind = {.send_flags = 1u << 30, .bind_info = part()};
	uint32_t key;

	make(IBV_MW_TYPE_1);
	key = bind_type_1();
	assert_int_equal(ibv_bind_mw(owner.qp, window, &bind), EINVAL);
	assert_int_equal(window->rkey, key);
	assert_int_equal(write_at(key, OPEN_AT), IBV_WC_SUCCESS);
}

static void objects_are_checked(void **state)
{
	struct ibv_device_attr attr;
	struct ibv_pd *pd;

	assert_int_equal(softrnic_query_device(softrnic_context(), &attr), 0);
	assert_true(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW);
	assert_true(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
	assert_true(attr.max_mw > 0);
	assert_null(ibv_alloc_mw(owner.pd, (enum ibv_mw_type)3));
	assert_int_equal(errno, EINVAL);
	pd = softrnic_alloc_pd(softrnic_context());
	window = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	assert_non_null(window);
	assert_int_equal(softrnic_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dealloc_mw(window), 0);
	window = NULL;
	assert_int_equal(softrnic_dealloc_pd(pd), 0);
}

/* --- writes that reach the medium ------------------------------------------------------------ */

static struct end_file file; /* file of the owner, which only windows can access */

static int open_file(void **state)
{
	open_pair(state);
	end_file_open_as(&file, owner.pd, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	make(IBV_MW_TYPE_2);
	return 0;
}

static int close_file(void **state)
{
	assert_int_equal(ibv_dealloc_mw(window), 0);
	window = NULL;
	end_file_close(&file);
	return close_pair(state);
}

static uint32_t bind_to_file(void)
{
	struct ibv_mw_bind_info info = {
		.mr = file.mr,
		.addr = (uintptr_t)file.map + OPEN_AT,
		.length = OPEN_LEN,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};

	return bind_type_2_to(info);
}

/* Post one request of the user to the beginning of the window; op 0: a request of verbs. */
static void ask_file(uint32_t key, enum ibv_wr_opcode opcode, enum vext_op op)
{
	struct ibv_sge sge = {.addr = (uintptr_t)user.buf, .length = 64, .lkey = user.mr->lkey};
	struct vext_wr wr = {
		.wr = {.opcode = opcode,
		       .send_flags = IBV_SEND_SIGNALED,
		       .sg_list = &sge,
		       .num_sge = op ? 0 : 1,
		       .wr.rdma = {.remote_addr = (uintptr_t)file.map + OPEN_AT, .rkey = key}},
		.op = op,
		.len = op ? 64 : 0,
		.type = op ? VEXT_FLUSH_PERSISTENT : 0};
	int posted = 0;

	assert_int_equal(softrnic_post(user.qp, &wr, 1, &posted), 0);
	assert_int_equal(plain_wait(&user).status, IBV_WC_SUCCESS);
}

static void expect_durable_after(enum ibv_wr_opcode opcode, enum vext_op op)
{
	uint32_t key = bind_to_file();

	strcpy(user.buf, "through a window");
	ask_file(key, IBV_WR_RDMA_WRITE, 0);
	assert_true(medium_dirty(file.fd, OPEN_AT, 64) > 0);
	ask_file(key, opcode, op);
	assert_int_equal(medium_dirty(file.fd, OPEN_AT, 64), 0);
	assert_string_equal((char *)file.map + OPEN_AT, "through a window");
}

static void a_flush_through_it_reaches_the_medium(void **state)
{
	expect_durable_after(0, VEXT_OP_FLUSH);
}

/* A program that uses only verbs flushes by a Read. */
static void a_read_through_it_reaches_the_medium(void **state)
{
	expect_durable_after(IBV_WR_RDMA_READ, 0);
}

/* --- several threads ------------------------------------------------------------------------ */

static atomic_bool writes;

static atomic_bool refused;

static void *write_until_refused(void *arg)
{
	uint32_t key = *(uint32_t *)arg;

	while (write_at(key, OPEN_AT) == IBV_WC_SUCCESS)
		atomic_store(&writes, true);
	atomic_store(&refused, true);
	return NULL;
}

static void begin_writes(pthread_t *thread, uint32_t *key)
{
	atomic_store(&writes, false);
	atomic_store(&refused, false);
	assert_int_equal(pthread_create(thread, NULL, write_until_refused, key), 0);
	while (!atomic_load(&writes))
		plain_expect_none(&owner, 1);
}

/* The window is deallocated while a peer writes to it. After ibv_dealloc_mw() has returned, only
 * the owner may change the memory. */
static void nothing_is_placed_after_the_end(void **state)
{
	for (int i = 0; i < 20; i++) {
		pthread_t thread;
		uint32_t key;

		make(i & 1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
		key = i & 1 ? bind_type_1() : bind_type_2();
		memset(user.buf, 0x55, 64);
		begin_writes(&thread, &key);
		assert_int_equal(ibv_dealloc_mw(window), 0);
		window = NULL;
		memset(owner.buf + OPEN_AT, 0, 64);
		pthread_join(thread, NULL);
		for (int k = 0; k < 64; k++)
			assert_int_equal(owner.buf[OPEN_AT + k], 0);
		plain_reset(&owner);
		plain_reset(&user);
		plain_ready(&user, owner.qp->qp_num);
		plain_ready(&owner, user.qp->qp_num);
	}
}

static void a_bind_that_is_not_posted_disturbs_no_peer(void **state)
{
	struct ibv_mw_bind bind = {.send_flags = 1u << 30, .bind_info = part()};
	pthread_t thread;
	uint32_t key;

	make(IBV_MW_TYPE_1);
	key = bind_type_1();
	begin_writes(&thread, &key);
	for (int i = 0; i < 5000; i++)
		assert_int_equal(ibv_bind_mw(owner.qp, window, &bind), EINVAL);
	assert_false(atomic_load(&refused));
	assert_int_equal(ibv_dealloc_mw(window), 0);
	window = NULL;
	pthread_join(thread, NULL);
}

static void *bind_again(void *arg)
{
	struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED, .bind_info = part()};

	return (void *)(intptr_t)ibv_bind_mw(owner.qp, window, &bind);
}

/* The description of the window's last binding, which the table's mutex guards. */
static struct mr *last_binding(uint32_t *key)
{
	struct mw *mw = container_of(window, struct mw, ibv);
	struct mr *now;

	pthread_mutex_lock(&mw->table->lock);
	now = mw->now;
	*key = now->ibv.rkey;
	pthread_mutex_unlock(&mw->table->lock);
	return now;
}

/* Does the same as mr_release(), which the library does not export. */
static void release(struct mr *mr)
{
	atomic_fetch_sub(&mr->holds, 1);
	pthread_mutex_lock(&mr->table->lock);
	pthread_cond_broadcast(&mr->table->idle);
	pthread_mutex_unlock(&mr->table->lock);
}

/* Another connection still uses the former binding, for instance to answer a Read. */
static void a_bind_goes_on_when_the_former_binding_is_idle(void **state)
{
	pthread_t thread;
	struct mr *former;
	uint32_t key;
	void *ret;

	make(IBV_MW_TYPE_1);
	key = bind_type_1();
	former = container_of(window, struct mw, ibv)->now;
	mr_hold_again(former);
	assert_int_equal(pthread_create(&thread, NULL, bind_again, NULL), 0);
	plain_expect_none(&owner, 50);
	/* Meanwhile Acks are sent. */
	assert_int_equal(write_at(owner.mr->rkey, OPEN_AT), IBV_WC_SUCCESS);
	release(former);
	assert_int_equal(plain_wait(&owner).status, IBV_WC_SUCCESS);
	pthread_join(thread, &ret);
	assert_null(ret);
	assert_int_not_equal(window->rkey, key);
	assert_int_equal(write_at(window->rkey, OPEN_AT), IBV_WC_SUCCESS);
}

/* --- several binds without a wait ------------------------------------------------------------- */

/* Post a bind of the part of the region that begins at `at`. Returns the key. */
static uint32_t post_bind(uint64_t wr_id, size_t at, int flags)
{
	struct ibv_mw_bind bind = {
		.wr_id = wr_id, .send_flags = flags | IBV_SEND_SIGNALED, .bind_info = part()};

	bind.bind_info.addr = (uintptr_t)owner.buf + at;
	assert_int_equal(ibv_bind_mw(owner.qp, window, &bind), 0);
	return window->rkey;
}

static void expect_done(struct plain *p, uint64_t wr_id)
{
	struct ibv_wc wc = plain_wait(p);

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, wr_id);
}

static void begin_anew(void)
{
	plain_reset(&owner);
	plain_reset(&user);
}

/* Binds that are posted before the first one is complete are executed in order, and each bind ends
 * the previous binding. No bind is executed before the queue pairs are connected. */
static void binds_in_a_row_are_executed_in_order(void **state)
{
	make(IBV_MW_TYPE_1);
	for (int i = 0; i < 4; i++) {
		uint32_t first, second, last;

		begin_anew();
		plain_ready(&owner, user.qp->qp_num);
		if (i & 1)
			plain_ready(&user, owner.qp->qp_num);
		first = post_bind(1, 0, 0);
		second = post_bind(2, OPEN_LEN, 0);
		last = post_bind(3, 2 * OPEN_LEN, 0);
		if (!(i & 1))
			plain_ready(&user, owner.qp->qp_num);
		for (uint64_t wr_id = 1; wr_id <= 3; wr_id++)
			expect_done(&owner, wr_id);
		assert_int_equal(write_at(last, 2 * OPEN_LEN), IBV_WC_SUCCESS);
		assert_int_equal(write_at(i & 2 ? first : second, i & 2 ? 0 : OPEN_LEN),
				 IBV_WC_REM_ACCESS_ERR);
	}
}

static void post_read(void)
{
	struct ibv_sge sge = {.addr = (uintptr_t)owner.buf, .length = 8, .lkey = owner.mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 3,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_READ,
				 .wr.rdma = {.remote_addr = (uintptr_t)user.buf + 2048,
					     .rkey = user.mr->rkey}},
			   *bad;

	assert_int_equal(ibv_post_send(owner.qp, &wr, &bad), 0);
}

/*
 * The second bind is posted before the first one is executed. It waits for the requests before it,
 * and these wait for a receive of the peer. When they are complete, another connection still uses
 * the first binding. The second bind is executed when the other connection no longer uses the first
 * binding, although no thread of the program polls.
 */
static void a_bind_waits_for_the_use_of_the_one_before(void **state)
{
	struct mr *first;
	uint32_t key, bound;

	make(IBV_MW_TYPE_1);
	begin_anew();
	plain_ready(&owner, user.qp->qp_num);
	post_bind(1, OPEN_AT, 0);
	plain_send(&owner, 2, "the read waits for this");
	post_read();
	key = post_bind(4, OPEN_AT, IBV_SEND_FENCE);
	plain_ready(&user, owner.qp->qp_num);
	expect_done(&owner, 1);
	first = last_binding(&bound);
	mr_hold_again(first);
	plain_recv(&user, 5);
	expect_done(&owner, 2);
	expect_done(&owner, 3);
	plain_expect_none(&owner, 20);
	release(first);
	usleep(100000);
	last_binding(&bound);
	assert_int_equal(bound, key);
	expect_done(&owner, 4);
	expect_done(&user, 5);
	assert_int_equal(write_at(key, OPEN_AT), IBV_WC_SUCCESS);
}

/* In verbs only ibv_bind_mw() binds a window of type 1. */
static void a_request_of_the_program_binds_no_type_1(void **state)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW}, *bad;

	make(IBV_MW_TYPE_1);
	wr.bind_mw.mw = window;
	wr.bind_mw.rkey = ibv_inc_rkey(window->rkey);
	wr.bind_mw.bind_info = part();
	assert_int_equal(ibv_post_send(owner.qp, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
}

/* The bind copied values of the region's description; the window must not use them after the
 * region's end. */
static void a_window_outlives_its_region(void **state)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED}, *bad;

	make(IBV_MW_TYPE_2);
	wr.invalidate_rkey = bind_type_2();
	assert_int_equal(ibv_post_send(owner.qp, &wr, &bad), 0);
	assert_int_equal(plain_wait(&owner).status, IBV_WC_SUCCESS);
	assert_int_equal(softrnic_dereg_mr(home), 0);
	home = NULL;
	assert_int_equal(ibv_dealloc_mw(window), 0);
	window = NULL;
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_pair, close_pair)
	const struct CMUnitTest tests[] = {
		CASE(type_1_opens_and_closes),
		CASE(type_1_is_bound_again),
		CASE(type_2_ends_with_its_queue_pair),
		CASE(a_window_that_is_given_back_opens_nothing),
		CASE(a_bind_that_is_not_posted_changes_nothing),
		CASE(objects_are_checked),
		CASE(nothing_is_placed_after_the_end),
		CASE(a_window_outlives_its_region),
		CASE(a_bind_that_is_not_posted_disturbs_no_peer),
		CASE(a_bind_goes_on_when_the_former_binding_is_idle),
		CASE(a_request_of_the_program_binds_no_type_1),
		CASE(binds_in_a_row_are_executed_in_order),
		CASE(a_bind_waits_for_the_use_of_the_one_before),
	};
#define FILE_CASE(name) cmocka_unit_test_setup_teardown(name, open_file, close_file)
	const struct CMUnitTest file_tests[] = {
		FILE_CASE(a_flush_through_it_reaches_the_medium),
		FILE_CASE(a_read_through_it_reaches_the_medium),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	if (!end_file_is_possible()) {
		print_message("the current directory has no medium\n");
		return failed ? failed : 77;
	}
	return failed + cmocka_run_group_tests(file_tests, NULL, NULL);
}
