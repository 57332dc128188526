/* SPDX-License-Identifier: BSD-3-Clause */
/* A datagram queue pair whose memory is a file that does not answer: the other queue pairs of its
 * port go on, and its own messages come later, in order. */
#include "lib/unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "softrnic/proto/ud.h"
#include "softrnic/softrnic.h"

#define QKEY  0x11111111u
#define DEPTH 8
#define SLOT  256u
#define LEN   (DEPTH * SLOT)

struct end {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_ah *ah; /* address handle of this host */
	struct ibv_qp *qp;
	uint8_t *buf;
};

static struct end a, b, slow; /* the memory of `slow` is a file */

/* While the gate is shut, accesses to the memory of `slow` wait. */
static atomic_bool shut;
static atomic_int waiting;

static void pass_gate(const void *at)
{
	const struct timespec pause = {.tv_nsec = 1000000};

	if ((uintptr_t)at - (uintptr_t)slow.buf >= LEN || !atomic_load(&shut))
		return;
	atomic_fetch_add(&waiting, 1);
	while (atomic_load(&shut))
		nanosleep(&pause, NULL);
	atomic_fetch_sub(&waiting, 1);
}

int __real_place(void *dst, const void *src, size_t len);
int __wrap_place(void *dst, const void *src, size_t len);
int __wrap_place(void *dst, const void *src, size_t len)
{
	pass_gate(dst);
	return __real_place(dst, src, len);
}

int __real_safecopy(void *dst, const void *src, size_t len);
int __wrap_safecopy(void *dst, const void *src, size_t len);
int __wrap_safecopy(void *dst, const void *src, size_t len)
{
	pass_gate(src);
	return __real_safecopy(dst, src, len);
}

/* --- ends ----------------------------------------------------------------------------------- */

static void move(struct end *e, enum ibv_qp_state to, int mask)
{
	struct ibv_qp_attr attr = {.qp_state = to, .port_num = 1, .qkey = QKEY};

	assert_int_equal(softrnic_modify_qp(e->qp, &attr, IBV_QP_STATE | mask), 0);
}

static void make_qp(struct end *e)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
	};

	e->qp = softrnic_create_plain_qp(e->pd, &attr);
	assert_non_null(e->qp);
	move(e, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	move(e, IBV_QPS_RTR, 0);
	move(e, IBV_QPS_RTS, IBV_QP_SQ_PSN);
}

static void open_end(struct end *e, int fd)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};
	struct ibv_context *ctx = softrnic_context();
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;

	e->buf = mmap(NULL, LEN, PROT_READ | PROT_WRITE, flags, fd, 0);
	assert_ptr_not_equal(e->buf, MAP_FAILED);
	e->pd = softrnic_alloc_pd(ctx);
	e->cq = softrnic_create_cq(ctx, 4 * DEPTH, NULL, NULL, 0);
	assert_true(e->pd && e->cq);
	e->mr = softrnic_reg_mr(e->pd, e->buf, LEN, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(e->mr);
	assert_int_equal(softrnic_query_gid(ctx, 1, 0, &attr.grh.dgid), 0);
	e->ah = softrnic_create_ah(e->pd, &attr);
	assert_non_null(e->ah);
	make_qp(e);
}

static void close_end(struct end *e)
{
	if (e->qp)
		assert_int_equal(softrnic_destroy_plain_qp(e->qp), 0);
	assert_int_equal(softrnic_destroy_ah(e->ah), 0);
	assert_int_equal(softrnic_dereg_mr(e->mr), 0);
	assert_int_equal(softrnic_destroy_cq(e->cq), 0);
	assert_int_equal(softrnic_dealloc_pd(e->pd), 0);
	munmap(e->buf, LEN);
}

static int setup(void **state)
{
	char path[] = "/tmp/ud-stall-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(ftruncate(fd, LEN), 0);
	open_end(&a, -1);
	open_end(&b, -1);
	open_end(&slow, fd);
	close(fd);
	assert_int_equal(ud_port_of(a.qp->qp_num), ud_port_of(slow.qp->qp_num));
	return 0;
}

static int teardown(void **state)
{
	atomic_store(&shut, false);
	close_end(&slow);
	close_end(&a);
	close_end(&b);
	return 0;
}

/* --- messages ------------------------------------------------------------------------------- */

static void post_recv(struct end *e, unsigned slot)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)e->buf + slot * SLOT, .length = SLOT, .lkey = e->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(ibv_post_recv(e->qp, &wr, &bad), 0);
}

static void send_to(struct end *e, struct end *to, uint8_t value)
{
	struct ibv_sge sge = {.addr = (uintptr_t)&value, .length = 1};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_INLINE,
		.wr.ud = {.ah = e->ah, .remote_qpn = to->qp->qp_num, .remote_qkey = QKEY},
	};
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(e->qp, &wr, &bad), 0);
}

/* Wait at most 10 s for the next completion. */
static struct ibv_wc wait_for(struct end *e)
{
	const struct timespec pause = {.tv_nsec = 100000};
	struct ibv_wc wc = {0};
	int n = 0;

	for (int i = 0; i < 100000 && !n; i++) {
		n = ibv_poll_cq(e->cq, 1, &wc);
		if (!n)
			nanosleep(&pause, NULL);
	}
	assert_int_equal(n, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	return wc;
}

static void expect_message(struct end *e, unsigned slot, uint8_t value)
{
	assert_int_equal(wait_for(e).wr_id, slot);
	assert_int_equal(e->buf[slot * SLOT + UD_GRH_LEN], value);
}

static void talk(struct end *from, struct end *to)
{
	post_recv(to, 0);
	send_to(from, to, 'x');
	assert_int_equal(wait_for(from).opcode, IBV_WC_SEND);
	expect_message(to, 0, 'x');
}

/* A message to `slow` waits in a thread of the engine. */
static void send_to_shut_memory(void)
{
	const struct timespec pause = {.tv_nsec = 1000000};

	atomic_store(&shut, true);
	for (unsigned i = 0; i < 3; i++)
		post_recv(&slow, i);
	for (unsigned i = 0; i < 3; i++) {
		send_to(&a, &slow, (uint8_t)(i + 1));
		assert_int_equal(wait_for(&a).opcode, IBV_WC_SEND);
	}
	for (int i = 0; i < 10000 && !atomic_load(&waiting); i++)
		nanosleep(&pause, NULL);
	assert_int_equal(atomic_load(&waiting), 1);
}

static void a_receive_that_waits_for_a_file_delays_no_other_queue_pair(void **state)
{
	struct ibv_wc wc;

	talk(&a, &slow);
	send_to_shut_memory();
	for (int i = 0; i < 20; i++) {
		talk(&a, &b);
		talk(&b, &a);
	}
	assert_int_equal(ibv_poll_cq(slow.cq, 1, &wc), 0);
	assert_int_equal(atomic_load(&waiting), 1);
	atomic_store(&shut, false);
	for (unsigned i = 0; i < 3; i++)
		expect_message(&slow, i, (uint8_t)(i + 1));
	talk(&b, &slow);
	talk(&slow, &b);
}

/* Three Sends from the memory of `slow`, by a thread that waits for that memory. */
static void *send_from_shut_memory(void *arg)
{
	struct ibv_send_wr *bad;

	for (unsigned i = 0; i < 3; i++) {
		struct ibv_sge sge = {
			.addr = (uintptr_t)slow.buf + i * SLOT, .length = 1, .lkey = slow.mr->lkey};
		struct ibv_send_wr wr = {
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.wr.ud = {.ah = slow.ah, .remote_qpn = b.qp->qp_num, .remote_qkey = QKEY},
		};

		slow.buf[i * SLOT] = (uint8_t)(i + 1);
		assert_int_equal(ibv_post_send(slow.qp, &wr, &bad), 0);
	}
	return NULL;
}

static void a_send_that_waits_for_a_file_delays_no_other_queue_pair(void **state)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	pthread_t thread;

	atomic_store(&shut, true);
	assert_int_equal(pthread_create(&thread, NULL, send_from_shut_memory, NULL), 0);
	for (int i = 0; i < 10000 && !atomic_load(&waiting); i++)
		nanosleep(&pause, NULL);
	assert_int_equal(atomic_load(&waiting), 1);
	for (int i = 0; i < 20; i++) {
		talk(&a, &b);
		talk(&b, &a);
		send_to(&a, &slow, 'x'); /* there is no receive */
		assert_int_equal(wait_for(&a).opcode, IBV_WC_SEND);
	}
	for (unsigned i = 0; i < 3; i++)
		post_recv(&b, i);
	assert_int_equal(atomic_load(&waiting), 1);
	atomic_store(&shut, false);
	assert_int_equal(pthread_join(thread, NULL), 0);
	for (unsigned i = 0; i < 3; i++)
		expect_message(&b, i, (uint8_t)(i + 1));
}

static void *open_later(void *arg)
{
	usleep(50000);
	atomic_store(&shut, false);
	return NULL;
}

static void a_queue_pair_that_waits_for_a_file_can_be_destroyed(void **state)
{
	struct ibv_wc wc;
	pthread_t thread;

	send_to_shut_memory();
	assert_int_equal(pthread_create(&thread, NULL, open_later, NULL), 0);
	assert_int_equal(softrnic_destroy_plain_qp(slow.qp), 0);
	slow.qp = NULL;
	assert_int_equal(atomic_load(&waiting), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(ibv_poll_cq(slow.cq, 1, &wc), 0);
	talk(&a, &b);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_receive_that_waits_for_a_file_delays_no_other_queue_pair),
		CASE(a_send_that_waits_for_a_file_delays_no_other_queue_pair),
		CASE(a_queue_pair_that_waits_for_a_file_can_be_destroyed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
