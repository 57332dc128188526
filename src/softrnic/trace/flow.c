/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/trace/flow.h"

/* Emit an ACK after this many bytes. Readers of a capture keep unacknowledged bytes, and compare
 * sequence numbers within a window of 2 GiB. */
#define ACK_AFTER (256u << 10)

static void flow_packet(struct flow *f, enum flow_side from, uint8_t flags, size_t len,
			flow_emit_fn *emit, void *to)
{
	enum flow_side other = from == FLOW_US ? FLOW_PEER : FLOW_US;
	struct tcpip_segment seg = {
		.v6 = f->v6,
		.from = &f->end[from],
		.to = &f->end[other],
		.seq = f->next[from],
		.ack = f->next[other],
		.flags = flags,
	};

	emit(to, &seg, from, len);
	f->next[from] += (uint32_t)len + (flags & (TCP_SYN | TCP_FIN) ? 1 : 0);
	f->unacked[from] += (uint32_t)len;
	f->unacked[other] = 0;
}

void flow_init(struct flow *f, uint64_t now_ns)
{
	uint32_t isn = (uint32_t)(now_ns / 4000);

	f->next[FLOW_US] = isn;
	f->next[FLOW_PEER] = isn ^ 0x5bd1e995;
	f->unacked[FLOW_US] = f->unacked[FLOW_PEER] = 0;
	f->fin[FLOW_US] = f->fin[FLOW_PEER] = f->over = false;
}

void flow_open(struct flow *f, enum flow_side initiator, flow_emit_fn *emit, void *to)
{
	enum flow_side responder = initiator == FLOW_US ? FLOW_PEER : FLOW_US;

	flow_packet(f, initiator, TCP_SYN, 0, emit, to);
	flow_packet(f, responder, TCP_SYN | TCP_ACK, 0, emit, to);
	flow_packet(f, initiator, TCP_ACK, 0, emit, to);
}

void flow_data(struct flow *f, enum flow_side from, size_t len, flow_emit_fn *emit, void *to)
{
	if (f->over)
		return;
	flow_packet(f, from, TCP_PSH | TCP_ACK, len, emit, to);
	if (f->unacked[from] >= ACK_AFTER)
		flow_packet(f, from == FLOW_US ? FLOW_PEER : FLOW_US, TCP_ACK, 0, emit, to);
}

void flow_fin(struct flow *f, enum flow_side from, flow_emit_fn *emit, void *to)
{
	enum flow_side other = from == FLOW_US ? FLOW_PEER : FLOW_US;

	if (f->over || f->fin[from])
		return;
	f->fin[from] = true;
	flow_packet(f, from, TCP_FIN | TCP_ACK, 0, emit, to);
	if (f->fin[other])
		flow_packet(f, other, TCP_ACK, 0, emit, to);
}

void flow_reset(struct flow *f, enum flow_side from, flow_emit_fn *emit, void *to)
{
	if (f->over || (f->fin[FLOW_US] && f->fin[FLOW_PEER]))
		return;
	f->over = true;
	flow_packet(f, from, TCP_RST | TCP_ACK, 0, emit, to);
}
