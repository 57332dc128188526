/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * batch.c -- collects operations and posts them together.
 *
 * Until the operations are posted, they are stored as the caller described them. There are two
 * reasons: the peer's capabilities may not be known earlier, and requests that were not posted can
 * be posted again.
 */
#include <stdlib.h>

#include "rpma/err.h"
#include "rpma/mr.h"
#include "rpma/op.h"

struct rpma_batch {
	struct rpma_conn *conn;
	uint32_t size, count;
	struct vext_wr *wrs; /* the requests as the caller described them */
	/* the requests in the form in which they are posted; used only within rpma_batch_post() */
	struct vext_wr *ready;
	struct ibv_sge (*segs)[RPMA_SEND_SEGMENTS_MAX];
	struct rpma_mr_remote *regions;
};

static struct op batch_op(struct rpma_batch *batch, uint32_t i)
{
	return (struct op){
		.wr = &batch->wrs[i], .segs = batch->segs[i], .region = &batch->regions[i]};
}

static void batch_free(struct rpma_batch *batch)
{
	free(batch->wrs);
	free(batch->ready);
	free(batch->segs);
	free(batch->regions);
	free(batch);
}

int rpma_batch_new(struct rpma_conn *conn, uint32_t size, struct rpma_batch **batch_ptr)
{
	struct rpma_batch *batch;

	if (!conn || !size || !batch_ptr)
		return INVALID();
	if (size > conn->queues.sq_size) {
		LOG_ERROR("a batch of %u operations never fits into the send queue, which takes %u "
			  "(see rpma_conn_cfg_set_sq_size)",
			  size, conn->queues.sq_size);
		return RPMA_E_INVAL;
	}
	batch = calloc(1, sizeof(*batch));
	if (!batch)
		return NOMEM();
	batch->conn = conn;
	batch->size = size;
	batch->wrs = calloc(size, sizeof(*batch->wrs));
	batch->ready = calloc(size, sizeof(*batch->ready));
	batch->segs = calloc(size, sizeof(*batch->segs));
	batch->regions = calloc(size, sizeof(*batch->regions));
	if (!batch->wrs || !batch->ready || !batch->segs || !batch->regions) {
		batch_free(batch);
		return NOMEM();
	}
	*batch_ptr = batch;
	return 0;
}

int rpma_batch_delete(struct rpma_batch **batch_ptr)
{
	if (!batch_ptr)
		return INVALID();
	if (*batch_ptr)
		batch_free(*batch_ptr);
	*batch_ptr = NULL;
	return 0;
}

/* Finish the description of an operation. If it succeeded (ret is 0), count the operation, unless
 * the peer is known not to support it. */
static int batch_added(struct rpma_batch *batch, int ret)
{
	if (!ret)
		ret = op_check(batch_op(batch, batch->count), batch->conn);
	if (!ret)
		batch->count++;
	return ret;
}

/* Check that the batch has room for one more operation. */
static int batch_check_room(const struct rpma_batch *batch)
{
	if (!batch)
		return err_set(RPMA_E_INVAL, "there is no batch");
	if (batch->count < batch->size)
		return 0;
	return err_set(RPMA_E_AGAIN, "the batch is full: post it, then go on");
}

int rpma_batch_write(struct rpma_batch *batch, struct rpma_mr_remote *dst, size_t dst_offset,
		     const struct rpma_mr_local *src, size_t src_offset, size_t len, int flags,
		     const void *op_context)
{
	int ret = batch_check_room(batch);

	return ret ? ret
		   : batch_added(batch,
				 op_rdma(batch_op(batch, batch->count), IBV_WR_RDMA_WRITE, 0, src,
					 src_offset, dst, dst_offset, len, flags, op_context));
}

int rpma_batch_atomic_write(struct rpma_batch *batch, struct rpma_mr_remote *dst, size_t dst_offset,
			    const char src[8], int flags, const void *op_context)
{
	int ret = batch_check_room(batch);

	return ret ? ret
		   : batch_added(batch, op_atomic_write(batch_op(batch, batch->count), dst,
							dst_offset, src, flags, op_context));
}

int rpma_batch_atomic_compare_swap(struct rpma_batch *batch, struct rpma_mr_local *result,
				   size_t result_offset, struct rpma_mr_remote *dst,
				   size_t dst_offset, uint64_t compare, uint64_t swap, int flags,
				   const void *op_context)
{
	int ret = batch_check_room(batch);

	return ret ? ret
		   : batch_added(batch,
				 op_atomic(batch_op(batch, batch->count), IBV_WR_ATOMIC_CMP_AND_SWP,
					   result, result_offset, dst, dst_offset, compare, swap,
					   flags, op_context));
}

int rpma_batch_atomic_fetch_add(struct rpma_batch *batch, struct rpma_mr_local *result,
				size_t result_offset, struct rpma_mr_remote *dst, size_t dst_offset,
				uint64_t add, int flags, const void *op_context)
{
	int ret = batch_check_room(batch);

	return ret ? ret
		   : batch_added(batch,
				 op_atomic(batch_op(batch, batch->count),
					   IBV_WR_ATOMIC_FETCH_AND_ADD, result, result_offset, dst,
					   dst_offset, add, 0, flags, op_context));
}

int rpma_batch_flush(struct rpma_batch *batch, struct rpma_mr_remote *dst, size_t dst_offset,
		     size_t len, enum rpma_flush_type type, int flags, const void *op_context)
{
	int ret = batch_check_room(batch);

	return ret ? ret
		   : batch_added(batch, op_flush(batch_op(batch, batch->count), dst, dst_offset,
						 len, type, true, flags, op_context));
}

int rpma_batch_flush_all(struct rpma_batch *batch, enum rpma_flush_type type, int flags,
			 const void *op_context)
{
	int ret = batch_check_room(batch);

	return ret ? ret
		   : batch_added(batch, op_flush_all(batch_op(batch, batch->count), type, flags,
						     op_context));
}

int rpma_batch_send(struct rpma_batch *batch, const struct rpma_segment *segments, uint32_t count,
		    int flags, const void *op_context)
{
	int ret = batch_check_room(batch);

	return ret ? ret
		   : batch_added(batch, op_gather(batch_op(batch, batch->count), batch->conn,
						  segments, count, flags, op_context));
}

static void batch_drop_first(struct rpma_batch *batch, uint32_t n)
{
	batch->count -= n;
	memmove(batch->wrs, batch->wrs + n, batch->count * sizeof(*batch->wrs));
	memmove(batch->segs, batch->segs + n, batch->count * sizeof(*batch->segs));
	memmove(batch->regions, batch->regions + n, batch->count * sizeof(*batch->regions));
}

static int batch_settle(struct rpma_batch *batch)
{
	int ret = 0;

	for (uint32_t i = 0; i < batch->count && !ret; i++) {
		struct op op = batch_op(batch, i);

		batch->ready[i] = batch->wrs[i];
		op.wr = &batch->ready[i];
		ret = op_settle(op, batch->conn);
	}
	return ret;
}

int rpma_batch_post(struct rpma_batch *batch)
{
	const struct rpma_conn *conn;
	int posted = 0;
	int ret, err;

	if (!batch)
		return INVALID();
	if (!batch->count)
		return 0;
	ret = batch_settle(batch);
	if (ret)
		return ret;
	conn = batch->conn;
	err = conn->prov->post_list(conn->id->qp, batch->ready, (int)batch->count, &posted);
	batch_drop_first(batch, err ? (uint32_t)posted : batch->count);
	if (err == ENOMEM)
		return err_set(RPMA_E_AGAIN,
			       "the send queue has no room for the batch now: collect "
			       "completions first");
	return err ? PROVIDER_FAILED(err, "post_list(n=%u)%s", batch->count, conn_phase(conn)) : 0;
}

int rpma_batch_get_count(const struct rpma_batch *batch, uint32_t *count)
{
	if (!batch || !count)
		return INVALID();
	*count = batch->count;
	return 0;
}

int rpma_batch_clear(struct rpma_batch *batch)
{
	if (!batch)
		return INVALID();
	batch->count = 0;
	return 0;
}
