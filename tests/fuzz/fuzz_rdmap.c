/* SPDX-License-Identifier: BSD-3-Clause */
/* Input: any ULPDU. If the table accepts it, its header decodes and encodes to the same bytes. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "softrnic/proto/ext.h"
#include "softrnic/proto/ext_hello.h"
#include "softrnic/proto/ext_origin.h"
#include "softrnic/proto/rdmap.h"

#define OUT_MAX 64 /* the longest header, an answer with a digest, has 56 bytes */

#define CASE_OF(room, value, name, length)                                                         \
	case value: {                                                                              \
		struct room##_##name msg;                                                          \
		int n = room##_##name##_decode(data, len, &msg);                                   \
                                                                                                   \
		EXPECT(n == (int)(length));                                                        \
		EXPECT(room##_##name##_encode(out, (size_t)n, &msg) == n);                         \
		return (size_t)n;                                                                  \
	}

/* An accepted HELLO keeps its meaning when it is encoded again, but its bytes can differ. */
static size_t recode_hello(const uint8_t *data, size_t len)
{
	struct ext_hello first, second;
	uint8_t again[EXT_HELLO_MAX];
	const char *why;
	int n;

	if (ext_hello_decode(data, len, &first, &why)) {
		EXPECT(why && *why);
		return 0;
	}
	n = ext_hello_encode(again, sizeof(again), &first);
	EXPECT(n == EXT_HELLO_LEN + (first.rings ? 8 : 0) + (first.acks ? 8 : 0) +
			    (first.has_instance ? 4 + EXT_ID_LEN : 0));
	EXPECT(ext_hello_decode(again, (size_t)n, &second, &why) == 0);
	EXPECT(first.major == second.major && first.minor == second.minor);
	EXPECT(first.kinds == second.kinds && first.limit_ms == second.limit_ms);
	EXPECT(first.max_ulpdu == second.max_ulpdu && first.rings == second.rings);
	EXPECT(first.acks == second.acks && first.has_instance == second.has_instance);
	EXPECT(!memcmp(first.instance, second.instance, EXT_ID_LEN));
	return 0;
}

/*
 * An accepted ORIGIN encodes to the same bytes, except for reserved bits and bytes after its end.
 */
static size_t recode_origin(const uint8_t *data, size_t len)
{
	static struct ext_origin first, second;
	uint8_t again[EXT_MAX];
	const char *why;
	int n;

	if (ext_origin_decode(data, len, &first, &why)) {
		EXPECT(why && *why);
		return 0;
	}
	EXPECT(first.serial && first.n <= EXT_ORIGIN_RANGES);
	n = ext_origin_encode(again, sizeof(again), &first);
	EXPECT(n > 0 && (size_t)n <= len && !memcmp(again + 4, data + 4, (size_t)n - 4));
	EXPECT(ext_origin_decode(again, (size_t)n, &second, &why) == 0);
	EXPECT(!memcmp(&first, &second, sizeof(first)));
	return 0;
}

static size_t recode_digest(const uint8_t *data, size_t len, uint8_t *out)
{
	struct vext_digest digest;
	struct ext_answer answer;

	EXPECT(ext_answer_decode(data, len, &answer) == EXT_ANSWER_LEN);
	EXPECT(ext_answer_encode(out, EXT_ANSWER_LEN, &answer) == EXT_ANSWER_LEN);
	if (len == EXT_ANSWER_LEN)
		return len;
	EXPECT(answer.word.arg == EXT_OK && len == EXT_ANSWER_LEN + EXT_DIGEST_LEN);
	EXPECT(ext_digest_decode(data + EXT_ANSWER_LEN, EXT_DIGEST_LEN, &digest) == EXT_DIGEST_LEN);
	EXPECT(ext_digest_encode(out + EXT_ANSWER_LEN, EXT_DIGEST_LEN, &digest) == EXT_DIGEST_LEN);
	return len;
}

static size_t recode_request(const uint8_t *data, size_t len, uint8_t *out)
{
	switch ((enum ext_kind)ext_word_of(data).kind) {
		CASE_OF(ext, EXT_HEARTBEAT, heartbeat, EXT_HEARTBEAT_LEN)
		CASE_OF(ext, EXT_FLUSH, range, len)
		CASE_OF(ext, EXT_FLUSH_ALL, word, len)
		CASE_OF(ext, EXT_VERIFY, range, len)
		CASE_OF(ext, EXT_QUERY, range, len)
		CASE_OF(ext, EXT_ATOMIC_WRITE, atomic_write, len)
		CASE_OF(ext, EXT_LINK, link, EXT_LINK_LEN)
		CASE_OF(ext, EXT_ACK, ack, EXT_ACK_LEN)
	case EXT_HELLO:
		return recode_hello(data, len);
	case EXT_ORIGIN:
		return recode_origin(data, len);
	case EXT_LEAVE:
		return 0;
	}
	return 0;
}

static size_t recode_response(const uint8_t *data, size_t len, uint8_t *out)
{
	switch ((enum ext_kind)ext_word_of(data).kind) {
		CASE_OF(ext, EXT_HEARTBEAT, heartbeat, EXT_HEARTBEAT_LEN)
		CASE_OF(ext, EXT_FLUSH, answer, len)
		CASE_OF(ext, EXT_FLUSH_ALL, answer, len)
		CASE_OF(ext, EXT_QUERY, answer, len)
		CASE_OF(ext, EXT_ATOMIC_WRITE, answer, len)
		CASE_OF(ext, EXT_ORIGIN, answer, EXT_ANSWER_LEN)
	case EXT_VERIFY:
		return recode_digest(data, len, out);
	case EXT_HELLO:
	case EXT_LINK:
	case EXT_LEAVE:
	case EXT_ACK:
		return 0;
	}
	return 0;
}

/* Returns false for a message on the control queue that only a later version defines. */
static bool is_known(const struct ddp_hdr *hdr, const uint8_t *data)
{
	const struct ext_row *row = ext_row(ext_word_of(data).kind);

	return row && row->control == (hdr->qn == DDP_QN_CONTROL);
}

static size_t recode(const struct ddp_hdr *hdr, const uint8_t *data, size_t len, uint8_t *out)
{
	enum rdmap_opcode op = rdmap_ctrl_opcode(hdr->ulp);

	if (rdmap_ops[op].extension && !is_known(hdr, data))
		return 0;
	switch (op) {
#define CASE(opcode, name) CASE_OF(rdmap, opcode, name, rdmap_ops[opcode].hdr_len)
		CASE(RDMAP_READ_REQ, read_req)
		CASE(RDMAP_IMM, imm)
		CASE(RDMAP_IMM_SE, imm)
		CASE(RDMAP_ATOMIC_REQ, atomic_req)
		CASE(RDMAP_ATOMIC_RESP, atomic_resp)
#undef CASE
	case RDMAP_EXT_REQ:
		return recode_request(data, len, out);
	case RDMAP_EXT_RESP:
		return recode_response(data, len, out);
	case RDMAP_WRITE:
	case RDMAP_READ_RESP:
	case RDMAP_SEND:
	case RDMAP_SEND_INV:
	case RDMAP_SEND_SE:
	case RDMAP_SEND_SE_INV:
	case RDMAP_SEND_IMM:
	case RDMAP_TERMINATE:
		return 0;
	case RDMAP_UNASSIGNED:
		break;
	}
	EXPECT(!"an opcode without a row passed");
	return 0;
}

/* Clear the reserved bits, which the encoder sends as zero. */
static void clear_reserved(enum rdmap_opcode op, uint8_t *header)
{
	if (op == RDMAP_ATOMIC_REQ) {
		memset(header, 0, 3);
		header[3] &= 0xf;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t out[OUT_MAX], in[OUT_MAX];
	unsigned strict, lax;
	struct ddp_hdr hdr;
	int at = ddp_decode(data, len, &hdr);
	enum rdmap_opcode op;
	size_t n;

	if (at < 0)
		return 0;
	len -= (size_t)at;
	strict = rdmap_check(rdmap_op_of(&hdr), &hdr, data + at, len, RDMAP_LEVEL_BASE);
	lax = rdmap_check(rdmap_op_of(&hdr), &hdr, data + at, len, RDMAP_LEVEL_OURS);
	EXPECT(strict || !lax);
	EXPECT(!strict || strcmp(term_str(strict), "unknown error"));
	if (lax)
		return 0;
	op = rdmap_ctrl_opcode(hdr.ulp);
	n = recode(&hdr, data + at, len, out);
	memcpy(in, data + at, n);
	clear_reserved(op, in);
	EXPECT(memcmp(in, out, n) == 0);
	return 0;
}
