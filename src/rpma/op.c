/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op.c -- builds the work requests of atomic operations and messages. op.h builds the requests of
 * reads and writes; flush.c and verify.c build all other requests. settle.c adapts all requests to
 * the peer's capabilities.
 */
#include "rpma/op.h"

/* The bytes are copied into the request, so the caller may change src afterwards. */
int op_atomic_write(struct op op, const struct rpma_mr_remote *dst, size_t offset,
		    const char src[8], int flags, const void *op_context)
{
	if (!dst || !src || !flags || offset % RPMA_ATOMIC_WRITE_ALIGNMENT)
		return err_set(RPMA_E_INVAL, "an atomic write has flags 0, no region, no bytes, or "
					     "an offset that is no multiple of 8");
	op_begin(op, VEXT_OP_ATOMIC_WRITE, flags, op_context);
	op_target(op, dst, offset, RPMA_ATOMIC_WRITE_ALIGNMENT);
	memcpy(op.wr->bytes, src, RPMA_ATOMIC_WRITE_ALIGNMENT);
	return 0;
}

/* Check an atomic operation. The word's address, which is the region's start plus the offset, must
 * be a multiple of 8. */
int op_atomic(struct op op, enum ibv_wr_opcode opcode, const struct rpma_mr_local *result,
	      size_t result_offset, const struct rpma_mr_remote *dst, size_t offset,
	      uint64_t operand, uint64_t swap, int flags, const void *op_context)
{
	if (!result || !dst || !flags || (dst->raddr + offset) % RPMA_ATOMIC_ALIGNMENT)
		return err_set(RPMA_E_INVAL,
			       "an atomic operation has flags 0, no region, or a word "
			       "whose address is no multiple of 8");
	if ((dst->usage & MR_USAGE_ATOMIC) != MR_USAGE_ATOMIC) {
		LOG_ERROR("the remote region was not registered for atomic operations: they need "
			  "RPMA_MR_USAGE_READ_SRC and RPMA_MR_USAGE_WRITE_DST");
		return RPMA_E_NOSUPP;
	}
	op_begin(op, VEXT_OP_VERBS, flags, op_context);
	op.wr->wr.opcode = opcode;
	op.wr->wr.wr.atomic.remote_addr = dst->raddr + offset;
	op.wr->wr.wr.atomic.rkey = dst->rkey;
	op.wr->wr.wr.atomic.compare_add = operand;
	op.wr->wr.wr.atomic.swap = swap;
	return op_set_segment(op, result, result_offset, RPMA_ATOMIC_ALIGNMENT);
}

int op_message(struct op op, enum ibv_wr_opcode opcode, uint32_t imm,
	       const struct rpma_mr_local *src, size_t offset, size_t len, int flags,
	       const void *op_context)
{
	if (!flags || (!src && (offset || len)))
		return err_set(RPMA_E_INVAL, "a send has flags 0, or bytes but no region");
	op_begin_lean(op, VEXT_OP_VERBS, flags, op_context);
	op.wr->wr.opcode = opcode;
	op.wr->wr.imm_data = htonl(imm);
	return src ? op_set_segment(op, src, offset, len) : 0;
}

/*
 * Empty segments are left out: Linux's siw (6.1) crashes on an empty segment that is not the last
 * one.
 */
static int op_set_segments(struct op op, const struct rpma_segment *segments, uint32_t count)
{
	uint64_t total = 0;
	int ret = 0;

	for (uint32_t i = 0; i < count && !ret; i++) {
		if (!segments[i].len)
			continue;
		ret = mr_sge(&op.segs[op.wr->wr.num_sge++], segments[i].mr, segments[i].offset,
			     segments[i].len);
		total += segments[i].len;
	}
	return ret ? ret : mr_check_len(total);
}

int op_gather(struct op op, struct rpma_conn *conn, const struct rpma_segment *segments,
	      uint32_t count, int flags, const void *op_context)
{
	if (!conn || !segments || !count || count > RPMA_SEND_SEGMENTS_MAX || !flags)
		return err_set(RPMA_E_INVAL, "a gathered send has flags 0, no connection, or none "
					     "or too many segments");
	for (uint32_t i = 0; i < count; i++)
		if (!segments[i].mr)
			return err_set(RPMA_E_INVAL, "a segment has no region");
	if (count > conn->queues.max_send_sge) {
		LOG_ERROR("the device gathers at most %u segments", conn->queues.max_send_sge);
		return RPMA_E_NOSUPP;
	}
	op_begin(op, VEXT_OP_VERBS, flags, op_context);
	op.wr->wr.opcode = IBV_WR_SEND;
	return op_set_segments(op, segments, count);
}
