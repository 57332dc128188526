/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/qp_bench.h"

#include <stdlib.h>

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
		qp_detach_mr(e->qp, *mr);
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
