/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/rnic/op.h"

/* the row of a kind serves both its request and its response */
#define OP_EXT(kind) OP_MESSAGE(RDMAP_EXT_REQ, kind)
#define OP_VEXT(op)  (OP_POSTED_VEXT + (op))

_Static_assert(EXT_KINDS <= OP_KINDS, "the table has room for each kind");

/*
 * One line for each operation: its row, the opcode by which it is posted, and the message that
 * carries it.
 */
/* clang-format off */
#define OPS(X)                                                                                     \
	X(op_write,        IBV_WR_RDMA_WRITE,             OP_MESSAGE(RDMAP_WRITE, 0))              \
	X(op_write_imm,    IBV_WR_RDMA_WRITE_WITH_IMM,    OP_MESSAGE(RDMAP_IMM, 0))                \
	X(op_send,         IBV_WR_SEND,                   OP_MESSAGE(RDMAP_SEND, 0))               \
	X(op_send_inv,     IBV_WR_SEND_WITH_INV,          OP_MESSAGE(RDMAP_SEND_INV, 0))           \
	X(op_send_imm,     IBV_WR_SEND_WITH_IMM,          OP_MESSAGE(RDMAP_SEND_IMM, 0))           \
	X(op_read,         IBV_WR_RDMA_READ,              OP_MESSAGE(RDMAP_READ_REQ, 0))           \
	X(op_fetch_add,    IBV_WR_ATOMIC_FETCH_AND_ADD,                                            \
	  OP_MESSAGE(RDMAP_ATOMIC_REQ, RDMAP_FETCH_ADD))                                           \
	X(op_cmp_swap,     IBV_WR_ATOMIC_CMP_AND_SWP,                                              \
	  OP_MESSAGE(RDMAP_ATOMIC_REQ, RDMAP_CMP_SWAP))                                            \
	X(op_flush,        OP_VEXT(VEXT_OP_FLUSH),        OP_EXT(EXT_FLUSH))                       \
	X(op_flush_all,    OP_VEXT(VEXT_OP_FLUSH_ALL),    OP_EXT(EXT_FLUSH_ALL))                   \
	X(op_verify,       OP_VEXT(VEXT_OP_VERIFY),       OP_EXT(EXT_VERIFY))                      \
	X(op_query,        OP_VEXT(VEXT_OP_QUERY),        OP_EXT(EXT_QUERY))                       \
	X(op_atomic_write, OP_VEXT(VEXT_OP_ATOMIC_WRITE), OP_EXT(EXT_ATOMIC_WRITE))

/* Messages that have no work request, and further messages (variants and answers) of the rows
 * above. */
#define OP_MESSAGES(X)                                                                             \
	X(op_terminate, OP_MESSAGE(RDMAP_TERMINATE, 0))                                            \
	X(op_hello,     OP_EXT(EXT_HELLO))                                                         \
	X(op_heartbeat, OP_EXT(EXT_HEARTBEAT))                                                     \
	X(op_link,      OP_EXT(EXT_LINK))                                                          \
	X(op_origin,    OP_EXT(EXT_ORIGIN))                                                        \
	X(op_leave,     OP_EXT(EXT_LEAVE))                                                         \
	X(op_ack,       OP_EXT(EXT_ACK))                                                           \
	X(op_send,      OP_MESSAGE(RDMAP_SEND_SE, 0))                                              \
	X(op_send_inv,  OP_MESSAGE(RDMAP_SEND_SE_INV, 0))                                          \
	X(op_write_imm, OP_MESSAGE(RDMAP_IMM_SE, 0))                                               \
	X(op_read,      OP_MESSAGE(RDMAP_READ_RESP, 0))                                            \
	X(op_fetch_add, OP_MESSAGE(RDMAP_ATOMIC_RESP, 0))

/* Operations that send no message. */
#define OPS_LOCAL(X)                                                                               \
	X(op_bind,      IBV_WR_BIND_MW)                                                            \
	X(op_local_inv, IBV_WR_LOCAL_INV)
/* clang-format on */

#define X(row, posted, message) extern const struct qp_op row;
OPS(X)
#undef X
#define X(row, posted) extern const struct qp_op row;
OPS_LOCAL(X)
#undef X

const struct qp_op *const op_posted[OP_POSTED_MAX] = {
#define X(row, posted, message) [posted] = &(row),
	OPS(X)
#undef X
#define X(row, posted) [posted] = &(row),
		OPS_LOCAL(X)
#undef X
};

const struct qp_op *const op_messages[RDMAP_OPCODES * OP_KINDS] = {
#define X(row, posted, message) [message] = &(row),
	OPS(X)
#undef X
#define X(row, message) [message] = &(row),
		OP_MESSAGES(X)
#undef X
};

const struct qp_op *op_of_control(const uint8_t *bytes)
{
	uint8_t kind = ext_word_of(bytes).kind;
	const struct ext_row *row = ext_row(kind);

	return row && row->control ? op_of_request(RDMAP_EXT_REQ, kind) : &op_unknown;
}

uint64_t op_kinds(void)
{
	uint64_t kinds = 0;

	for (unsigned kind = 0; kind < EXT_KINDS; kind++) {
		const struct qp_op *op = op_of_request(RDMAP_EXT_REQ, kind);

		if (op && op->begin)
			kinds |= EXT_BIT(kind);
	}
	return kinds;
}

uint32_t op_caps(uint64_t kinds)
{
	uint32_t caps = 0;

	for (unsigned kind = 0; kind < EXT_KINDS; kind++)
		if (kinds & EXT_BIT(kind) && op_of_request(RDMAP_EXT_REQ, kind))
			caps |= op_of_request(RDMAP_EXT_REQ, kind)->cap;
	return caps;
}
