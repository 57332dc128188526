/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_register.c -- a peer may use an STag as soon as it exists, even by guessing it, so the
 * region must be complete before that. In this test random numbers come from a counter, and a
 * second thread looks up the STag that comes next.
 */
#include "lib/unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softrnic/verbs/device.h"
#include "softrnic/softrnic.h"

#define ROUNDS 300
#define LEN    4096
#define IOVA   0x10000
#define RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static atomic_uint drawn;

static uint32_t nth_number(unsigned n)
{
	return (n + 1) * 0x9e3779b1u;
}

void __wrap_rand_bytes(void *buf, size_t len);
void __wrap_rand_bytes(void *buf, size_t len)
{
	uint32_t v;

	for (size_t at = 0; at < len; at += sizeof(v)) {
		v = nth_number(atomic_fetch_add(&drawn, 1));
		memcpy((char *)buf + at, &v, len - at < sizeof(v) ? len - at : sizeof(v));
	}
}

struct search {
	struct ibv_pd *pd;
	void *addr;
	atomic_uint begun, found;
	unsigned incomplete;
};

static bool is_complete(const struct search *s, const struct mr *mr, const void *ptr)
{
	return ptr == s->addr && mr->backing.durable && mr->backing.persist &&
	       mr->ibv.context == s->pd->context && mr->ibv.addr == s->addr &&
	       mr->ibv.length == LEN && mr->access == RIGHTS && mr->iova == IOVA;
}

static void *find_each_at_once(void *arg)
{
	struct search *s = arg;

	for (unsigned i = 0; i < ROUNDS; i++) {
		uint32_t stag = nth_number(i);
		struct mr *mr;
		void *ptr;

		atomic_store(&s->begun, i + 1);
		while (mr_hold(device_mrs(), s->pd, stag, IOVA, LEN, RIGHTS, &mr, &ptr) != MR_OK)
			;
		s->incomplete += !is_complete(s, mr, ptr);
		mr_release(mr);
		atomic_store(&s->found, i + 1);
	}
	return NULL;
}

static void *map_a_file(void)
{
	int fd = open("unit_io_register.file", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	void *addr;

	assert_true(fd >= 0);
	unlink("unit_io_register.file");
	assert_int_equal(ftruncate(fd, LEN), 0);
	addr = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(addr, MAP_FAILED);
	close(fd);
	return addr;
}

static void a_region_is_complete_when_its_stag_is_first_found(void **state)
{
	struct search s = {.pd = softrnic_alloc_pd(softrnic_context()), .addr = map_a_file()};
	pthread_t thread;

	assert_non_null(s.pd);
	atomic_store(&drawn, 0);
	assert_int_equal(pthread_create(&thread, NULL, find_each_at_once, &s), 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct ibv_mr *mr;

		while (atomic_load(&s.begun) <= i)
			sched_yield();
		mr = softrnic_reg_mr_iova2(s.pd, s.addr, LEN, IOVA, RIGHTS);
		assert_non_null(mr);
		assert_int_equal(mr->rkey, nth_number(i));
		while (atomic_load(&s.found) <= i)
			sched_yield();
		assert_int_equal(softrnic_dereg_mr(mr), 0);
	}
	pthread_join(thread, NULL);
	assert_int_equal(s.incomplete, 0);
	assert_int_equal(softrnic_dealloc_pd(s.pd), 0);
	munmap(s.addr, LEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_region_is_complete_when_its_stag_is_first_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
