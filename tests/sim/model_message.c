/* SPDX-License-Identifier: BSD-3-Clause */
/* model_message.c -- decides which messages the peer is allowed to receive. */
#include <arpa/inet.h>
#include <string.h>

#include "model_impl.h"

static const char *model_check_message_at(const struct op *op, const struct ibv_wc *wc, unsigned id,
					  const struct memory *peer)
{
	bool is_imm = op->kind == OP_WRITE_IMM || op->kind == OP_SEND_IMM;
	enum ibv_wc_opcode want =
		op->kind == OP_WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
	unsigned flags = is_imm ? IBV_WC_WITH_IMM : op->kind == OP_SEND_INV ? IBV_WC_WITH_INV : 0u;

	if (op->forbidden)
		return model_text("message %u was received, and must not be", id);
	if (wc->opcode != want || wc->wc_flags != flags)
		return model_text("message %u was received with opcode %d, flags %u", id,
				  wc->opcode, wc->wc_flags);
	if (is_imm && ntohl(wc->imm_data) != op->imm)
		return model_text("message %u arrived with another immediate", id);
	if (op->kind == OP_SEND_INV && wc->invalidated_rkey != peer->area[AREA_LEASE].stag)
		return model_text("message %u invalidated something else", id);
	if (wc->byte_len != op->len)
		return model_text("message %u of %u bytes was received as %u", id, op->len,
				  wc->byte_len);
	return NULL;
}

/* When a message is delivered, all Writes before it are placed (RFC 5040 s5.5). */
static const char *model_check_before(struct model *m, unsigned id, const struct memory *peer)
{
	struct model_view v = {.name = "data before a message", .floor = m->floor};
	const struct op *op;
	unsigned last = id;

	while (last > 0 && (!model_writes(&m->op[last]) || op_is_atomic(&m->op[last])))
		last--;
	op = &m->op[last];
	if (!model_writes(op) || op_is_atomic(op) || peer->area[op->area].gone)
		return NULL;
	v.bytes = peer->cache + op->off;
	v.off = op->off;
	v.len = op->len;
	v.end = m->posted;
	model_floor(m, last + 1, op->off, op->len);
	return model_check_view(m, peer, &v);
}

const char *model_on_received(struct model *m, const struct ibv_wc *wc, const uint8_t *bytes,
			      const struct memory *peer)
{
	const struct op *op;
	const char *bad;
	unsigned id;

	while (m->received < m->posted && !op_is_message(&m->op[m->received]))
		m->received++;
	if (m->received == m->posted)
		return model_text("a message was received that nobody sent");
	id = m->received++;
	op = &m->op[id];
	bad = model_check_message_at(op, wc, id, peer);
	if (bad)
		return bad;
	if (bytes && op->kind != OP_WRITE_IMM && op->len > 0 &&
	    memcmp(bytes, op->data, op->len) != 0)
		return model_text("message %u arrived with other bytes", id);
	if (id >= m->applied)
		m->applied = op->kind == OP_WRITE_IMM ? id + 1 : id;
	return model_check_before(m, id, peer);
}

const struct op *model_last_received(const struct model *m)
{
	return &m->op[m->received - 1];
}
