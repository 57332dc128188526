/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/qp_bench.h"

#include <stdlib.h>

#include "lib/post.h"
#include "lib/unit.h"

void bench_open(struct bench *t, const struct pair_options *o, size_t len)
{
	pair_open(&t->p, o);
	t->a = &t->p.a;
	t->b = &t->p.b;
	t->len = len;
	assert_non_null(t->ma = aligned_alloc(4096, (len + 4095) & ~(size_t)4095));
	assert_non_null(t->mb = aligned_alloc(4096, (len + 4095) & ~(size_t)4095));
	for (size_t i = 0; i < len; i++) {
		t->ma[i] = (uint8_t)(i * 7 + i / 251 + 1);
		t->mb[i] = (uint8_t)(i * 11 + i / 239 + 2);
	}
	t->mra = end_reg(t->a, t->ma, len, REMOTE_ALL);
	t->mrb = end_reg(t->b, t->mb, len, REMOTE_ALL);
}

void bench_dereg(struct qp_end *e, struct mr **mr)
{
	if (!*mr)
		return;
	mr_kill(*mr);
	if (e->qp)
		qp_detach_mr(e->qp, *mr, !(*mr)->backing.lasting);
	mr_wait_idle(*mr);
	mr_delete(*mr);
	*mr = NULL;
}

void bench_close(struct bench *t)
{
	if (t->a->wb_running)
		end_finish_writeback(t->a, 0);
	if (t->b->wb_running)
		end_finish_writeback(t->b, 0);
	bench_dereg(t->a, &t->mra);
	bench_dereg(t->b, &t->mrb);
	pair_close(&t->p);
	free(t->ma);
	free(t->mb);
}

int bench_setup(void **state)
{
	const struct pair_options o = pair_defaults();
	const size_t *len = *state;
	struct bench *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	bench_open(t, &o, *len);
	*state = t;
	return 0;
}

int bench_teardown(void **state)
{
	bench_close(*state);
	free(*state);
	return 0;
}

void bench_write(struct bench *t, uint64_t id, struct mr *remote, size_t at)
{
	assert_int_equal(end_write(t->a, id, t->mra, 0, BENCH_REST, remote, at), 0);
}

void bench_flush_all(struct bench *t, uint64_t id)
{
	assert_int_equal(qp_flush_all(t->a->qp, id, VEXT_FLUSH_PERSISTENT), 0);
}

void bench_expect_failed(struct bench *t, uint64_t id, enum vext_reason reason, int err)
{
	struct ibv_wc wc = next_wc(&t->a->scq);

	assert_int_equal(wc.wr_id, id);
	assert_int_equal(wc.status, IBV_WC_REM_OP_ERR);
	assert_int_equal(wc.vendor_err, vext_vendor_err(reason, (uint32_t)err));
}

void bench_expect_wb(const struct qp_end *e, int n, const void *addr, uint64_t len)
{
	assert_true(n < e->wb_count);
	assert_ptr_equal(e->wb_log[n].addr, addr);
	assert_int_equal(e->wb_log[n].len, len);
}
