/* SPDX-License-Identifier: BSD-3-Clause */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "player.h"
#include "service/secret.h"
#include "system/lib/check.h"

static struct rpma_conn_req *talk_request(struct talk *t, const struct hosts *h, unsigned i)
{
	struct ibv_context *context;
	struct rpma_conn_cfg *cfg;
	struct rpma_conn_req *req;

	OK(rpma_utils_get_ibv_context("127.0.0.1", RPMA_UTIL_IBV_CONTEXT_REMOTE, &context));
	OK(rpma_peer_new(context, &t->peer));
	OK(rpma_mr_reg(t->peer, t->buf, sizeof(t->buf), RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV,
		       &t->mr));
	OK(rpma_mr_reg(t->peer, t->page, sizeof(t->page), RPMA_MR_USAGE_WRITE_SRC, &t->page_mr));
	OK(rpma_conn_cfg_new(&cfg));
	OK(rpma_conn_cfg_set_rq_size(cfg, MESSAGE_OUTSTANDING));
	OK(rpma_conn_cfg_set_cq_size(cfg, 64));
	OK(rpma_conn_cfg_set_sq_size(cfg, 32));
	OK(rpma_conn_req_new(t->peer, "127.0.0.1", h->hosts[i].port, cfg, &req));
	rpma_conn_cfg_delete(&cfg);
	for (unsigned slot = 0; slot < MESSAGE_OUTSTANDING; slot++)
		OK(rpma_conn_req_recv(req, t->mr, (size_t)slot * MESSAGE_SIZE, MESSAGE_SIZE,
				      (void *)(uintptr_t)slot));
	return req;
}

enum rpma_conn_event talk_dial(struct talk *t, const struct hosts *h, unsigned i, const void *bytes,
			       size_t len)
{
	struct rpma_conn_private_data pdata = {.ptr = t->buf[MESSAGE_OUTSTANDING],
					       .len = (uint8_t)len};
	struct rpma_conn_req *req;
	enum rpma_conn_event event;

	memset(t, 0, sizeof(*t));
	req = talk_request(t, h, i);
	memcpy(pdata.ptr, bytes, len);
	OK(rpma_conn_req_connect(&req, len ? &pdata : NULL, &t->conn));
	OK(rpma_conn_next_event_timeout(t->conn, PLAYER_WAIT_MS, &event));
	if (event == RPMA_CONN_ESTABLISHED) {
		OK(rpma_conn_get_private_data(t->conn, &pdata));
		assert_int_equal(greeting_reply_decode(pdata.ptr, pdata.len, &t->reply), 0);
	}
	return event;
}

enum greeting_status talk_connect(struct talk *t, const struct hosts *h, unsigned i, unsigned from,
				  enum greeting_kind kind, struct mirror_epoch epoch)
{
	uint8_t bytes[GREETING_SIZE];
	struct greeting greeting = (struct greeting){.uuid = h->first.config.uuid,
						     .epoch = epoch,
						     .from = (uint8_t)from,
						     .to = (uint8_t)i,
						     .kind = (uint8_t)kind};
	greeting_encode(&greeting, version_newest(), bytes);
	assert_int_equal(talk_dial(t, h, i, bytes, sizeof(bytes)), RPMA_CONN_ESTABLISHED);
	t->greeting = greeting;
	return (enum greeting_status)t->reply.status;
}

bool talk_send(struct talk *t, const void *bytes, size_t len)
{
	memcpy(t->buf[MESSAGE_OUTSTANDING], bytes, len);
	return !rpma_send(t->conn, t->mr, (size_t)MESSAGE_OUTSTANDING * MESSAGE_SIZE, len,
			  RPMA_F_COMPLETION_ON_ERROR, NULL);
}

/* Wait for the next completion. The test fails if no completion arrives in time. */
static void talk_wait(struct talk *t, struct ibv_wc *wc)
{
	struct rpma_cq *cq;
	int rc;

	OK(rpma_conn_get_cq(t->conn, &cq));
	while ((rc = rpma_cq_get_wc(cq, 1, wc, NULL)) == RPMA_E_NO_COMPLETION)
		OK(rpma_cq_wait_timeout(cq, PLAYER_WAIT_MS));
	OK(rc);
}

bool talk_receive(struct talk *t)
{
	struct ibv_wc wc;
	size_t slot;

	do {
		talk_wait(t, &wc);
		if (wc.status != IBV_WC_SUCCESS)
			return false;
	} while (!(wc.opcode & IBV_WC_RECV));
	slot = (size_t)wc.wr_id;
	assert_int_equal(message_decode(t->buf[slot], wc.byte_len, version_newest(), &t->in), 0);
	OK(rpma_recv(t->conn, t->mr, slot * MESSAGE_SIZE, MESSAGE_SIZE, (void *)(uintptr_t)slot));
	return true;
}

static void talk_take_grant(struct talk *t)
{
	const struct message_grant *grant = &t->grant.grant;
	struct rpma_peer_cfg *pcfg;

	OK(rpma_peer_cfg_from_descriptor(grant->peer_cfg.bytes, grant->peer_cfg.len, &pcfg));
	OK(rpma_conn_apply_remote_peer_cfg(t->conn, pcfg));
	rpma_peer_cfg_delete(&pcfg);
	if (grant->data.len)
		OK(rpma_mr_remote_from_descriptor(grant->data.bytes, grant->data.len, &t->data));
	if (grant->ring.len)
		OK(rpma_mr_remote_from_descriptor(grant->ring.bytes, grant->ring.len, &t->ring));
}

enum greeting_status talk_prove(struct talk *t, const uint8_t *key)
{
	struct proof_exchange exchange = {
		.version = version_newest(), .greeting = t->greeting, .reply = t->reply};
	struct message m = {.type = MESSAGE_PROVE, .id = 1, .uuid = t->greeting.uuid};
	uint8_t buf[MESSAGE_SIZE], expected[MESSAGE_MAC];

	m.epoch = t->greeting.epoch;
	proof_nonce(m.prove.nonce);
	memcpy(exchange.nonce, m.prove.nonce, sizeof(exchange.nonce));
	if (key)
		proof_make(key, &exchange, m.prove.mac);
	message_encode(&m, version_newest(), buf);
	assert_true(talk_send(t, buf, sizeof(buf)));
	assert_true(talk_receive(t));
	assert_int_equal(t->in.type, MESSAGE_GRANT);
	t->grant = t->in;
	if (t->grant.grant.status != GREETING_OK)
		return (enum greeting_status)t->grant.grant.status;
	if (key) {
		proof_make_grant(key, &exchange, &t->grant.grant, expected);
		assert_true(mac_is_equal(expected, t->grant.grant.mac));
	}
	talk_take_grant(t);
	return GREETING_OK;
}

enum greeting_status talk_open(struct talk *t, const struct hosts *h, unsigned i, unsigned from,
			       enum greeting_kind kind, struct mirror_epoch epoch)
{
	enum greeting_status status = talk_connect(t, h, i, from, kind, epoch);
	struct secret secret;
	struct error err;

	if (status != GREETING_OK)
		return status;
	assert_int_equal(t->reply.has_secret, h->opts.has_secret);
	if (!t->reply.has_secret)
		return talk_prove(t, NULL);
	assert_int_equal(secret_load(&secret, h->secret, &err), 0);
	return talk_prove(t, secret.key);
}

void talk_close(struct talk *t)
{
	rpma_mr_remote_delete(&t->data);
	rpma_mr_remote_delete(&t->ring);
	rpma_conn_disconnect(t->conn);
	rpma_conn_delete(&t->conn);
	rpma_mr_dereg(&t->mr);
	rpma_mr_dereg(&t->page_mr);
	rpma_peer_delete(&t->peer);
}

struct message *talk_ask(struct talk *t, enum message_type type)
{
	struct message m = {
		.type = type, .id = 77, .uuid = t->greeting.uuid, .epoch = t->greeting.epoch};
	uint8_t buf[MESSAGE_SIZE];

	message_encode(&m, version_newest(), buf);
	assert_true(talk_send(t, buf, sizeof(buf)));
	if (!talk_receive(t))
		fail_msg("the daemon has closed the connection instead of an answer to %s",
			 message_type_2str(type));
	assert_int_equal(t->in.id, 77);
	return &t->in;
}

enum ibv_wc_status talk_flush(struct talk *t, uint64_t offset, uint64_t value)
{
	struct ibv_wc wc;

	memcpy(t->page, &value, sizeof(value));
	if (rpma_write(t->conn, t->data, offset, t->page_mr, 0, sizeof(value),
		       RPMA_F_COMPLETION_ON_ERROR, NULL) ||
	    rpma_flush(t->conn, t->data, offset, sizeof(value), RPMA_FLUSH_TYPE_PERSISTENT,
		       RPMA_F_COMPLETION_ALWAYS, NULL))
		return IBV_WC_WR_FLUSH_ERR;
	talk_wait(t, &wc);
	return wc.status;
}
