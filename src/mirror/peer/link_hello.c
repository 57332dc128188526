/* SPDX-License-Identifier: BSD-3-Clause */
/* Begins a connection: the daemon's reply to the greeting, this end's proof, the daemon's proof
 * and grant. */
#include <errno.h>
#include <string.h>

#include "mirror/peer/link_impl.h"

static void link_refused(struct link *l, enum greeting_status status)
{
	l->status = status;
	link_fail(l, greeting_status_2str(status));
}

static void link_prove(struct link *l)
{
	struct proof_exchange *exchange = &l->exchange;
	struct message m = {.type = MESSAGE_PROVE,
			    .uuid = exchange->greeting.uuid,
			    .epoch = exchange->greeting.epoch};

	if (*l->place->key) {
		proof_nonce(exchange->nonce);
		memcpy(m.prove.nonce, exchange->nonce, sizeof(m.prove.nonce));
		proof_make(*l->place->key, exchange, m.prove.mac);
	}
	l->state = LINK_PROVING;
	link_send(l, &m);
}

/* Close the link, because only one end has a secret. there: the other end has the secret. */
static void link_lacks_secret(struct link *l, bool there)
{
	l->lacks_secret = true;
	link_fail(l, there ? "it requires a secret, but this host's set has none"
			   : "it does not know the set's secret");
}

void link_on_established(struct link *l)
{
	struct rpma_conn_private_data pdata = {NULL, 0};
	struct greeting_reply *reply = &l->exchange.reply;
	char text[256];
	int rc;

	rpma_conn_get_private_data(l->conn, &pdata);
	rc = greeting_reply_decode(pdata.ptr, pdata.len, reply);
	if (rc == -EPROTONOSUPPORT || (!rc && reply->status == GREETING_BAD_VERSION)) {
		version_explain(reply->versions, "its rpmirrord", l->place->self, text,
				sizeof(text));
		l->status = GREETING_BAD_VERSION;
		link_fail(l, text);
		return;
	}
	if (rc) {
		link_fail(l, "the program that listens there is not rpmirrord");
		return;
	}
	l->exchange.version = version_agree(reply->versions, version_ours());
	l->known = reply->known;
	if (reply->status != GREETING_OK)
		link_refused(l, reply->status);
	else if (reply->has_secret != (*l->place->key != NULL))
		link_lacks_secret(l, reply->has_secret);
	else
		link_prove(l);
}

static int link_take_peer_cfg(struct link *l)
{
	const struct message_desc *desc = &l->grant.peer_cfg;
	struct rpma_peer_cfg *pcfg;
	int rc;

	if (!desc->len)
		return 0;
	rc = rpma_peer_cfg_from_descriptor(desc->bytes, desc->len, &pcfg);
	if (rc)
		return rc;
	rc = rpma_conn_apply_remote_peer_cfg(l->conn, pcfg);
	rpma_peer_cfg_delete(&pcfg);
	return rc;
}

static int link_take_region(const struct message_desc *desc, struct rpma_mr_remote **mr)
{
	if (!desc->len)
		return 0;
	return rpma_mr_remote_from_descriptor(desc->bytes, desc->len, mr);
}

/* Returns true if the grant has every registration that this kind of connection needs. */
static bool link_is_complete(const struct link *l)
{
	switch (l->exchange.greeting.kind) {
	case GREETING_LANE:
		return l->data && l->ring;
	case GREETING_BULK:
	case GREETING_RESTORE:
		return l->data;
	default:
		return true;
	}
}

void link_on_grant(struct link *l, const struct message *m)
{
	uint8_t mac[MESSAGE_MAC];

	if (m->type != MESSAGE_GRANT) {
		link_fail(l, "its daemon breaks the protocol");
		return;
	}
	if (m->grant.status != GREETING_OK) {
		link_refused(l, m->grant.status);
		return;
	}
	if (*l->place->key) {
		proof_make_grant(*l->place->key, &l->exchange, &m->grant, mac);
		if (!mac_is_equal(mac, m->grant.mac)) {
			link_refused(l, GREETING_SECRET_WRONG);
			return;
		}
	}
	l->grant = m->grant;
	if (link_take_peer_cfg(l) || link_take_region(&l->grant.data, &l->data) ||
	    link_take_region(&l->grant.ring, &l->ring) || !link_is_complete(l)) {
		link_fail(l, "its daemon describes its memory wrongly");
		return;
	}
	l->state = LINK_READY;
}
