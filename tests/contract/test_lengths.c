/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_lengths.c -- the longest operations: 2^32 - 1 bytes arrive, and a longer operation is
 * refused when it is posted. The memory is a small file. The file's first half is mapped many times
 * in a row. Its second half is mapped once, after them, so that only an operation of the full
 * length reaches the second half.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ends.h"

#define SLICE   ((size_t)16 << 20)
#define LONGEST ((size_t)UINT32_MAX)
#define SPAN    (LONGEST + 1)

/* A sanitizer build only tests the refusals: moving 4 GiB takes too long there. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define MOVES_ALL 0
#else
#define MOVES_ALL 1
#endif

struct vast {
	int fd;
	uint8_t *at, *end; /* end: the last slice of the mapping */
	struct rpma_mr_local *mr;
	struct rpma_mr_remote *remote;
};

static void vast_open(struct vast *v, struct ends *d, int seed)
{
	v->fd = memfd_create("lengths", MFD_CLOEXEC);
	assert_true(v->fd >= 0);
	assert_int_equal(ftruncate(v->fd, 2 * (off_t)SLICE), 0);
	v->at = mmap(NULL, SPAN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(v->at, MAP_FAILED);
	for (size_t at = 0; at < SPAN; at += SLICE)
		assert_ptr_not_equal(mmap(v->at + at, SLICE, PROT_READ | PROT_WRITE,
					  MAP_SHARED | MAP_FIXED, v->fd,
					  at + SLICE < SPAN ? 0 : (off_t)SLICE),
				     MAP_FAILED);
	v->end = v->at + SPAN - SLICE;
	memset(v->at, seed, SLICE);
	memset(v->end, seed, SLICE);
	v->mr = ends_reg(d, v->at, SPAN);
	v->remote = ends_remote(v->mr);
}

static void vast_close(struct vast *v)
{
	OK(rpma_mr_remote_delete(&v->remote));
	OK(rpma_mr_dereg(&v->mr));
	munmap(v->at, SPAN);
	close(v->fd);
}

struct scene {
	struct ends d;
	struct vast cli, srv;
};

static void scene_open(struct scene *s)
{
	ends_open(&s->d, NULL);
	vast_open(&s->cli, &s->d, 0x11);
	vast_open(&s->srv, &s->d, 0x22);
}

static void scene_close(struct scene *s)
{
	vast_close(&s->cli);
	vast_close(&s->srv);
	ends_close(&s->d);
}

static void longer_ones_are_refused_without_effect(void **state)
{
	static const size_t lens[] = {LONGEST + 1, LONGEST + 2, 2 * LONGEST + 2};
	struct scene s;

	SOFTRNIC_ONLY(); /* devices pin all of the memory */
	scene_open(&s);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		assert_int_equal(rpma_write(s.d.cli, s.srv.remote, 0, s.cli.mr, 0, lens[i],
					    RPMA_F_COMPLETION_ALWAYS, NULL),
				 RPMA_E_INVAL);
		assert_int_equal(rpma_read(s.d.cli, s.cli.mr, 0, s.srv.remote, 0, lens[i],
					   RPMA_F_COMPLETION_ALWAYS, NULL),
				 RPMA_E_INVAL);
		assert_int_equal(
			rpma_send(s.d.cli, s.cli.mr, 0, lens[i], RPMA_F_COMPLETION_ALWAYS, NULL),
			RPMA_E_INVAL);
		assert_int_equal(rpma_recv(s.d.cli, s.cli.mr, 0, lens[i], NULL), RPMA_E_INVAL);
	}
	/* The refusal does not affect the connection. A flush has a 64-bit length, so it can be
	 * longer. */
	OK(rpma_write(s.d.cli, s.srv.remote, 0, s.cli.mr, 0, 1, RPMA_F_COMPLETION_ON_ERROR, NULL));
	ends_flush(s.d.cli, s.srv.remote, 0, LONGEST + 1);
	assert_int_equal(s.srv.at[0], 0x11);
	assert_true(s.srv.at[1] == 0x22);
	scene_close(&s);
}

static void expect_same(const struct scene *s)
{
	assert_memory_equal(s->srv.at, s->cli.at, SLICE);
	assert_memory_equal(s->srv.end, s->cli.end, SLICE - 1);
}

static void longest_ones_arrive(void **state)
{
	const size_t half = (size_t)1 << 31;
	struct scene s;

	SOFTRNIC_ONLY(); /* devices have lower limits, and pin all of the memory */
	if (!MOVES_ALL)
		skip();
	scene_open(&s);
	OK(rpma_write(s.d.cli, s.srv.remote, 0, s.cli.mr, 0, LONGEST, RPMA_F_COMPLETION_ON_ERROR,
		      NULL));
	ends_flush(s.d.cli, s.srv.remote, 0, LONGEST);
	expect_same(&s);
	assert_int_equal(s.srv.end[SLICE - 1], 0x22); /* the byte after the slice is unchanged */
	memset(s.srv.at, 0x33, SLICE);
	memset(s.srv.end, 0x44, SLICE);
	OK(rpma_read(s.d.cli, s.cli.mr, 0, s.srv.remote, 0, LONGEST, RPMA_F_COMPLETION_ALWAYS, &s));
	ends_expect_wc(s.d.cli, IBV_WC_RDMA_READ, &s);
	expect_same(&s);
	assert_int_equal(s.cli.end[SLICE - 1], 0x11);
	memset(s.cli.at, 0x55, SLICE);
	memset(s.cli.end, 0x66, SLICE);
	OK(rpma_recv(s.d.srv, s.srv.mr, SPAN - half, half, &s));
	OK(rpma_send(s.d.cli, s.cli.mr, SPAN - half, half, RPMA_F_COMPLETION_ON_ERROR, NULL));
	ends_expect_received(s.d.srv, half, &s);
	expect_same(&s);
	assert_int_equal(s.srv.end[SLICE - 1], 0x66);
	scene_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(longer_ones_are_refused_without_effect),
		cmocka_unit_test(longest_ones_arrive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
