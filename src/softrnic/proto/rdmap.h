/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdmap.h -- RDMAP messages: opcodes, their table, and their headers (RFC 5040 s4, RFC 7306 s5 to
 * s7). Send with Immediate and the extension messages are additions of softrnic (doc/wire.md).
 * ext.h lists the kinds of extension messages.
 */
#ifndef PROTO_RDMAP_H
#define PROTO_RDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "softrnic/proto/ddp.h"
#include "softrnic/proto/ext.h"
#include "softrnic/proto/term_code.h"

#define RDMAP_VERSION 1

enum rdmap_opcode {
	RDMAP_WRITE = 0x0,
	RDMAP_READ_REQ = 0x1,
	RDMAP_READ_RESP = 0x2,
	RDMAP_SEND = 0x3,
	RDMAP_SEND_INV = 0x4,
	RDMAP_SEND_SE = 0x5,
	RDMAP_SEND_SE_INV = 0x6,
	RDMAP_TERMINATE = 0x7,
	RDMAP_IMM = 0x8,
	RDMAP_IMM_SE = 0x9,
	RDMAP_ATOMIC_REQ = 0xa,
	RDMAP_ATOMIC_RESP = 0xb,
	RDMAP_EXT_REQ = 0xc,
	RDMAP_EXT_RESP = 0xd,
	RDMAP_SEND_IMM = 0xe,
	RDMAP_UNASSIGNED = 0xf,
};
#define RDMAP_OPCODES 16

/* The sets of peers to which an opcode may be sent, and from which the opcode is accepted. */
enum rdmap_level {
	RDMAP_LEVEL_BASE, /* RFC 5040: every peer */
	/*
	 * immediate data and atomics: peers that agreed to the extensions or are declared capable
	 */
	RDMAP_LEVEL_7306,
	RDMAP_LEVEL_OURS,  /* only peers that agreed to the extensions */
	RDMAP_LEVEL_NEVER, /* no peer: no standard assigns the opcode */
};

/* One row for each opcode. hdr_len is the length of the RDMAP header after the DDP header. `min`
 * and `max` limit the length of the whole message after the DDP header; this length includes
 * hdr_len. */
struct rdmap_op {
	const char *name; /* NULL: the opcode does not exist */
	enum rdmap_level level;
	bool tagged;
	bool solicited;  /* the opcode is a Solicited Event variant */
	bool invalidate; /* ulp_word is the STag to invalidate */
	bool immediate;  /* ulp_word is immediate data */
	bool is_answer;  /* the message answers a request */
	/* an extension kind follows (ext.h); the message may also arrive on DDP_QN_CONTROL */
	bool extension;
	uint8_t qn; /* queue number of an untagged message */
	uint8_t hdr_len;
	uint32_t min, max;
};
#define RDMAP_ANY_LEN UINT32_MAX

extern const struct rdmap_op rdmap_ops[RDMAP_OPCODES];

static inline uint8_t rdmap_ctrl(enum rdmap_opcode op)
{
	return (uint8_t)(RDMAP_VERSION << 6 | op);
}

/* The standards leave only one opcode for Sends with Immediate. This reserved bit of the control
 * byte marks the variant with Solicited Event. */
#define RDMAP_CTRL_SEND_IMM_SE 0x10

static inline enum rdmap_opcode rdmap_ctrl_opcode(uint8_t ctrl)
{
	return (enum rdmap_opcode)(ctrl & 0xf);
}

static inline const struct rdmap_op *rdmap_op_of(const struct ddp_hdr *hdr)
{
	return &rdmap_ops[rdmap_ctrl_opcode(hdr->ulp)];
}

static inline uint8_t rdmap_ctrl_version(uint8_t ctrl)
{
	return ctrl >> 6;
}

static inline bool rdmap_ctrl_is_solicited(uint8_t ctrl)
{
	enum rdmap_opcode op = rdmap_ctrl_opcode(ctrl);

	return rdmap_ops[op].solicited || (op == RDMAP_SEND_IMM && ctrl & RDMAP_CTRL_SEND_IMM_SE);
}

/*
 * Is a peer of this level allowed to send this segment, with len bytes after its DDP header? Checks
 * the versions, the opcode, its T bit, its QN, the kind of an extension message, and the length as
 * far as one segment shows the length. `op` is the opcode's row (rdmap_op_of()). `bytes` are the
 * bytes after the DDP header; the function reads them only if `len` is the length of a message with
 * an RDMAP header. Returns 0, or the error (enum term_error) of the Terminate with which this end
 * answers. The value 0 of that enum, TERM_RDMAP_LOCAL_CATASTROPHIC, is never an error that these
 * checks find. The caller checks MSN, MO and STag.
 */
unsigned rdmap_check(const struct rdmap_op *op, const struct ddp_hdr *hdr, const uint8_t *bytes,
		     size_t len, enum rdmap_level level);

/* RDMA Read Request header (RFC 5040 s4.4). */
#define RDMAP_READ_REQ_LEN 28
struct rdmap_read_req {
	uint32_t sink_stag;
	uint64_t sink_to;
	uint32_t size;
	uint32_t src_stag;
	uint64_t src_to;
};

/* Immediate Data header (RFC 7306 s6.1). The immediate value of verbs has 32 bits. It is the high
 * half of the field, which is sent first. */
#define RDMAP_IMM_LEN 8
struct rdmap_imm {
	uint64_t data;
};

/* Atomic Request and Response headers (RFC 7306 s5.2). */
#define RDMAP_ATOMIC_REQ_LEN  52
#define RDMAP_ATOMIC_RESP_LEN 12
enum rdmap_atomic_op {
	RDMAP_FETCH_ADD = 0,
	RDMAP_CMP_SWAP = 2,
};
struct rdmap_atomic_req {
	uint8_t op; /* 4 bits */
	uint32_t id;
	uint32_t stag;
	uint64_t to;
	uint64_t data, data_mask; /* the values to add or to swap in, and their masks */
	uint64_t compare, compare_mask;
};
struct rdmap_atomic_resp {
	uint32_t id;
	uint64_t original;
};

/* The header of any request, and of any answer with a header. */
union rdmap_request {
	struct rdmap_read_req read;
	struct rdmap_atomic_req atomic;
	/* Every extension request begins with `word`. Two requests have more fields: */
	struct ext_word word;
	struct ext_range range;
	struct ext_atomic_write atomic_write;
};
union rdmap_answer {
	struct rdmap_atomic_resp atomic;
	struct ext_answer ext;
};

/*
 * rdmap_<x>_encode(buf, size, msg) returns the length written or -ENOSPC; rdmap_<x>_decode(buf,
 * len, msg) returns the length read or -EBADMSG. _put and _get do the same in the middle of a
 * message.
 */
#define RDMAP_HEADERS(X)                                                                           \
	X(read_req, RDMAP_READ_REQ_LEN)                                                            \
	X(imm, RDMAP_IMM_LEN)                                                                      \
	X(atomic_req, RDMAP_ATOMIC_REQ_LEN)                                                        \
	X(atomic_resp, RDMAP_ATOMIC_RESP_LEN)
#define X(name, length)                                                                            \
	void rdmap_##name##_put(struct wcursor *c, const struct rdmap_##name *msg);                \
	void rdmap_##name##_get(struct rcursor *c, struct rdmap_##name *msg);                      \
	int rdmap_##name##_encode(void *buf, size_t size, const struct rdmap_##name *msg);         \
	int rdmap_##name##_decode(const void *buf, size_t len, struct rdmap_##name *msg);
RDMAP_HEADERS(X)
#undef X

#endif
