/* SPDX-License-Identifier: BSD-3-Clause */
/* A datagram queue pair whose memory is a file that does not answer: the other queue pairs of its
 * port continue, and messages of this queue pair arrive later, in order. */
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
#include "ud_end.h"

#define DEPTH 8
#define LEN   (DEPTH * UD_END_SLOT)

static struct ud_end a, b, slow; /* the memory of `slow` is a file */

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

static void open_end(struct ud_end *e, int fd)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	uint8_t *buf = mmap(NULL, LEN, PROT_READ | PROT_WRITE, flags, fd, 0);

	assert_ptr_not_equal(buf, MAP_FAILED);
	ud_end_open(e, buf, DEPTH);
}

static void close_end(struct ud_end *e)
{
	ud_end_close(e);
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

static void send_to(struct ud_end *e, struct ud_end *to, uint8_t value)
{
	struct ibv_sge sge = {.addr = (uintptr_t)&value, .length = 1};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_INLINE,
		.wr.ud = {.ah = e->ah, .remote_qpn = to->qp->qp_num, .remote_qkey = UD_END_QKEY},
	};
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(e->qp, &wr, &bad), 0);
}

static struct ibv_wc wait_for(struct ud_end *e)
{
	struct ibv_wc wc = ud_end_wait(e);

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	return wc;
}

static void expect_message(struct ud_end *e, unsigned slot, uint8_t value)
{
	assert_int_equal(wait_for(e).wr_id, slot);
	assert_int_equal(e->buf[slot * UD_END_SLOT + UD_GRH_LEN], value);
}

static void talk(struct ud_end *from, struct ud_end *to)
{
	ud_end_recv(to, 0);
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
		ud_end_recv(&slow, i);
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
		struct ibv_sge sge = {.addr = (uintptr_t)slow.buf + i * UD_END_SLOT,
				      .length = 1,
				      .lkey = slow.mr->lkey};
		struct ibv_send_wr wr = {
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.wr.ud = {.ah = slow.ah,
				  .remote_qpn = b.qp->qp_num,
				  .remote_qkey = UD_END_QKEY},
		};

		slow.buf[i * UD_END_SLOT] = (uint8_t)(i + 1);
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
		send_to(&a, &slow, 'x'); /* no receive is posted */
		assert_int_equal(wait_for(&a).opcode, IBV_WC_SEND);
	}
	for (unsigned i = 0; i < 3; i++)
		ud_end_recv(&b, i);
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
