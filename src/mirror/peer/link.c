/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/peer/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mirror/peer/link_impl.h"

/* Returns the kind of the connection, for error texts: all kinds use the same port, and perhaps
 * only some kinds succeed. */
static const char *link_what(const struct link *l)
{
	switch (l->exchange.greeting.kind) {
	case GREETING_LANE:
		return "the connection for flushes: ";
	case GREETING_BULK:
		return "the connection for resyncs: ";
	default:
		return "";
	}
}

void link_fail(struct link *l, const char *why)
{
	if (l->state == LINK_ENDED)
		return;
	l->state = LINK_ENDED;
	snprintf(l->why, sizeof(l->why), "%s%s", link_what(l), why);
}

void link_fail_by(struct link *l, const struct ibv_wc *wc)
{
	char why[200];
	uint32_t code = 0;

	if (l->state != LINK_ENDED &&
	    rpma_wc_get_reason(l->conn, wc, &code) == RPMA_REASON_WRITE_BACK)
		l->medium_error = code;
	rpma_wc_explain(l->conn, wc, why, sizeof(why));
	link_fail(l, why);
}

static int link_make_buffers(struct link *l)
{
	l->buffers = aligned_alloc(64, sizeof(*l->buffers));
	if (!l->buffers)
		return RPMA_E_NOMEM;
	memset(l->buffers, 0, sizeof(*l->buffers));
	return rpma_mr_reg(l->place->peer, l->buffers, sizeof(*l->buffers),
			   RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &l->mr);
}

static int link_make_cfg(const struct link *l, struct rpma_conn_cfg **cfg)
{
	const struct link_place *place = l->place;
	int rc = rpma_conn_cfg_new(cfg);

	if (rc)
		return rc;
	rpma_conn_cfg_set_sq_size(*cfg, place->sq_size + LINK_SENDS);
	rpma_conn_cfg_set_rq_size(*cfg, LINK_MESSAGES);
	rpma_conn_cfg_set_rcq_size(*cfg, LINK_MESSAGES + 1);
	rpma_conn_cfg_set_cq_size(*cfg, place->sq_size + LINK_SENDS + 1);
	rpma_conn_cfg_set_cq(*cfg, place->cq);
	rpma_conn_cfg_set_connect_timeout(*cfg, place->timeout_ms);
	return rpma_conn_cfg_set_liveness(*cfg, place->timeout_ms);
}

static int link_post_receives(const struct link *l, struct rpma_conn_req *req)
{
	int rc = 0;

	for (size_t i = 0; i < LINK_MESSAGES && !rc; i++)
		rc = rpma_conn_req_recv(req, l->mr, i * MESSAGE_SIZE, MESSAGE_SIZE,
					(const void *)(uintptr_t)i);
	return rc;
}

static int link_connect(struct link *l, const char *host, uint16_t port)
{
	uint8_t buf[GREETING_SIZE];
	struct rpma_conn_private_data pdata = {buf, sizeof(buf)};
	struct rpma_conn_cfg *cfg = NULL;
	struct rpma_conn_req *req = NULL;
	char service[8];
	int rc = link_make_buffers(l);

	snprintf(service, sizeof(service), "%u", port);
	greeting_encode(&l->exchange.greeting, version_newest(), buf);
	if (!rc)
		rc = link_make_cfg(l, &cfg);
	if (!rc)
		rc = rpma_conn_req_new(l->place->peer, host, service, cfg, &req);
	if (!rc)
		rc = link_post_receives(l, req);
	if (!rc)
		rc = rpma_conn_req_connect(&req, &pdata, &l->conn);
	if (!rc)
		rc = rpma_conn_get_rcq(l->conn, &l->rcq);
	rpma_conn_req_delete(&req);
	rpma_conn_cfg_delete(&cfg);
	return rc;
}

void link_open(struct link *l, const struct link_place *place, const char *host, uint16_t port,
	       const struct greeting *greeting, uint64_t now_ms)
{
	*l = (struct link){.state = LINK_CONNECTING,
			   .place = place,
			   .exchange.greeting = *greeting,
			   .deadline_ms = now_ms + (uint64_t)place->timeout_ms};
	if (link_connect(l, host, port))
		link_fail(l, rpma_err_last());
}

void link_close(struct link *l)
{
	rpma_mr_remote_delete(&l->data);
	rpma_mr_remote_delete(&l->ring);
	rpma_conn_delete(&l->conn);
	if (l->mr)
		rpma_mr_dereg(&l->mr);
	free(l->buffers);
	l->buffers = NULL;
	l->rcq = NULL;
	l->inbox_count = 0;
	l->state = LINK_DOWN;
}

unsigned link_fds(const struct link *l, int fds[2])
{
	if (!l->conn || l->state == LINK_ENDED)
		return 0;
	if (rpma_conn_get_event_fd(l->conn, &fds[0]) || rpma_cq_get_fd(l->rcq, &fds[1]))
		return 0;
	return 2;
}

/* Returns true if a send slot is free. Sends of a lane complete in the shared queue of all lanes,
 * which reports only failures; but the only message that a lane sends is its proof. */
static bool link_has_room(struct link *l)
{
	struct rpma_cq *cq = NULL;
	struct ibv_wc wc;

	if (l->place->cq)
		return l->sent < LINK_SENDS;
	rpma_conn_get_cq(l->conn, &cq);
	while (!rpma_cq_get_wc(cq, 1, &wc, NULL))
		l->sends_done++;
	return l->sent - l->sends_done < LINK_SENDS;
}

bool link_send(struct link *l, const struct message *m)
{
	size_t slot = l->sent % LINK_SENDS;
	int flags = l->place->cq ? RPMA_F_COMPLETION_ON_ERROR : RPMA_F_COMPLETION_ALWAYS;

	if (!link_has_room(l)) {
		link_fail(l, "its daemon does not accept messages");
		return false;
	}
	message_encode(m, l->exchange.version, l->buffers->out[slot]);
	if (rpma_send(l->conn, l->mr, offsetof(struct link_buffers, out) + slot * MESSAGE_SIZE,
		      MESSAGE_SIZE, flags, NULL)) {
		link_fail(l, rpma_err_last());
		return false;
	}
	l->sent++;
	return true;
}

bool link_receive(struct link *l, struct message *m)
{
	if (!l->inbox_count)
		return false;
	*m = l->inbox[l->inbox_first];
	l->inbox_first = (l->inbox_first + 1) % LINK_MESSAGES;
	l->inbox_count--;
	return true;
}

static void link_on_message(struct link *l, const struct message *m)
{
	if (l->state == LINK_PROVING) {
		link_on_grant(l, m);
		return;
	}
	if (l->inbox_count == LINK_MESSAGES) {
		link_fail(l, "its daemon sent more messages than were requested");
		return;
	}
	l->inbox[(l->inbox_first + l->inbox_count++) % LINK_MESSAGES] = *m;
}

static void link_on_receive(struct link *l, const struct ibv_wc *wc)
{
	struct message m;

	if (wc->status != IBV_WC_SUCCESS) {
		link_fail_by(l, wc);
		return;
	}
	if (message_decode(l->buffers->in[wc->wr_id], wc->byte_len, l->exchange.version, &m)) {
		link_fail(l, "its daemon sent a malformed message");
		return;
	}
	if (rpma_recv(l->conn, l->mr, wc->wr_id * MESSAGE_SIZE, MESSAGE_SIZE,
		      (const void *)(uintptr_t)wc->wr_id)) {
		link_fail(l, rpma_err_last());
		return;
	}
	link_on_message(l, &m);
}

void link_step(struct link *l, uint64_t now_ms)
{
	enum rpma_conn_event event;
	struct ibv_wc wc;

	if (l->state == LINK_DOWN || l->state == LINK_ENDED)
		return;
	/* Take messages before events, because the messages arrived before the connection's end. */
	rpma_cq_wait_timeout(l->rcq, 0);
	while (l->state > LINK_CONNECTING && l->state != LINK_ENDED &&
	       !rpma_cq_get_wc(l->rcq, 1, &wc, NULL))
		link_on_receive(l, &wc);
	while (l->state != LINK_ENDED && !rpma_conn_next_event_timeout(l->conn, 0, &event)) {
		if (event == RPMA_CONN_ESTABLISHED)
			link_on_established(l);
		else if (event == RPMA_CONN_CLOSED)
			link_fail(l, "its daemon closed the connection");
		else
			link_fail(l, rpma_err_last());
	}
	if (l->state < LINK_READY && now_ms >= l->deadline_ms)
		link_fail(l, "its daemon does not answer");
}
