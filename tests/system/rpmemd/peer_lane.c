/* SPDX-License-Identifier: BSD-3-Clause */
/* The lanes of the initiator that the tests use. */
#include <errno.h>

#include "base/poll.h"
#include "system/lib/check.h"
#include "system/rpmemd/peer.h"

#define PEER_TIMEOUT_MS 20000
/* The memory for messages has one request, and then a slot for the answer to each outstanding
 * request. */
#define PEER_ANSWER_AT 64

static void peer_open_device(struct peer *p)
{
	struct ibv_context *context;

	if (p->rpma)
		return;
	OK(rpma_utils_get_ibv_context("127.0.0.1", RPMA_UTIL_IBV_CONTEXT_LOCAL, &context));
	OK(rpma_peer_new(context, &p->rpma));
	p->memory = aligned_alloc(4096, PEER_SIZE);
	assert_non_null(p->memory);
	memset(p->memory, 0, PEER_SIZE);
	OK(rpma_mr_reg(p->rpma, p->memory, PEER_SIZE,
		       RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_READ_DST, &p->mr));
}

/* Post a receive for the answer to the first request. */
static int peer_prepare(struct rpma_conn_req *req, void *arg)
{
	struct peer_lane *lane = arg;

	if (!lane->messages)
		return 0;
	return rpma_conn_req_recv(req, lane->messages, PEER_ANSWER_AT, WIRE_PERSIST_ANSWER, NULL);
}

static void peer_take_reply(struct peer *p, unsigned number, const struct wire_key *key,
			    uint16_t port)
{
	struct peer_lane *lane = &p->lanes[number];
	struct rpma_conn_private_data theirs = {0};
	struct rpma_peer_cfg *pcfg;
	struct wire_lane_reply reply;

	OK(rpma_conn_get_private_data(lane->conn, &theirs));
	assert_true(wire_lane_reply_decode(key, number, port, theirs.ptr, theirs.len, &reply));
	assert_int_equal(reply.status, WIRE_LANE_OK);
	OK(rpma_mr_remote_from_descriptor(reply.mr, reply.mr_len, &lane->remote));
	OK(rpma_peer_cfg_from_descriptor(reply.pcfg, reply.pcfg_len, &pcfg));
	OK(rpma_conn_apply_remote_peer_cfg(lane->conn, pcfg));
	OK(rpma_peer_cfg_delete(&pcfg));
	OK(rpma_conn_get_cq(lane->conn, &lane->cq));
}

static void peer_make_messages(struct peer *p, struct peer_lane *lane)
{
	if (p->pool.method != WIRE_METHOD_GENERAL)
		return;
	lane->bytes = calloc(1, 4096);
	assert_non_null(lane->bytes);
	OK(rpma_mr_reg(p->rpma, lane->bytes, 4096, RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV,
		       &lane->messages));
}

static void peer_drop_lane(struct peer_lane *lane)
{
	rpma_mr_remote_delete(&lane->remote);
	rpma_conn_delete(&lane->conn);
	rpma_mr_dereg(&lane->messages);
	free(lane->bytes);
	memset(lane, 0, sizeof(*lane));
}

void peer_drop_lanes(struct peer *p)
{
	for (unsigned i = 0; i < PEER_LANES; i++)
		peer_drop_lane(&p->lanes[i]);
}

enum rpma_conn_event peer_dial(struct peer *p, unsigned number, const struct wire_key *key,
			       uint16_t port)
{
	struct peer_lane *lane = &p->lanes[number];
	uint8_t request[WIRE_LANE_REQUEST];
	struct rpma_conn_private_data ours = {.ptr = request};
	char text[8];
	struct rpma_conn_open_attr attr = {.size = sizeof(attr),
					   .addr = "127.0.0.1",
					   .port = text,
					   .pdata = &ours,
					   .prepare = peer_prepare,
					   .timeout_ms = PEER_TIMEOUT_MS,
					   .arg = lane};
	enum rpma_conn_event event = RPMA_CONN_UNREACHABLE;

	peer_open_device(p);
	peer_drop_lane(lane);
	peer_make_messages(p, lane);
	snprintf(text, sizeof(text), "%u", port);
	ours.len = (uint8_t)wire_lane_request_encode(key, number, port, request);
	if (rpma_conn_open(p->rpma, &attr, &event, &lane->conn))
		event = RPMA_CONN_UNREACHABLE;
	if (event == RPMA_CONN_ESTABLISHED)
		peer_take_reply(p, number, key, port);
	else
		peer_drop_lane(lane);
	return event;
}

int peer_lane_up(struct peer *p, unsigned lane)
{
	uint16_t port = p->pool.port;

	/* The request that opened the pool has already announced the first lane. */
	if (lane) {
		if (peer_lanes(p, lane, 1))
			return -1;
		port = p->answer.lanes.port;
	}
	return peer_dial(p, lane, &p->lane_key, port) == RPMA_CONN_ESTABLISHED ? 0 : -1;
}

static int peer_reap(struct peer_lane *lane, enum ibv_wc_opcode until)
{
	uint64_t deadline = poll_deadline(PEER_TIMEOUT_MS);
	struct ibv_wc wc;

	while (poll_ms_left(deadline)) {
		int rc = rpma_cq_get_wc(lane->cq, 1, &wc, NULL);

		if (rc == RPMA_E_NO_COMPLETION)
			rc = rpma_cq_wait_timeout(lane->cq, 100);
		else if (!rc && wc.status != IBV_WC_SUCCESS)
			return -EIO;
		else if (!rc && wc.opcode == until)
			return 0;
		if (rc && rc != RPMA_E_NO_COMPLETION)
			return rc;
	}
	return -ETIMEDOUT;
}

static int peer_persist_general(struct peer *p, struct peer_lane *lane, uint64_t offset,
				uint64_t len)
{
	struct wire_persist m = {.id = ++lane->id, .offset = offset, .length = len};
	struct wire_persisted answer;
	int rc = rpma_write(lane->conn, lane->remote, offset, p->mr, offset, len,
			    RPMA_F_COMPLETION_ON_ERROR, NULL);

	wire_persist_encode(&m, lane->bytes);
	if (!rc)
		rc = rpma_send(lane->conn, lane->messages, 0, WIRE_PERSIST_REQUEST,
			       RPMA_F_COMPLETION_ON_ERROR, NULL);
	if (!rc)
		rc = peer_reap(lane, IBV_WC_RECV);
	if (rc)
		return rc;
	assert_true(
		wire_persisted_decode(lane->bytes + PEER_ANSWER_AT, WIRE_PERSIST_ANSWER, &answer));
	assert_int_equal(answer.id, lane->id);
	OK(rpma_recv(lane->conn, lane->messages, PEER_ANSWER_AT, WIRE_PERSIST_ANSWER, NULL));
	return -(int)answer.error;
}

int peer_persist(struct peer *p, unsigned number, uint64_t offset, uint64_t len)
{
	struct peer_lane *lane = &p->lanes[number];
	enum rpma_flush_type type = p->pool.durability == RPMA_DURABILITY_VOLATILE
					    ? RPMA_FLUSH_TYPE_VISIBILITY
					    : RPMA_FLUSH_TYPE_PERSISTENT;
	int rc;

	if (p->pool.method == WIRE_METHOD_GENERAL)
		return peer_persist_general(p, lane, offset, len);
	rc = rpma_write(lane->conn, lane->remote, offset, p->mr, offset, len,
			RPMA_F_COMPLETION_ON_ERROR, NULL);
	if (!rc)
		rc = rpma_flush(lane->conn, lane->remote, offset, len, type,
				RPMA_F_COMPLETION_ALWAYS, NULL);
	return rc ? rc : peer_reap(lane, (enum ibv_wc_opcode)RPMA_WC_FLUSH);
}
