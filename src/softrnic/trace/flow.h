/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flow.h -- a TCP connection as a reader of the capture shall see it: a handshake, numbers that
 * go on without a gap, an acknowledgement in time, one end. The kernel's own numbers and segments
 * are not to be had without a privilege; these carry the same bytes. Pure.
 */
#ifndef TRACE_FLOW_H
#define TRACE_FLOW_H

#include "softrnic/trace/tcpip.h"

enum flow_side { FLOW_US, FLOW_PEER };

struct flow {
	bool v6;
	struct tcpip_end end[2]; /* by enum flow_side */
	uint32_t next[2];        /* sequence numbers */
	uint32_t unacked[2];     /* bytes since the other side's last word */
	bool fin[2];
	bool over; /* reset: nothing more can be said */
};

/* One packet: its headers are in front of the payload, which may be NULL if len is 0. */
typedef void flow_emit_fn(void *to, const struct tcpip_segment *seg, enum flow_side from,
			  size_t len);

/* First numbers follow the clock (RFC 9293 s3.4.1): who reuses both ports begins anew. */
void flow_init(struct flow *f, uint64_t now_ns);
void flow_open(struct flow *f, enum flow_side initiator, flow_emit_fn *emit, void *to);
void flow_data(struct flow *f, enum flow_side from, size_t len, flow_emit_fn *emit, void *to);
/* Once each; what comes after the end is ignored. */
void flow_fin(struct flow *f, enum flow_side from, flow_emit_fn *emit, void *to);
void flow_reset(struct flow *f, enum flow_side from, flow_emit_fn *emit, void *to);

#endif
