/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles connection requests, until they are accepted with an answer or dropped. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mirror/wire/proof.h"
#include "mirrord/connections.h"

/* Returns the reason why the set is not open. If only its secret cannot be used, the register's
 * record shows that this host has a copy of the set. */
static enum greeting_status accept_why_closed(const struct daemon *d,
					      const struct mirror_uuid *uuid)
{
	for (unsigned i = 0; i < d->conf->set_count; i++) {
		const struct set *s = &d->sets[i];

		if (!s->is_open && s->is_secret_bad && s->has_entry &&
		    !memcmp(&s->entry.record.config.uuid, uuid, sizeof(*uuid)))
			return GREETING_SECRET_WRONG;
	}
	return GREETING_NO_SET;
}

static enum greeting_status accept_check(struct daemon *d, struct inbound *link,
					 const struct rpma_conn_private_data *theirs)
{
	int rc = theirs->ptr ? greeting_decode(theirs->ptr, theirs->len, &link->greeting) : -EPROTO;
	const struct greeting *g = &link->greeting;
	struct set *s;

	if (rc)
		return rc == -EPROTONOSUPPORT ? GREETING_BAD_VERSION : GREETING_BAD_REQUEST;
	link->version = version_agree(g->versions, version_ours());
	s = set_find_uuid(d, &g->uuid);
	if (!s)
		return accept_why_closed(d, &g->uuid);
	link->reply.known = s->meta.promise.epoch;
	if (g->to != s->meta.super.slot)
		return GREETING_NOT_MEMBER;
	if (g->copy_id && g->copy_id != s->meta.super.member_id)
		return GREETING_WRONG_COPY;
	if (g->kind != GREETING_OBSERVE && g->epoch.number < s->meta.promise.epoch.number)
		return GREETING_EPOCH;
	if (d->arrivals.count[ARRIVAL_ADMITTED] >= d->conf->max_connections)
		return GREETING_BUSY;
	link->set = s;
	link->reply.has_secret = s->has_secret;
	return GREETING_OK;
}

static void accept_note_refusal(const struct inbound *link)
{
	char text[256];

	snprintf(text, sizeof(text), "%s", greeting_status_2str(link->reply.status));
	if (link->reply.status == GREETING_BAD_VERSION)
		version_explain(link->greeting.versions, "it", "this rpmirrord", text,
				sizeof(text));
	LOG_WARNING_LIMITED("a connection from %s is refused: %s", link->addr, text);
}

static int accept_answer(struct inbound *link, struct rpma_conn_req **req)
{
	uint8_t buf[GREETING_REPLY];
	struct rpma_conn_private_data ours = {.ptr = buf};

	if (link->reply.has_secret)
		proof_nonce(link->reply.nonce);
	ours.len = (uint8_t)greeting_reply_encode(&link->reply, version_newest(), buf);
	return rpma_conn_req_connect(req, &ours, &link->conn);
}

/* Accept the request. On return *req is consumed, and on success link->conn is set. */
static int accept_request(struct daemon *d, struct inbound *link, struct rpma_conn_req **req)
{
	struct rpma_conn_private_data theirs = {0};
	int rc;

	snprintf(link->addr, sizeof(link->addr), "an unknown address");
	rpma_conn_req_get_remote_addr(*req, link->addr, sizeof(link->addr));
	rpma_conn_req_get_private_data(*req, &theirs);
	link->reply.status = (uint8_t)accept_check(d, link, &theirs);
	link->arrival.state = link->reply.status == GREETING_OK ? ARRIVAL_PENDING : ARRIVAL_REFUSED;
	if (link->arrival.state == ARRIVAL_REFUSED) {
		accept_note_refusal(link);
		/* If this many connections are being refused, reject further requests without a
		 * reason. */
		return d->arrivals.count[ARRIVAL_REFUSED] < DAEMON_REFUSED_MAX
			       ? accept_answer(link, req)
			       : RPMA_E_AGAIN;
	}
	inbounds_make_room(d, link->addr);
	rc = inbound_post_receives(link, *req);
	if (!rc)
		rc = accept_answer(link, req);
	if (rc)
		LOG_WARNING_LIMITED("a connection from %s could not be accepted: %s", link->addr,
				    rpma_err_last());
	return rc;
}

static struct rpma_conn_cfg *accept_cfg(const struct daemon *d)
{
	unsigned sends = sizeof(((struct inbound *)NULL)->messages.out) / MESSAGE_SIZE;
	struct rpma_conn_cfg *cfg;

	if (rpma_conn_cfg_new(&cfg))
		return NULL;
	rpma_conn_cfg_set_rq_size(cfg, MESSAGE_OUTSTANDING);
	rpma_conn_cfg_set_sq_size(cfg, sends);
	rpma_conn_cfg_set_cq_size(cfg, sends + MESSAGE_OUTSTANDING);
	rpma_conn_cfg_set_liveness(cfg, (int)d->conf->peer_timeout_ms);
	return cfg;
}

void accept_on_request(struct watch *w)
{
	struct daemon *d = w->owner;
	struct rpma_conn_cfg *cfg = accept_cfg(d);
	struct rpma_conn_req *req = NULL;
	struct inbound *link;
	int rc = cfg ? rpma_ep_next_conn_req(d->ep, cfg, &req) : RPMA_E_NOMEM;

	rpma_conn_cfg_delete(&cfg);
	if (rc) {
		if (rc != RPMA_E_NO_EVENT)
			LOG_WARNING_LIMITED("a connection request was lost: %s", rpma_err_last());
		return;
	}
	link = calloc(1, sizeof(*link));
	if (!link) {
		rpma_conn_req_delete(&req);
		return;
	}
	link->daemon = d;
	link->on_event.fd = link->on_message.fd = -1;
	if (!accept_request(d, link, &req)) {
		inbound_adopt(d, link);
		return;
	}
	rpma_conn_req_delete(&req);
	inbound_free(link);
}
