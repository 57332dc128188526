/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmemd/lane.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "service/counters.h"

/* Size of the lane's memory: first the requests, one slot each, then the answers. */
#define LANE_ANSWERS (WIRE_PERSIST_DEPTH * (size_t)WIRE_PERSIST_REQUEST)
#define LANE_MEMORY  (LANE_ANSWERS + WIRE_PERSIST_DEPTH * (size_t)WIRE_PERSIST_ANSWER)

uint32_t lane_cq_size(unsigned lanes)
{
	/* One entry for each receive, and two for each possible send (lane_cfg_new() explains
	 * why). */
	return lanes * 3 * WIRE_PERSIST_DEPTH;
}

struct rpma_conn_cfg *lane_cfg_new(bool is_general)
{
	struct rpma_conn_cfg *cfg;

	if (rpma_conn_cfg_new(&cfg))
		return NULL;
	/* Two sends for each slot: the next request may come before the completion of the answer
	 * to the previous request. */
	rpma_conn_cfg_set_sq_size(cfg, is_general ? 2 * WIRE_PERSIST_DEPTH : 1);
	rpma_conn_cfg_set_rq_size(cfg, is_general ? WIRE_PERSIST_DEPTH : 1);
	return cfg;
}

static size_t lane_request_at(const struct lane_slot *slot)
{
	return slot->index * (size_t)WIRE_PERSIST_REQUEST;
}

static size_t lane_answer_at(const struct lane_slot *slot)
{
	return LANE_ANSWERS + slot->index * (size_t)WIRE_PERSIST_ANSWER;
}

static int lane_post_receives(struct lane *lane, struct rpma_peer *peer, struct rpma_conn_req *req)
{
	int rc;

	lane->memory = calloc(1, LANE_MEMORY);
	if (!lane->memory)
		return RPMA_E_NOMEM;
	rc = rpma_mr_reg(peer, lane->memory, LANE_MEMORY, RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_SEND,
			 &lane->mr);
	for (unsigned i = 0; i < WIRE_PERSIST_DEPTH && !rc; i++) {
		struct lane_slot *slot = &lane->slots[i];

		*slot = (struct lane_slot){lane, i};
		rc = rpma_conn_req_recv(req, lane->mr, lane_request_at(slot), WIRE_PERSIST_REQUEST,
					slot);
	}
	return rc;
}

int lane_open(struct lane *lane, struct rpma_peer *peer, struct rpma_conn_req **req,
	      const struct rpma_conn_private_data *reply, struct persist *persist)
{
	int rc = 0;

	pthread_mutex_init(&lane->lock, NULL);
	pthread_mutex_lock(&lane->lock);
	lane->persist = persist;
	if (persist)
		rc = lane_post_receives(lane, peer, *req);
	if (!rc)
		rc = rpma_conn_req_connect(req, reply, &lane->conn);
	else
		rpma_conn_req_delete(req);
	pthread_mutex_unlock(&lane->lock);
	return rc;
}

/*
 * Wake the lane's worker by a Write of no bytes, which the other end does not notice. If the post
 * fails, the connection is broken, and its receives have already completed.
 */
void lane_end(struct lane *lane)
{
	if (!lane->conn)
		return;
	if (log_threshold >= LOG_LVL_INFO) {
		char text[COUNTERS_TEXT];

		counters_text(lane->conn, text, sizeof(text));
		LOG_INFO("lane %u ended:%s", lane->number, text);
	}
	if (lane->persist)
		rpma_write(lane->conn, NULL, 0, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS, NULL);
	rpma_conn_disconnect(lane->conn);
}

void lane_close(struct lane *lane)
{
	rpma_conn_delete(&lane->conn);
	rpma_mr_dereg(&lane->mr);
	free(lane->memory);
	pthread_mutex_destroy(&lane->lock);
}

static void lane_answer(struct lane_slot *slot)
{
	struct lane *lane = slot->lane;
	struct wire_persisted answer;
	struct wire_persist request;
	int rc;

	if (!wire_persist_decode(lane->memory + lane_request_at(slot), WIRE_PERSIST_REQUEST,
				 &request)) {
		LOG_ERROR_LIMITED("lane %u: a message that is no request to persist", lane->number);
		rpma_conn_disconnect(lane->conn);
		return;
	}
	rc = persist_range(lane->persist, request.offset, request.length);
	if (rc)
		LOG_ERROR_LIMITED("lane %u: write-back failed: %s", lane->number, strerror(-rc));
	answer = (struct wire_persisted){.id = request.id, .error = (uint32_t)-rc};
	wire_persisted_encode(&answer, lane->memory + lane_answer_at(slot));
	/*
	 * Post the receive first: after the answer, the initiator may send the next request for
	 * this slot.
	 */
	rc = rpma_recv(lane->conn, lane->mr, lane_request_at(slot), WIRE_PERSIST_REQUEST, slot);
	if (!rc)
		rc = rpma_send(lane->conn, lane->mr, lane_answer_at(slot), WIRE_PERSIST_ANSWER,
			       RPMA_F_COMPLETION_ALWAYS, slot);
	if (rc) /* the connection is closed, or is about to be closed */
		LOG_INFO("lane %u: an answer was not sent: %s", lane->number, rpma_err_last());
}

void lane_on_completion(const struct ibv_wc *wc)
{
	struct lane_slot *slot = (struct lane_slot *)(uintptr_t)wc->wr_id;

	if (wc->status != IBV_WC_SUCCESS || wc->opcode != IBV_WC_RECV)
		return;
	pthread_mutex_lock(&slot->lane->lock);
	if (slot->lane->conn)
		lane_answer(slot);
	pthread_mutex_unlock(&slot->lane->lock);
}
