/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flush.c -- a flush is one operation where the peer agreed to it, otherwise a small read.
 *
 * A read that follows writes on the same connection is answered only when these are placed. That
 * makes them visible; and persistent, where the peer declared that its writes go directly to
 * persistent memory.
 */
#include "rpma/flush.h"

#include <sys/mman.h>
#include <unistd.h>

#include "rpma/err.h"
#include "rpma/mr.h"
#include "rpma/op.h"

enum { READ_LEN = 8 };

int flush_sink_init(struct flush_sink *sink, struct rpma_peer *peer)
{
	long page_size = sysconf(_SC_PAGESIZE);
	int ret;

	if (page_size < 0) {
		LOG_AT(LOG_LVL_FATAL, "sysconf(_SC_PAGESIZE) failed: %s", strerror(errno));
		return RPMA_E_PROVIDER;
	}
	/* Shared, so that a fork does not leave the device with the child's copy. */
	sink->page_size = (size_t)page_size;
	sink->page = mmap(NULL, sink->page_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			  -1, 0);
	if (sink->page == MAP_FAILED)
		return RPMA_E_NOMEM;
	ret = rpma_mr_reg(peer, sink->page, READ_LEN, RPMA_MR_USAGE_READ_DST, &sink->mr);
	if (ret)
		munmap(sink->page, sink->page_size);
	return ret;
}

int flush_sink_fini(struct flush_sink *sink)
{
	int ret = rpma_mr_dereg(&sink->mr);

	if (munmap(sink->page, sink->page_size))
		ret = first_error(ret, RPMA_E_INVAL);
	return ret;
}

/*
 * Which bytes to read for the range: at its start, but never past the region's end, where the
 * peer would refuse. A range that is not inside the region is left to be refused.
 */
static void choose_read(const struct rpma_mr_remote *dst, size_t offset, size_t len,
			uint64_t *read_offset, uint32_t *read_len)
{
	*read_offset = offset;
	*read_len = READ_LEN;
	if (offset > dst->size || len > dst->size - offset || dst->size - offset >= READ_LEN)
		return;
	if (dst->size < READ_LEN)
		*read_len = (uint32_t)dst->size;
	*read_offset = dst->size - *read_len;
}

static void describe_read(struct op op, struct rpma_conn *conn, const struct rpma_mr_remote *dst,
			  size_t offset, size_t len, int flags, const void *op_context)
{
	uint64_t read_offset;
	uint32_t read_len;

	choose_read(dst, offset, len, &read_offset, &read_len);
	op_begin(op, SOFTRNIC_OP_VERBS, flags, op_context);
	op_target(op, dst, read_offset, read_len);
	op.wr->wr.opcode = IBV_WR_RDMA_READ;
	op.segs[0] = mr_sge(conn->flush_sink.mr, 0, read_len);
	op.wr->wr.num_sge = 1;
	op_point(op);
}

static enum softrnic_flush_type native_type(enum rpma_flush_type type)
{
	return type == RPMA_FLUSH_TYPE_PERSISTENT ? SOFTRNIC_FLUSH_PERSISTENT
						  : SOFTRNIC_FLUSH_VISIBLE;
}

/* May this connection make this region's bytes reach what `type` names? */
static int check_supported(struct rpma_conn *conn, const struct rpma_mr_remote *dst,
			   enum rpma_flush_type type, bool native)
{
	int needed = 0;

	if (type == RPMA_FLUSH_TYPE_PERSISTENT)
		needed = RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
	else if (type == RPMA_FLUSH_TYPE_VISIBILITY)
		needed = RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;
	if (type == RPMA_FLUSH_TYPE_PERSISTENT && !native &&
	    !atomic_load(&conn->direct_write_to_pmem)) {
		LOG_ERROR("a persistent flush is not supported: the peer neither flushes natively "
			  "nor writes directly to persistent memory "
			  "(see rpma_conn_apply_remote_peer_cfg)");
		return RPMA_E_NOSUPP;
	}
	if ((dst->usage & needed) != needed) {
		LOG_ERROR("the remote region was not registered for this type of flush");
		return RPMA_E_NOSUPP;
	}
	return 0;
}

int op_flush(struct op op, struct rpma_conn *conn, const struct rpma_mr_remote *dst, size_t offset,
	     size_t len, enum rpma_flush_type type, int flags, const void *op_context)
{
	bool native;
	int ret;

	if (!conn || !dst || !flags)
		return RPMA_E_INVAL;
	/* Asked each time: the peer's answer comes with the connection, after this was made. */
	native = conn_has_cap(conn, RPMA_CAP_FLUSH);
	ret = check_supported(conn, dst, type, native);
	if (ret)
		return ret;
	if (!native) {
		describe_read(op, conn, dst, offset, len, flags, op_context);
		return 0;
	}
	op_begin(op, SOFTRNIC_OP_FLUSH, flags, op_context);
	op_target(op, dst, offset, len);
	op.wr->type = native_type(type);
	return 0;
}

int op_flush_all(struct op op, struct rpma_conn *conn, enum rpma_flush_type type, int flags,
		 const void *op_context)
{
	if (!conn || !flags ||
	    (type != RPMA_FLUSH_TYPE_PERSISTENT && type != RPMA_FLUSH_TYPE_VISIBILITY))
		return RPMA_E_INVAL;
	if (!conn_has_cap(conn, RPMA_CAP_FLUSH_ALL))
		return peer_cannot("flush everything at once");
	op_begin(op, SOFTRNIC_OP_FLUSH_ALL, flags, op_context);
	op.wr->type = native_type(type);
	return 0;
}
