/* SPDX-License-Identifier: BSD-3-Clause */
/* qp_bench.h -- a bench: two connected queue pairs, and one region of remote memory at each end. */
#ifndef TESTLIB_QP_BENCH_H
#define TESTLIB_QP_BENCH_H

#include <stddef.h>
#include <stdint.h>

#include "lib/qp_pair.h"

struct bench {
	struct qp_pair p;
	struct qp_end *a, *b; /* the two ends of p */
	size_t len;
	uint8_t *ma, *mb; /* page-aligned memory of each end; the two are filled differently */
	struct mr *mra, *mrb;
};

void bench_open(struct bench *t, const struct pair_options *o, size_t len);
void bench_close(struct bench *t);

/* A cmocka test whose *state is a bench with default options; each memory has `len` bytes. */
#define BENCH_TEST(name, len)                                                                      \
	cmocka_unit_test_prestate_setup_teardown(name, bench_setup, bench_teardown, &(size_t){len})
int bench_setup(void **state);
int bench_teardown(void **state);
/* Deregister in the engine's steps: mark as dead, detach from the QP, wait until idle, free. */
void bench_dereg(struct qp_end *e, struct mr **mr);

/* Helpers for tests of flushes. Write BENCH_REST bytes from a's region. */
#define BENCH_REST 100
void bench_write(struct bench *t, uint64_t id, struct mr *remote, size_t at);
void bench_flush_all(struct bench *t, uint64_t id);
/* Expect a failed completion at a, with the reason of the other end's failure. */
void bench_expect_failed(struct bench *t, uint64_t id, enum vext_reason reason, int err);
/* Expect this range of the n-th write-back at the end. */
void bench_expect_wb(const struct qp_end *e, int n, const void *addr, uint64_t len);

#endif
