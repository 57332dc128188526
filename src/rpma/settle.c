/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settle.c -- decides how an operation is posted, depending on the peer's capabilities.
 *
 * If the peer agreed to flushes, a flush is posted as a flush; otherwise it becomes a small read. A
 * read is answered only after the earlier writes on the same connection are placed, so the answer
 * shows that the writes are visible. The writes are also persistent if the peer declared that its
 * writes go directly to persistent memory. The choice between flush and read is made only here,
 * because a peer that agreed to flushes does not write back before it answers reads.
 */
#include "rpma/err.h"
#include "rpma/mr.h"
#include "rpma/op.h"

static const struct {
	/* capability that the peer must have; 0: if the peer lacks it, another operation is posted
	 * instead */
	uint32_t cap;
	const char *what;
} needs[] = {
	[VEXT_OP_FLUSH_ALL] = {RPMA_CAP_FLUSH_ALL, "flush everything at once"},
	[VEXT_OP_VERIFY] = {RPMA_CAP_VERIFY, "verify"},
	[VEXT_OP_QUERY] = {RPMA_CAP_QUERY, "report durability classes"},
};

/*
 * Returns the peer's capabilities. Before they are known, assume that every operation is possible.
 */
static uint32_t settle_caps(const struct rpma_conn *conn)
{
	uint32_t caps = conn->prov->qp_caps(conn->id->qp);

	return caps & VEXT_CAP_KNOWN ? caps : UINT32_MAX;
}

/*
 * Returns true if a read makes written bytes persistent: the peer declared that its writes go
 * directly to persistent memory. A read has no such effect if the peer agreed to the extensions but
 * has no Flush: this end announced that it does not flush by reading, so the peer writes nothing
 * back before it answers a read.
 */
static bool settle_can_persist(const struct rpma_conn *conn, uint32_t caps)
{
	if (caps & RPMA_CAP_FLUSH)
		return true;
	return !(caps & RPMA_CAP_SOFTRNIC) && atomic_load(&conn->direct_write_to_pmem);
}

static int settle_check(const struct vext_wr *wr, const struct rpma_conn *conn, uint32_t caps)
{
	if (wr->op < sizeof(needs) / sizeof(needs[0]) && needs[wr->op].cap & ~caps) {
		LOG_ERROR("the other end cannot %s (see rpma_conn_get_remote_caps)",
			  needs[wr->op].what);
		return RPMA_E_NOSUPP;
	}
	if (wr->op == VEXT_OP_FLUSH && wr->type != VEXT_FLUSH_VISIBLE &&
	    !settle_can_persist(conn, caps)) {
		LOG_ERROR("a persistent flush is not supported: the peer neither flushes natively "
			  "nor writes directly to persistent memory "
			  "(see rpma_conn_apply_remote_peer_cfg)");
		return RPMA_E_NOSUPP;
	}
	return 0;
}

/*
 * Choose the bytes to read instead of flushing the range. They are the first bytes of the range,
 * but not past the region's end, because the peer would refuse to read those. If the range is not
 * inside the region, they are the bytes at the range's end, so that the peer refuses the read.
 */
static void settle_choose_read(const struct rpma_mr_remote *region, uint64_t offset, uint64_t len,
			       uint64_t *read_offset, uint32_t *read_len)
{
	*read_offset = offset;
	*read_len = FLUSH_READ_LEN;
	if (offset > region->size || len > region->size - offset) {
		if (len > FLUSH_READ_LEN)
			*read_offset += len - FLUSH_READ_LEN;
		return;
	}
	if (region->size - offset >= FLUSH_READ_LEN)
		return;
	if (region->size < FLUSH_READ_LEN)
		*read_len = (uint32_t)region->size;
	*read_offset = region->size - *read_len;
}

static int settle_as_read(struct op op, const struct rpma_conn *conn)
{
	uint64_t offset = op.wr->wr.wr.rdma.remote_addr - op.region->raddr;
	uint64_t read_offset;
	uint32_t read_len;

	settle_choose_read(op.region, offset, op.wr->len, &read_offset, &read_len);
	op.wr->op = VEXT_OP_VERBS;
	op.wr->wr.opcode = IBV_WR_RDMA_READ;
	op.wr->wr.wr.rdma.remote_addr = op.region->raddr + read_offset;
	op.wr->wr.num_sge = 1;
	return mr_sge(&op.segs[0], flush_sink_mr(conn->flush_sink), 0, read_len);
}

/*
 * If flushes are posted as reads, set the fence flag: the atomic write must not be executed before
 * the read is answered.
 */
static void settle_atomic_write(struct op op, uint32_t caps)
{
	if (!(caps & RPMA_CAP_FLUSH) || !(caps & RPMA_CAP_ATOMIC_WRITE))
		op.wr->wr.send_flags |= IBV_SEND_FENCE;
	if (caps & RPMA_CAP_ATOMIC_WRITE)
		return;
	op.wr->op = VEXT_OP_VERBS;
	op.wr->wr.opcode = IBV_WR_RDMA_WRITE;
	op.wr->wr.send_flags |= IBV_SEND_INLINE;
	op.segs[0] = (struct ibv_sge){.length = RPMA_ATOMIC_WRITE_ALIGNMENT};
	op.wr->wr.num_sge = 1;
}

static int settle_check_atomic(const struct rpma_conn *conn)
{
	if (settle_caps(conn) & RPMA_CAP_ATOMICS)
		return 0;
	LOG_ERROR("the other end has no atomic operations (see rpma_conn_get_remote_caps)");
	return RPMA_E_NOSUPP;
}

int op_check(struct op op, const struct rpma_conn *conn)
{
	if (op_is_atomic(op.wr))
		return settle_check_atomic(conn);
	return op.wr->op == VEXT_OP_VERBS ? 0 : settle_check(op.wr, conn, settle_caps(conn));
}

int op_settle_by_caps(struct op op, const struct rpma_conn *conn)
{
	uint32_t caps;
	int ret;

	if (op.wr->op == VEXT_OP_VERBS)
		return settle_check_atomic(conn);
	caps = settle_caps(conn);
	ret = settle_check(op.wr, conn, caps);
	if (!ret && op.wr->op == VEXT_OP_FLUSH && !(caps & RPMA_CAP_FLUSH))
		ret = settle_as_read(op, conn);
	else if (!ret && op.wr->op == VEXT_OP_ATOMIC_WRITE)
		settle_atomic_write(op, caps);
	return ret;
}
