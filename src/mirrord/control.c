/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles messages of connections: proof and grant, then questions about the copy. */
#include <string.h>

#include "mirror/wire/proof.h"
#include "mirrord/connections.h"
#include "mirrord/copies.h"
#include "service/peer.h"

static int control_describe(const struct rpma_mr_local *mr, struct message_desc *desc)
{
	return peer_describe_memory(mr, desc->bytes, sizeof(desc->bytes), &desc->len);
}

#define CONTROL_WRITES                                                                             \
	(RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |  \
	 RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)

/* The rights with which the copy is registered, for each kind of data connection. */
static const int control_data_usage[GREETING_KIND_END] = {
	[GREETING_LANE] = CONTROL_WRITES,
	[GREETING_BULK] = CONTROL_WRITES,
	[GREETING_RESTORE] = RPMA_MR_USAGE_READ_SRC,
};

/* Register the copy for this connection alone. The connection has already proved itself. */
static int control_register(struct inbound *link, struct message_grant *grant)
{
	struct set *s = link->set;
	int usage = control_data_usage[link->greeting.kind];
	int rc = peer_describe(true, grant->peer_cfg.bytes, sizeof(grant->peer_cfg.bytes),
			       &grant->peer_cfg.len);

	if (!rc && usage) {
		rc = rpma_mr_reg(s->daemon->peer, s->data.addr, s->meta.super.size, usage,
				 &link->data_mr);
		if (!rc)
			rc = control_describe(link->data_mr, &grant->data);
	}
	if (!rc && link->greeting.kind == GREETING_LANE) {
		rc = rpma_mr_reg(s->daemon->peer, meta_ring(&s->meta), INTENT_RING_BYTES,
				 CONTROL_WRITES, &link->ring_mr);
		if (!rc)
			rc = control_describe(link->ring_mr, &grant->ring);
		grant->ring_slots = INTENT_SLOTS;
	}
	if (rc)
		LOG_ERROR_LIMITED("set %s: no memory for a connection from %s: %s", s->conf->name,
				  link->addr, rpma_err_last());
	return rc;
}

/* Check the request against the rules of the copy. */
static enum greeting_status control_ask_member(struct inbound *link)
{
	static const enum member_kind kinds[GREETING_KIND_END] = {
		[GREETING_CONTROL] = MEMBER_CONTROL,
		[GREETING_LANE] = MEMBER_LANE,
		[GREETING_BULK] = MEMBER_BULK,
		[GREETING_OBSERVE] = MEMBER_CONTROL,
		[GREETING_RESTORE] = MEMBER_RESTORE};
	struct member_hello hello = {.uuid = link->greeting.uuid,
				     .member_id = link->greeting.copy_id,
				     .epoch = link->greeting.epoch,
				     .kind = kinds[link->greeting.kind]};
	struct member_verdict v;

	if (link->greeting.kind == GREETING_OBSERVE)
		return GREETING_OK;
	if (link->greeting.kind != GREETING_CONTROL && link->set->clearing.is_busy)
		/* refuse: zeros of the clearing could overwrite the connection's writes, or appear
		 * in its reads */
		return GREETING_BUSY;
	member_grant(&link->set->member, &hello, &v);
	if (v.answer == MEMBER_YES) {
		link->counts = true;
		return GREETING_OK;
	}
	LOG_WARNING_LIMITED("set %s: a connection from %s is refused: %s", link->set->conf->name,
			    link->addr, v.text);
	return fence_status(v.reason);
}

static void control_fill_grant(struct inbound *link, struct message_grant *grant)
{
	struct set *s = link->set;

	grant->status = (uint8_t)control_ask_member(link);
	if (grant->status == GREETING_OK && control_register(link, grant))
		*grant = (struct message_grant){.status = GREETING_IO};
	if (grant->status != GREETING_OK)
		return;
	grant->copy = (uint8_t)copy_state(s);
	grant->durability = (uint8_t)s->data.durability;
	grant->size = s->meta.super.size;
}

static bool control_is_proved(const struct inbound *link, const struct proof_exchange *exchange,
			      const struct message_prove *prove)
{
	uint8_t expected[MESSAGE_MAC];

	if (!link->set->has_secret)
		return true;
	proof_make(link->set->secret.key, exchange, expected);
	return mac_is_equal(expected, prove->mac);
}

static void control_fill_header(const struct inbound *link, const struct message *m,
				struct message *answer)
{
	answer->id = m->id;
	answer->uuid = link->greeting.uuid;
	answer->epoch = link->greeting.epoch;
}

/* Check the proof. Registrations are made only after this check. */
static int control_on_prove(struct inbound *link, const struct message *m)
{
	struct proof_exchange exchange = {
		.version = link->version, .greeting = link->greeting, .reply = link->reply};
	struct message answer = {.type = MESSAGE_GRANT};
	bool is_proved;

	memcpy(exchange.nonce, m->prove.nonce, sizeof(exchange.nonce));
	is_proved = control_is_proved(link, &exchange, &m->prove);
	if (is_proved)
		control_fill_grant(link, &answer.grant);
	else
		answer.grant.status = GREETING_SECRET_WRONG;
	/* A peer without the key gets no code that was computed with the key. */
	if (is_proved && link->set->has_secret)
		proof_make_grant(link->set->secret.key, &exchange, &answer.grant, answer.grant.mac);
	if (!is_proved)
		LOG_WARNING_LIMITED("set %s: %s does not know the secret", link->set->conf->name,
				    link->addr);
	arrivals_enter(&link->daemon->arrivals, &link->arrival,
		       answer.grant.status == GREETING_OK ? ARRIVAL_ADMITTED : ARRIVAL_REFUSED);
	control_fill_header(link, m, &answer);
	return inbound_send(link, &answer);
}

static void control_done(const struct set *s, const struct message *m,
			 const struct member_verdict *v, struct message *answer)
{
	if (v->answer != MEMBER_YES) {
		fence_refuse(s, v, (uint8_t)m->type, answer);
		return;
	}
	answer->type = MESSAGE_DONE;
	answer->done = (struct message_done){
		.to = (uint8_t)m->type, .status = GREETING_OK, .known = s->meta.promise.epoch};
}

static void control_fill_ranges(struct set *s, const struct message *m, struct message *answer)
{
	struct message_ranges *ranges = &answer->ranges;

	answer->type = MESSAGE_RANGES;
	ranges->index = m->ranges.index;
	ranges->total = s->member.range_count;
	ranges->count = (uint8_t)member_ranges(&s->member, m->ranges.index, ranges->ranges,
					       MESSAGE_RANGES_MAX);
}

/* Returns the id of the copy in that slot. The id identifies the sender of a resync, because the
 * slot may be given to another member. */
static uint64_t control_source_id(const struct set *s, uint8_t slot)
{
	return s->meta.members.members[slot].id;
}

/* Returns true if the message belongs to the promised epoch. PROMISE is exempt, because it brings
 * a new epoch. */
static bool control_is_current(const struct set *s, const struct message *m, struct message *answer)
{
	if (mirror_epoch_is_equal(m->epoch, s->meta.promise.epoch))
		return true;
	answer->type = MESSAGE_DONE;
	answer->done = (struct message_done){
		.to = (uint8_t)m->type, .status = GREETING_EPOCH, .known = s->meta.promise.epoch};
	return false;
}

/*
 * Record the ranges of a remote primary. This host's own primary uses the hot slots for its own
 * ranges, so the remote ranges find no free slot: mark the copy as uncertain instead.
 */
static void control_record(struct set *s, const struct inbound *asker, const struct message *m,
			   struct member_verdict *v)
{
	if (asker)
		member_record_ranges(&s->member, m->epoch, m->ranges.ranges, m->ranges.count, v);
	else
		member_set_uncertain(&s->member, v);
}

static void control_clear(struct set *s, const struct message *m, struct member_verdict *v,
			  struct message *answer)
{
	struct mirror_range range = {m->clear.offset, m->clear.len};

	member_may_clear(&s->member, m->epoch, range, v);
	if (v->answer == MEMBER_YES) {
		answer->type = MESSAGE_ERRORS_CLEARED;
		clear_on_request(s, m->epoch, range, &answer->cleared);
	}
}

/*
 * Returns true while blocks of the range may still become zeros. During that time no resync of any
 * epoch begins or ends.
 */
static bool control_is_clearing(const struct set *s, const struct message *m,
				struct message *answer)
{
	if (!s->clearing.is_busy ||
	    (m->type != MESSAGE_RESYNC_BEGIN && m->type != MESSAGE_RESYNC_END))
		return false;
	answer->type = MESSAGE_DONE;
	answer->done = (struct message_done){
		.to = (uint8_t)m->type, .status = GREETING_BUSY, .known = s->meta.promise.epoch};
	return true;
}

static bool control_ask_copy(struct set *s, const struct inbound *asker, const struct message *m,
			     struct message *answer)
{
	struct member_verdict v = {.answer = MEMBER_YES};

	if (!control_is_current(s, m, answer) || control_is_clearing(s, m, answer))
		return true;
	medium_look(s);
	switch (m->type) {
	case MESSAGE_GET_RANGES:
		control_fill_ranges(s, m, answer);
		return true;
	case MESSAGE_RECORD_RANGES:
		control_record(s, asker, m, &v);
		break;
	case MESSAGE_RESYNC_BEGIN:
		clear_forget(s);
		member_resync_begin(&s->member, m->epoch, control_source_id(s, m->resync.source),
				    &v);
		break;
	case MESSAGE_RESYNC_END:
		member_resync_end(&s->member, m->epoch, &v);
		break;
	case MESSAGE_CLEAR_ERRORS:
		control_clear(s, m, &v, answer);
		if (v.answer == MEMBER_YES)
			return true;
		break;
	case MESSAGE_RETIRE:
		member_retire(&s->member, m->epoch, MEMBER_SERVING, &v);
		break;
	case MESSAGE_VIEW:
		s->shown_ns = clock_boot_ns();
		member_on_view(&s->member, &m->view.view, &v);
		reg_ask(s);
		break;
	default:
		return false;
	}
	control_done(s, m, &v, answer);
	return true;
}

bool control_answer(struct set *s, const struct inbound *asker, const struct message *m,
		    struct message *answer)
{
	switch (m->type) {
	case MESSAGE_PROMISE:
		fence_promise(s, asker, m->epoch, answer);
		return true;
	case MESSAGE_GET_STATUS:
		answer->type = MESSAGE_STATUS;
		set_fill_status(s, &answer->status);
		return true;
	case MESSAGE_PING:
		answer->type = MESSAGE_PONG;
		return true;
	case MESSAGE_RESERVE:
		answer->type = MESSAGE_RESERVED;
		grow_on_reserve(s, &m->reserve, &answer->reserve);
		return true;
	default:
		return control_ask_copy(s, asker, m, answer);
	}
}

static bool control_may_ask(const struct inbound *link, const struct message *m)
{
	if (link->arrival.state != ARRIVAL_ADMITTED ||
	    memcmp(&m->uuid, &link->greeting.uuid, sizeof(m->uuid)) != 0 ||
	    !mirror_epoch_is_equal(m->epoch, link->greeting.epoch))
		return false;
	if (link->greeting.kind == GREETING_OBSERVE)
		return m->type == MESSAGE_GET_STATUS || m->type == MESSAGE_RESERVE ||
		       m->type == MESSAGE_PING;
	return link->greeting.kind == GREETING_CONTROL;
}

/* Handle one message. Returns librpma's result, or RPMA_E_INVAL if this message is not permitted
 * now. */
static int control_on_bytes(struct inbound *link, const uint8_t *bytes, size_t len)
{
	struct message m, answer = {0};

	if (message_decode(bytes, len, link->version, &m))
		return RPMA_E_INVAL;
	if (link->arrival.state == ARRIVAL_PENDING)
		return m.type == MESSAGE_PROVE ? control_on_prove(link, &m) : RPMA_E_INVAL;
	if (!control_may_ask(link, &m))
		return RPMA_E_INVAL;
	if (!control_answer(link->set, link, &m, &answer))
		return RPMA_E_INVAL;
	control_fill_header(link, &m, &answer);
	return inbound_send(link, &answer);
}

static int control_on_receive(struct inbound *link, const struct ibv_wc *wc)
{
	size_t slot = (size_t)wc->wr_id;
	int rc = control_on_bytes(link, link->messages.in[slot], wc->byte_len);

	if (rc == RPMA_E_INVAL)
		LOG_WARNING_LIMITED("%s sent an invalid message and is disconnected", link->addr);
	return rc ? rc
		  : rpma_recv(link->conn, link->message_mr, slot * MESSAGE_SIZE, MESSAGE_SIZE,
			      (void *)(uintptr_t)slot);
}

static int control_on_completion(struct inbound *link, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS)
		return RPMA_E_UNKNOWN;
	if (wc->opcode & IBV_WC_RECV)
		return link->arrival.state == ARRIVAL_REFUSED ? 0 : control_on_receive(link, wc);
	link->out_busy &= ~(1u << wc->wr_id);
	if (link->arrival.state == ARRIVAL_REFUSED)
		rpma_conn_disconnect(link->conn); /* the answer with the reason was sent before */
	return 0;
}

void control_on_message(struct watch *w)
{
	struct inbound *link = w->owner;
	struct ibv_wc wc;
	int rc;

	/* arms the queue again; a wake-up without a completion is harmless */
	rpma_cq_wait(link->cq);
	while (!(rc = rpma_cq_get_wc(link->cq, 1, &wc, NULL))) {
		rc = control_on_completion(link, &wc);
		if (rc)
			break;
	}
	if (rc != RPMA_E_NO_COMPLETION)
		inbound_end(link);
}
