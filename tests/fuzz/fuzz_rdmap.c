/* SPDX-License-Identifier: BSD-3-Clause */
/* Any ULPDU: what the table lets pass has a header that decodes and comes back as it was. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "softrnic/proto/rdmap.h"

static size_t recode(enum rdmap_opcode op, const uint8_t *data, size_t len, uint8_t *out)
{
	switch (op) {
#define CASE(opcode, name)                                                                         \
	case opcode: {                                                                             \
		struct rdmap_##name msg;                                                           \
		int n = rdmap_##name##_decode(data, len, &msg);                                    \
                                                                                                   \
		EXPECT(n == rdmap_ops[opcode].hdr_len);                                            \
		EXPECT(rdmap_##name##_encode(out, (size_t)n, &msg) == n);                          \
		return (size_t)n;                                                                  \
	}
		CASE(RDMAP_READ_REQ, read_req)
		CASE(RDMAP_IMM, imm)
		CASE(RDMAP_IMM_SE, imm)
		CASE(RDMAP_ATOMIC_REQ, atomic_req)
		CASE(RDMAP_ATOMIC_RESP, atomic_resp)
		CASE(RDMAP_FLUSH_REQ, flush_req)
		CASE(RDMAP_FLUSH_RESP, flush_resp)
		CASE(RDMAP_ENGINE, engine)
#undef CASE
	case RDMAP_WRITE:
	case RDMAP_READ_RESP:
	case RDMAP_SEND:
	case RDMAP_SEND_INV:
	case RDMAP_SEND_SE:
	case RDMAP_SEND_SE_INV:
	case RDMAP_SEND_IMM:
	case RDMAP_TERMINATE:
		return 0;
	}
	EXPECT(!"an opcode without a row passed");
	return 0;
}

/* Reserved bits are sent as zero. */
static void clear_reserved(enum rdmap_opcode op, uint8_t *header)
{
	if (op == RDMAP_ATOMIC_REQ) {
		memset(header, 0, 3);
		header[3] &= 0xf;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t out[RDMAP_ATOMIC_REQ_LEN], in[RDMAP_ATOMIC_REQ_LEN];
	unsigned strict, lax;
	struct ddp_hdr hdr;
	int at = ddp_decode(data, len, &hdr);
	enum rdmap_opcode op;
	size_t n;

	if (at < 0)
		return 0;
	len -= (size_t)at;
	strict = rdmap_check(&hdr, len, RDMAP_LEVEL_BASE);
	lax = rdmap_check(&hdr, len, RDMAP_LEVEL_OURS);
	EXPECT(strict || !lax);
	EXPECT(!strict || strcmp(term_str(strict), "unknown error"));
	if (lax)
		return 0;
	op = rdmap_ctrl_opcode(hdr.ulp);
	n = recode(op, data + at, len, out);
	memcpy(in, data + at, n);
	clear_reserved(op, in);
	EXPECT(memcmp(in, out, n) == 0);
	return 0;
}
