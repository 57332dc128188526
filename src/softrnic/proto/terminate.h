/* SPDX-License-Identifier: BSD-3-Clause */
/* terminate.h -- the Terminate message (RFC 5040 s4.8), in the RFC's layout and in siw's. */
#ifndef PROTO_TERMINATE_H
#define PROTO_TERMINATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softrnic/proto/ddp.h"
#include "softrnic/proto/rdmap.h"
#include "softrnic/proto/term_code.h"

#define TERM_CTRL_LEN 4
#define TERM_MAX_LEN  (TERM_CTRL_LEN + 2 + DDP_HDR_MAX + RDMAP_READ_REQ_LEN)

/*
 * A Terminate is always sent as a whole untagged message on DDP_QN_TERMINATE, with MSN 1 and MO 0.
 */
struct terminate {
	uint8_t layer; /* enum term_layer; 4 bits */
	uint8_t etype; /* 4 bits */
	uint8_t code;
	/*
	 * Linux siw on little-endian hosts swaps layer and etype, and has M, D, R in the low bits.
	 */
	bool siw_layout;
	bool has_segment_len;
	uint16_t segment_len; /* length of the offending DDP segment */
	bool has_ddp;
	struct ddp_hdr ddp; /* DDP header of the offending segment */
	bool has_read_req;  /* can be true only if has_ddp is true */
	struct rdmap_read_req read_req;
};

/* Make a Terminate with this error and no echo. */
struct terminate terminate_of(unsigned error);

static inline unsigned terminate_error(const struct terminate *t)
{
	return TERM_CODE((unsigned)t->layer, (unsigned)t->etype, (unsigned)t->code);
}

/*
 * Add an echo of the offending headers, as RFC 5040 s4.8 requires for this error. RDMAP remote
 * errors and DDP errors echo the DDP header; remote protection errors of a read also echo the read
 * request. `ddp` and `read_req` may be NULL.
 */
void terminate_echo(struct terminate *t, const struct ddp_hdr *ddp, uint16_t segment_len,
		    const struct rdmap_read_req *read_req);

/* Returns the length written (after the DDP header), or -ENOSPC. */
int terminate_encode(void *buf, size_t size, const struct terminate *t);
/* Returns 0, or -EBADMSG if the control word is missing. A truncated echo is ignored: the error
 * code is more important than the echo. */
int terminate_decode(const void *buf, size_t len, struct terminate *t);

#endif
