/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/verbs/qp_builder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softrnic/softrnic.h"

struct qp_builder *qp_builder_new(uint64_t ops, const struct ibv_qp_cap *cap)
{
	struct qp_builder *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	pthread_mutex_init(&b->lock, NULL);
	b->ops = ops;
	b->cap = *cap;
	return b;
}

void qp_builder_delete(struct qp_builder *b)
{
	if (!b)
		return;
	free(b->wrs.data);
	free(b->sges.data);
	free(b->bytes.data);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

void qp_builder_fail(struct qp_builder *b, int err)
{
	if (!b->err)
		b->err = err;
}

/* Enlarge the array by `more` elements. Returns the first of them, or NULL if out of memory. */
static void *builder_extend(struct builder_array *a, size_t more, size_t size)
{
	size_t room = a->room ? a->room : 16;
	void *data;

	while (room < a->count + more)
		room *= 2;
	if (room != a->room) {
		data = realloc(a->data, room * size);
		if (!data)
			return NULL;
		a->data = data;
		a->room = room;
	}
	a->count += more;
	return (uint8_t *)a->data + (a->count - more) * size;
}

/* Begin a request. A list that is longer than the send queue gets the same error as a list that
 * finds the queue full. */
struct vext_wr *qp_builder_next(struct qp_builder *b, uint64_t op, uint64_t wr_id, unsigned flags)
{
	struct vext_wr *w = NULL;

	if (!(b->ops & op))
		qp_builder_fail(b, EINVAL);
	if (b->wrs.count < b->cap.max_send_wr)
		w = builder_extend(&b->wrs, 1, sizeof(*w));
	if (!w) {
		qp_builder_fail(b, ENOMEM);
		return NULL;
	}
	*w = (struct vext_wr){
		.op = VEXT_OP_VERBS,
		.wr = {.wr_id = wr_id, .send_flags = flags & ~(unsigned)IBV_SEND_INLINE},
	};
	return w;
}

static struct vext_wr *builder_last(struct qp_builder *b)
{
	return b->wrs.count ? (struct vext_wr *)b->wrs.data + b->wrs.count - 1 : NULL;
}

/* Add n SGEs to the last request. Returns NULL if an error is recorded. */
static struct ibv_sge *builder_take_entries(struct qp_builder *b, size_t n)
{
	struct vext_wr *w = builder_last(b);
	struct ibv_sge *sges;

	if (!w || w->wr.num_sge || w->op != VEXT_OP_VERBS || n > b->cap.max_send_sge) {
		qp_builder_fail(b, EINVAL);
		return NULL;
	}
	sges = builder_extend(&b->sges, n, sizeof(*sges));
	if (!sges)
		qp_builder_fail(b, ENOMEM);
	else
		w->wr.num_sge = (int)n;
	return sges;
}

void qp_builder_entries(struct qp_builder *b, size_t n, const struct ibv_sge *list)
{
	struct ibv_sge *sges = builder_take_entries(b, n);

	for (size_t i = 0; sges && i < n; i++)
		sges[i] = list[i];
}

/* Returns the total length of the parts, or SIZE_MAX if it is above the queue pair's limit. */
static size_t builder_inline_length(const struct qp_builder *b, size_t n,
				    const struct ibv_data_buf *bufs)
{
	size_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		if (bufs[i].length > b->cap.max_inline_data - sum)
			return SIZE_MAX;
		sum += bufs[i].length;
	}
	return sum;
}

/* Copy the inline data. All parts become one SGE. */
void qp_builder_inline(struct qp_builder *b, size_t n, const struct ibv_data_buf *bufs)
{
	size_t len = builder_inline_length(b, n, bufs);
	struct ibv_sge *sge = NULL;
	uint8_t *to = NULL;

	if (len == SIZE_MAX)
		qp_builder_fail(b, EINVAL);
	else
		sge = builder_take_entries(b, 1);
	if (!sge)
		return;
	*sge = (struct ibv_sge){.addr = b->bytes.count, .length = (uint32_t)len};
	builder_last(b)->wr.send_flags |= IBV_SEND_INLINE;
	to = builder_extend(&b->bytes, len, 1);
	if (!to)
		qp_builder_fail(b, ENOMEM);
	for (size_t i = 0; to && i < n; to += bufs[i++].length)
		if (bufs[i].length)
			memcpy(to, bufs[i].addr, bufs[i].length);
}

void qp_builder_address(struct qp_builder *b, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct vext_wr *w = builder_last(b);

	if (!w || w->op != VEXT_OP_VERBS) {
		qp_builder_fail(b, EINVAL);
		return;
	}
	w->wr.wr.ud.ah = ah;
	w->wr.wr.ud.remote_qpn = qpn;
	w->wr.wr.ud.remote_qkey = qkey;
}

/*
 * Set each request's list of SGEs, and the addresses of inline data. This is done at the end,
 * because the arrays move while they grow.
 */
static void builder_point(struct qp_builder *b)
{
	struct vext_wr *wrs = b->wrs.data;
	struct ibv_sge *sge = b->sges.data;

	for (size_t i = 0; i < b->wrs.count; i++) {
		struct ibv_send_wr *wr = &wrs[i].wr;

		wr->sg_list = wr->num_sge ? sge : NULL;
		if (wr->send_flags & IBV_SEND_INLINE)
			sge->addr += (uintptr_t)b->bytes.data;
		if (wr->num_sge)
			sge += wr->num_sge;
	}
}

int qp_builder_post(struct qp_builder *b, struct ibv_qp *qp)
{
	int err = b->err, posted;

	if (!err && b->wrs.count) {
		builder_point(b);
		err = softrnic_post(qp, b->wrs.data, (int)b->wrs.count, &posted);
	}
	qp_builder_forget(b);
	return err;
}

void qp_builder_forget(struct qp_builder *b)
{
	b->wrs.count = b->sges.count = b->bytes.count = 0;
	b->err = 0;
}
