/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/proto/rdmap.h"

#include <errno.h>

#define TERM_MIN 4
/* greater than the longest known echo, that of an atomic request, which has 76 bytes */
#define TERM_MAX 128

#define SEND_ROW(text, se, inv)                                                                    \
	{                                                                                          \
		.name = text, .qn = DDP_QN_SEND, .solicited = se, .invalidate = inv,               \
		.max = RDMAP_ANY_LEN                                                               \
	}
#define TAGGED_ROW(text)                                                                           \
	{                                                                                          \
		.name = text, .tagged = true, .max = RDMAP_ANY_LEN                                 \
	}
#define FIXED_ROW(text, lvl, queue, len)                                                           \
	{                                                                                          \
		.name = text, .level = lvl, .qn = queue, .hdr_len = len, .min = len, .max = len    \
	}

/* clang-format off */
const struct rdmap_op rdmap_ops[RDMAP_OPCODES] = {
	[RDMAP_WRITE] = TAGGED_ROW("Write"),
	[RDMAP_READ_REQ] = FIXED_ROW("Read Request", RDMAP_LEVEL_BASE, DDP_QN_REQUEST,
				     RDMAP_READ_REQ_LEN),
	[RDMAP_READ_RESP] = {.name = "Read Response", .tagged = true, .is_answer = true,
			     .max = RDMAP_ANY_LEN},
	[RDMAP_SEND] = SEND_ROW("Send", false, false),
	[RDMAP_SEND_INV] = SEND_ROW("Send with Invalidate", false, true),
	[RDMAP_SEND_SE] = SEND_ROW("Send with SE", true, false),
	[RDMAP_SEND_SE_INV] = SEND_ROW("Send with SE and Invalidate", true, true),
	[RDMAP_TERMINATE] = {.name = "Terminate", .qn = DDP_QN_TERMINATE, .hdr_len = TERM_MIN,
			     .min = TERM_MIN, .max = TERM_MAX},
	[RDMAP_IMM] = FIXED_ROW("Immediate", RDMAP_LEVEL_7306, DDP_QN_SEND, RDMAP_IMM_LEN),
	[RDMAP_IMM_SE] = {.name = "Immediate with SE", .level = RDMAP_LEVEL_7306,
			  .qn = DDP_QN_SEND, .solicited = true, .hdr_len = RDMAP_IMM_LEN,
			  .min = RDMAP_IMM_LEN, .max = RDMAP_IMM_LEN},
	[RDMAP_ATOMIC_REQ] = FIXED_ROW("Atomic Request", RDMAP_LEVEL_7306, DDP_QN_REQUEST,
				       RDMAP_ATOMIC_REQ_LEN),
	[RDMAP_ATOMIC_RESP] = {.name = "Atomic Response", .level = RDMAP_LEVEL_7306,
			       .qn = DDP_QN_RESPONSE, .is_answer = true,
			       .hdr_len = RDMAP_ATOMIC_RESP_LEN, .min = RDMAP_ATOMIC_RESP_LEN,
			       .max = RDMAP_ATOMIC_RESP_LEN},
	[RDMAP_EXT_REQ] = {.name = "Extension Request", .level = RDMAP_LEVEL_OURS,
			   .qn = DDP_QN_REQUEST, .extension = true, .hdr_len = EXT_WORD_LEN,
			   .min = EXT_WORD_LEN, .max = EXT_MAX},
	[RDMAP_EXT_RESP] = {.name = "Extension Response", .level = RDMAP_LEVEL_OURS,
			    .qn = DDP_QN_RESPONSE, .is_answer = true, .extension = true,
			    .hdr_len = EXT_WORD_LEN, .min = EXT_WORD_LEN, .max = EXT_MAX},
	[RDMAP_SEND_IMM] = {.name = "Send with Immediate", .level = RDMAP_LEVEL_OURS,
			    .qn = DDP_QN_SEND, .immediate = true, .max = RDMAP_ANY_LEN},
	[RDMAP_UNASSIGNED] = {.level = RDMAP_LEVEL_NEVER},
};
/* clang-format on */

static const uint8_t rdmap_queues[] = {
	[RDMAP_LEVEL_BASE] = DDP_QN_TERMINATE + 1,
	[RDMAP_LEVEL_7306] = DDP_QN_RESPONSE + 1,
	[RDMAP_LEVEL_OURS] = DDP_QN_COUNT,
};

/* The header does not match its opcode's row: find the violated rule, and report the one of the
 * lowest layer. Only extension messages may use a second queue. If the header is valid on that
 * queue, the function returns 0. */
static __attribute__((noinline)) unsigned
rdmap_header_error(const struct rdmap_op *op, const struct ddp_hdr *hdr, enum rdmap_level level)
{
	if (hdr->version != DDP_VERSION)
		return hdr->tagged ? TERM_DDP_TAGGED_BAD_VERSION : TERM_DDP_UNTAGGED_BAD_VERSION;
	if (!hdr->tagged && hdr->qn >= rdmap_queues[level])
		return TERM_DDP_BAD_QN;
	if (rdmap_ctrl_version(hdr->ulp) != RDMAP_VERSION)
		return TERM_RDMAP_BAD_VERSION;
	if (op->level <= level && op->extension && !hdr->tagged && hdr->qn == DDP_QN_CONTROL)
		return 0;
	return TERM_RDMAP_UNEXPECTED_OPCODE;
}

/* A message of one segment must have exactly the length of its row. A first or middle segment of a
 * longer message can only be checked against the row's maximum. A tagged segment has no MO, so
 * hdr->mo is 0. */
static unsigned rdmap_check_length(const struct rdmap_op *op, const struct ddp_hdr *hdr, size_t len)
{
	if ((uint64_t)hdr->mo + len > op->max)
		return TERM_DDP_TOO_LONG;
	if (op->hdr_len == 0)
		return 0;
	/* A message that has an RDMAP header is always one segment (RFC 5040 s4.4, s4.8). */
	if (hdr->mo)
		return TERM_DDP_BAD_MO;
	return hdr->last && len >= op->min ? 0 : TERM_RDMAP_STREAM_CATASTROPHIC;
}

/* Does the message have the length in the row of its extension kind? */
static unsigned rdmap_check_kind(const struct ext_row *row, bool request, struct ext_word word,
				 size_t len)
{
	size_t known = request ? row->request : row->response;

	if (!request && word.arg == EXT_OK)
		known += row->result;
	if (len == known)
		return 0;
	if (len < known)
		return TERM_RDMAP_STREAM_CATASTROPHIC;
	return row->control ? 0 : TERM_DDP_TOO_LONG;
}

/* Check a message against its kind's row. On the control queue unknown kinds are accepted, so that
 * later versions can add kinds. */
static __attribute__((noinline)) unsigned rdmap_check_extension(const struct rdmap_op *op,
								const struct ddp_hdr *hdr,
								const uint8_t *bytes, size_t len)
{
	bool control = hdr->qn == DDP_QN_CONTROL, request = !op->is_answer;
	struct ext_word word = ext_word_of(bytes);
	const struct ext_row *row = ext_row(word.kind);

	if (row && row->control == control)
		return rdmap_check_kind(row, request, word, len);
	if (control)
		return 0;
	return request ? TERM_RDMAP_UNEXPECTED_OPCODE : TERM_RDMAP_STREAM_CATASTROPHIC;
}

unsigned rdmap_check(const struct rdmap_op *op, const struct ddp_hdr *hdr, const uint8_t *bytes,
		     size_t len, enum rdmap_level level)
{
	/* the versions, the T bit and the queue of the header must match its opcode's row */
	bool fits =
		!((hdr->version ^ DDP_VERSION) | (rdmap_ctrl_version(hdr->ulp) ^ RDMAP_VERSION) |
		  (hdr->tagged ^ op->tagged) | (hdr->qn ^ op->qn)) &&
		op->level <= level;
	unsigned error = fits ? 0 : rdmap_header_error(op, hdr, level);

	if (!error)
		error = rdmap_check_length(op, hdr, len);
	if (error || !op->extension)
		return error;
	return rdmap_check_extension(op, hdr, bytes, len);
}

void rdmap_read_req_put(struct wcursor *c, const struct rdmap_read_req *msg)
{
	wcursor_be32(c, msg->sink_stag);
	wcursor_be64(c, msg->sink_to);
	wcursor_be32(c, msg->size);
	wcursor_be32(c, msg->src_stag);
	wcursor_be64(c, msg->src_to);
}

void rdmap_read_req_get(struct rcursor *c, struct rdmap_read_req *msg)
{
	msg->sink_stag = rcursor_be32(c);
	msg->sink_to = rcursor_be64(c);
	msg->size = rcursor_be32(c);
	msg->src_stag = rcursor_be32(c);
	msg->src_to = rcursor_be64(c);
}

void rdmap_imm_put(struct wcursor *c, const struct rdmap_imm *msg)
{
	wcursor_be64(c, msg->data);
}

void rdmap_imm_get(struct rcursor *c, struct rdmap_imm *msg)
{
	msg->data = rcursor_be64(c);
}

void rdmap_atomic_req_put(struct wcursor *c, const struct rdmap_atomic_req *msg)
{
	wcursor_be32(c, msg->op & 0xf);
	wcursor_be32(c, msg->id);
	wcursor_be32(c, msg->stag);
	wcursor_be64(c, msg->to);
	wcursor_be64(c, msg->data);
	wcursor_be64(c, msg->data_mask);
	wcursor_be64(c, msg->compare);
	wcursor_be64(c, msg->compare_mask);
}

void rdmap_atomic_req_get(struct rcursor *c, struct rdmap_atomic_req *msg)
{
	msg->op = rcursor_be32(c) & 0xf;
	msg->id = rcursor_be32(c);
	msg->stag = rcursor_be32(c);
	msg->to = rcursor_be64(c);
	msg->data = rcursor_be64(c);
	msg->data_mask = rcursor_be64(c);
	msg->compare = rcursor_be64(c);
	msg->compare_mask = rcursor_be64(c);
}

void rdmap_atomic_resp_put(struct wcursor *c, const struct rdmap_atomic_resp *msg)
{
	wcursor_be32(c, msg->id);
	wcursor_be64(c, msg->original);
}

void rdmap_atomic_resp_get(struct rcursor *c, struct rdmap_atomic_resp *msg)
{
	msg->id = rcursor_be32(c);
	msg->original = rcursor_be64(c);
}

/* The cursor's length is a constant, so the compiler emits one check and not one for each field. */
#define X(name, length)                                                                            \
	__attribute__((flatten)) int rdmap_##name##_encode(void *buf, size_t size,                 \
							   const struct rdmap_##name *msg)         \
	{                                                                                          \
		struct wcursor c = wcursor_init(buf, length);                                      \
                                                                                                   \
		if (size < (length))                                                               \
			return -ENOSPC;                                                            \
		rdmap_##name##_put(&c, msg);                                                       \
		return length;                                                                     \
	}                                                                                          \
                                                                                                   \
	__attribute__((flatten)) int rdmap_##name##_decode(const void *buf, size_t len,            \
							   struct rdmap_##name *msg)               \
	{                                                                                          \
		struct rcursor c = rcursor_init(buf, length);                                      \
                                                                                                   \
		if (len < (length))                                                                \
			return -EBADMSG;                                                           \
		rdmap_##name##_get(&c, msg);                                                       \
		return length;                                                                     \
	}
RDMAP_HEADERS(X)
#undef X
