/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The general method: a message follows the transfers, and the daemon answers after it has made the
 * range durable.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "rpmem/device.h"
#include "rpmem/errmsg.h"
#include "rpmem/lane_impl.h"

int lane_general_init(struct lane *lane)
{
	lane->messages = aligned_alloc(64, sizeof(*lane->messages));
	if (!lane->messages)
		return ENOMEM;
	memset(lane->messages, 0, sizeof(*lane->messages));
	lane->free_slots = (1u << WIRE_PERSIST_DEPTH) - 1;
	return device_register(lane->place->peer, lane->messages, sizeof(*lane->messages),
			       RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &lane->messages_mr);
}

static size_t lane_general_in_offset(unsigned slot)
{
	return offsetof(struct lane_messages, in) +
	       slot * sizeof(((struct lane_messages *)0)->in[0]);
}

static const void *lane_general_context(unsigned slot)
{
	return (const void *)(uintptr_t)(LANE_OP_RECEIVE + slot);
}

int lane_general_prepare(struct rpma_conn_req *req, void *arg)
{
	struct lane *lane = arg;
	int rc = 0;

	for (unsigned slot = 0; slot < WIRE_PERSIST_DEPTH && !rc; slot++)
		rc = rpma_conn_req_recv(req, lane->messages_mr, lane_general_in_offset(slot),
					WIRE_PERSIST_ANSWER, lane_general_context(slot));
	return rc;
}

void lane_general_fini(struct lane *lane)
{
	if (lane->messages_mr)
		device_deregister(&lane->messages_mr);
	free(lane->messages);
}

int lane_general_add(struct lane *lane, uint64_t offset, uint64_t length)
{
	unsigned slot = (unsigned)__builtin_ctz(lane->free_slots);
	struct wire_persist m = {.id = lane->next_id++ * WIRE_PERSIST_DEPTH + slot,
				 .offset = offset,
				 .length = length};
	struct rpma_segment segment = {lane->messages_mr, slot * sizeof(lane->messages->out[0]),
				       WIRE_PERSIST_REQUEST};

	wire_persist_encode(&m, lane->messages->out[slot]);
	lane->free_slots &= ~(1u << slot);
	/* The completion of this send also frees the queue's entries of the transfers before it. */
	return rpma_batch_send(lane->batch, &segment, 1, RPMA_F_COMPLETION_ALWAYS,
			       (const void *)(uintptr_t)LANE_OP_SENT);
}

int lane_general_on_receive(struct lane *lane, const struct ibv_wc *wc)
{
	unsigned in = (unsigned)wc->wr_id - LANE_OP_RECEIVE, slot;
	struct wire_persisted m;
	int rc;

	if (!wire_persisted_decode(lane->messages->in[in], wc->byte_len, &m))
		return errmsg_fail(EPROTO, "lane %u: rpmemd broke the protocol", lane->number);
	slot = m.id % WIRE_PERSIST_DEPTH;
	if (lane->free_slots & 1u << slot || !lane->barriers)
		return errmsg_fail(EPROTO, "lane %u: rpmemd sent an answer without a request",
				   lane->number);
	if (m.error)
		return errmsg_fail(EREMOTEIO, "lane %u: the target could not write back: %s",
				   lane->number, strerror((int)m.error));
	lane->free_slots |= 1u << slot;
	lane->barriers--;
	rc = rpma_recv(lane->conn, lane->messages_mr, lane_general_in_offset(in),
		       WIRE_PERSIST_ANSWER, lane_general_context(in));
	return rc ? lane_broken(lane, "receive", rc) : 0;
}
