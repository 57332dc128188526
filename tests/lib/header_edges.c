/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/header_edges.h"

#include <string.h>
#include <sys/uio.h>

#include "softrnic/proto/mpa.h"
#include "softrnic/proto/term_code.h"

/* The first two bytes of a last segment: control bits of DDP and of RDMAP. Both protocols have
 * version 1. */
#define TAGGED(opcode)   0xc1, 0x40 | (opcode)
#define UNTAGGED(opcode) 0x41, 0x40 | (opcode)
/* The next bytes of an untagged segment: queue number, message number and offset. */
#define FIRST_OF(qn) 0, 0, 0, 0, 0, 0, 0, (qn), 0, 0, 0, 1, 0, 0, 0, 0

enum { WRITE, READ_REQ, READ_RESP, SEND, SEND_INV, TERMINATE = 7, IMM, UNKNOWN = 15 };

const struct header_edge header_edges[] = {
	/* The first two bytes already cause the refusal. They can be the first two bytes of the
	 * connection. */
	{"DDP version 0, tagged", 14, TERM_DDP_TAGGED_BAD_VERSION, {0xc0, 0x40}},
	{"DDP version 3, untagged", 18, TERM_DDP_UNTAGGED_BAD_VERSION, {0x43, 0x43, FIRST_OF(0)}},
	{"RDMAP version 0, tagged", 14, TERM_RDMAP_BAD_VERSION, {0xc1, 0x00}},
	{"RDMAP version 2, untagged", 18, TERM_RDMAP_BAD_VERSION, {0x41, 0x83, FIRST_OF(0)}},
	{"opcode 15, tagged", 14, TERM_RDMAP_UNEXPECTED_OPCODE, {TAGGED(UNKNOWN)}},
	{"opcode 15, untagged", 18, TERM_RDMAP_UNEXPECTED_OPCODE, {UNTAGGED(UNKNOWN), FIRST_OF(0)}},
	{"opcode 8, not agreed", 26, TERM_RDMAP_UNEXPECTED_OPCODE, {UNTAGGED(IMM), FIRST_OF(0)}},
	/* The ULPDU ends before its header is complete. */
	{"no ULPDU", 0, TERM_MPA_MARKER, {0}},
	{"a Write of 1 byte", 1, TERM_MPA_MARKER, {TAGGED(WRITE)}},
	{"a Write of 2 bytes", 2, TERM_MPA_MARKER, {TAGGED(WRITE)}},
	{"a Write of 13 bytes", 13, TERM_MPA_MARKER, {TAGGED(WRITE)}},
	{"a Read Response of 13 bytes", 13, TERM_MPA_MARKER, {TAGGED(READ_RESP)}},
	{"a Send of 17 bytes", 17, TERM_MPA_MARKER, {UNTAGGED(SEND), FIRST_OF(0)}},
	{"a Send with Invalidate of 17 bytes",
	 17,
	 TERM_MPA_MARKER,
	 {UNTAGGED(SEND_INV), FIRST_OF(0)}},
	{"a Terminate of 17 bytes", 17, TERM_MPA_MARKER, {UNTAGGED(TERMINATE), FIRST_OF(2)}},
	{"a Read Request of 17 bytes", 17, TERM_MPA_MARKER, {UNTAGGED(READ_REQ), FIRST_OF(1)}},
	{"a Read Request of 18 bytes",
	 18,
	 TERM_RDMAP_STREAM_CATASTROPHIC,
	 {UNTAGGED(READ_REQ), FIRST_OF(1)}},
	{"a Read Request of 45 bytes",
	 45,
	 TERM_RDMAP_STREAM_CATASTROPHIC,
	 {UNTAGGED(READ_REQ), FIRST_OF(1)}},
	/* The ULPDU is exactly a header, without payload. */
	{"a Read Response of 14 bytes", 14, TERM_RDMAP_UNEXPECTED_OPCODE, {TAGGED(READ_RESP)}},
	{"a Write of 14 bytes", 14, 0, {TAGGED(WRITE)}},
	{"a Write of 14 bytes to the last address",
	 14,
	 0,
	 {TAGGED(WRITE), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
	{"a Read Request of 46 bytes, for nothing", 46, 0, {UNTAGGED(READ_REQ), FIRST_OF(1)}},
};

const size_t header_edges_count = sizeof(header_edges) / sizeof(header_edges[0]);

size_t header_edge_fpdu(const struct header_edge *edge, uint8_t fpdu[EDGE_FPDU_MAX])
{
	size_t whole = mpa_fpdu_len(edge->len);
	struct iovec covered = {.iov_base = fpdu, .iov_len = whole - MPA_CRC_LEN};

	memset(fpdu, 0, EDGE_FPDU_MAX);
	fpdu[1] = (uint8_t)edge->len;
	memcpy(fpdu + MPA_LENGTH_LEN, edge->ulpdu, edge->len);
	mpa_crc_encode(fpdu + whole - MPA_CRC_LEN, mpa_crc(&covered, 1, covered.iov_len));
	return whole;
}
