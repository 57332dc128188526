/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon of a member: it grants every request of a primary, and answers its questions. */
#include <string.h>
#include <unistd.h>

#include "standin_impl.h"

static void standin_close_conn(struct standin_conn *c)
{
	rpma_conn_delete(&c->conn);
	rpma_mr_dereg(&c->mr);
	rpma_mr_dereg(&c->data);
	rpma_mr_dereg(&c->ring);
	c->established = false;
}

void standin_close_member(struct standin *s, unsigned slot)
{
	for (unsigned i = 0; i < STANDIN_CONNS; i++)
		if (s->members[slot].conns[i].conn)
			standin_close_conn(&s->members[slot].conns[i]);
	rpma_ep_shutdown(&s->members[slot].ep);
}

void standin_listen(struct standin *s, unsigned slot)
{
	int rc = rpma_ep_listen(s->peer, "127.0.0.1", s->members[slot].port, &s->members[slot].ep);

	STANDIN_MUST(!rc);
	(void)rc;
}

static void standin_describe(struct rpma_mr_local *mr, struct message_desc *desc)
{
	size_t len = 0;

	rpma_mr_get_descriptor_size(mr, &len);
	STANDIN_MUST(len <= sizeof(desc->bytes));
	desc->len = (uint8_t)len;
	rpma_mr_get_descriptor(mr, desc->bytes);
}

static void standin_grant(struct standin *s, unsigned slot, struct standin_conn *c,
			  struct message_grant *grant)
{
	const int usage = RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC |
			  RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
	struct standin_member *m = &s->members[slot];
	enum rpma_durability durability = RPMA_DURABILITY_VOLATILE;

	rpma_utils_get_durability(m->copy, STANDIN_SIZE, &durability, NULL, 0);
	*grant = (struct message_grant){.copy = MIRROR_COPY_INSYNC,
					.durability = (uint8_t)durability,
					.size = STANDIN_SIZE};
	if (c->greeting.kind == GREETING_CONTROL)
		return;
	rpma_mr_reg(s->peer, m->copy, STANDIN_SIZE, usage, &c->data);
	standin_describe(c->data, &grant->data);
	if (c->greeting.kind != GREETING_LANE)
		return;
	if (!m->is_syncing)
		m->epoch = c->greeting.epoch;
	rpma_mr_reg(s->peer, m->ring, INTENT_RING_BYTES, usage, &c->ring);
	standin_describe(c->ring, &grant->ring);
	grant->ring_slots = INTENT_SLOTS;
}

static void standin_promised(struct standin *s, unsigned slot, const struct message *q,
			     struct message *a)
{
	const struct mirror_member *members = s->record.config.members;
	struct standin_member *m = &s->members[slot];

	a->type = MESSAGE_PROMISED;
	m->promised = q->epoch;
	a->promised = (struct message_promised){.copy = m->is_syncing ? MIRROR_COPY_SYNCING
								      : MIRROR_COPY_INSYNC,
						.ranges = m->record_count,
						.copy_id = members[slot].id,
						.size = STANDIN_SIZE,
						.seen = m->seen,
						.copy_epoch = m->epoch,
						.source_id = m->is_syncing ? members[0].id : 0};
}

static void standin_clear(struct standin_member *m, const struct message_clear *clear,
			  struct message *a)
{
	bool is_bad = m->bad_from && clear->offset + clear->len > m->bad_from;

	a->type = MESSAGE_ERRORS_CLEARED;
	/* the work takes some time: report that it is under way */
	if (m->asked[MESSAGE_CLEAR_ERRORS] % 3) {
		a->cleared = (struct message_cleared){.is_under_way = true};
		return;
	}
	a->cleared = (struct message_cleared){.blocks = is_bad};
	if (is_bad && m->bad_error) {
		a->cleared.error = (uint16_t)m->bad_error;
		a->cleared.offset = m->bad_from;
	} else if (is_bad) {
		STANDIN_MUST(m->is_syncing && !ftruncate(m->fd, STANDIN_SIZE));
		m->bad_from = 0;
	}
}

void standin_answer(struct standin *s, unsigned slot, const struct message *q, struct message *a)
{
	struct standin_member *m = &s->members[slot];

	m->asked[q->type]++;
	*a = (struct message){
		.type = MESSAGE_DONE, .id = q->id, .uuid = q->uuid, .epoch = q->epoch};
	a->done.to = (uint8_t)q->type;
	if (q->epoch.number < m->promised.number) {
		a->done.status = GREETING_EPOCH;
		a->done.known = m->promised;
	} else if (q->type == MESSAGE_PROMISE) {
		standin_promised(s, slot, q, a);
	} else if (q->type == MESSAGE_GET_RANGES) {
		a->type = MESSAGE_RANGES;
		a->ranges = (struct message_ranges){
			.index = 0, .total = m->record_count, .count = (uint8_t)m->record_count};
		memcpy(a->ranges.ranges, m->records, sizeof(m->records));
	} else if (q->type == MESSAGE_RESYNC_BEGIN) {
		m->is_syncing = true;
	} else if (q->type == MESSAGE_RESYNC_END) {
		m->is_syncing = false;
		m->epoch = q->epoch;
	} else if (q->type == MESSAGE_CLEAR_ERRORS) {
		standin_clear(m, &q->clear, a);
	} else if (q->type == MESSAGE_RETIRE) {
		m->record_count = 0;
	} else if (q->type == MESSAGE_VIEW) {
		m->seen = q->view.view;
	}
}

static void standin_on_message(struct standin *s, unsigned slot, struct standin_conn *c,
			       const struct message *q)
{
	struct message a;
	unsigned out = c->out++ % 8;

	if (q->type == MESSAGE_PROVE) {
		a = (struct message){.type = MESSAGE_GRANT, .id = q->id, .uuid = q->uuid};
		standin_grant(s, slot, c, &a.grant);
	} else {
		standin_answer(s, slot, q, &a);
	}
	message_encode(&a, version_newest(), c->buffers[1][out]);
	rpma_send(c->conn, c->mr, sizeof(c->buffers[0]) + out * MESSAGE_SIZE, MESSAGE_SIZE,
		  RPMA_F_COMPLETION_ALWAYS, (void *)100);
}

static void standin_accept(struct standin *s, unsigned slot)
{
	struct standin_member *m = &s->members[slot];
	uint8_t reply_bytes[GREETING_REPLY];
	struct rpma_conn_private_data pdata = {NULL, 0}, reply = {reply_bytes, GREETING_REPLY};
	struct greeting_reply r = {.status = GREETING_OK, .known = m->promised};
	struct rpma_conn_req *req;
	struct standin_conn *c = m->conns;

	if (rpma_ep_next_conn_req_timeout(m->ep, NULL, 0, &req))
		return;
	while (c->conn)
		STANDIN_MUST(++c < m->conns + STANDIN_CONNS);
	memset(c, 0, sizeof(*c));
	rpma_conn_req_get_private_data(req, &pdata);
	greeting_decode(pdata.ptr, pdata.len, &c->greeting);
	greeting_reply_encode(&r, version_newest(), reply_bytes);
	rpma_mr_reg(s->peer, c->buffers, sizeof(c->buffers),
		    RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &c->mr);
	for (uintptr_t i = 0; i < 8; i++)
		rpma_conn_req_recv(req, c->mr, i * MESSAGE_SIZE, MESSAGE_SIZE, (void *)i);
	if (rpma_conn_req_connect(&req, &reply, &c->conn))
		rpma_mr_dereg(&c->mr);
}

static void standin_step_conn(struct standin *s, unsigned slot, struct standin_conn *c)
{
	enum rpma_conn_event event;
	struct rpma_cq *cq;
	struct message q;
	struct ibv_wc wc;

	if (!rpma_conn_next_event_timeout(c->conn, 0, &event)) {
		if (event != RPMA_CONN_ESTABLISHED) {
			standin_close_conn(c);
			return;
		}
		c->established = true;
	}
	rpma_conn_get_cq(c->conn, &cq);
	while (c->established && !rpma_cq_get_wc(cq, 1, &wc, NULL)) {
		if (wc.status != IBV_WC_SUCCESS || wc.wr_id >= 8)
			continue;
		if (!message_decode(c->buffers[0][wc.wr_id], MESSAGE_SIZE, version_newest(), &q))
			standin_on_message(s, slot, c, &q);
		rpma_recv(c->conn, c->mr, wc.wr_id * MESSAGE_SIZE, MESSAGE_SIZE,
			  (void *)(uintptr_t)wc.wr_id);
	}
}

void standin_step_member(struct standin *s, unsigned slot)
{
	struct standin_member *m = &s->members[slot];

	if (!m->ep)
		return;
	standin_accept(s, slot);
	for (unsigned i = 0; i < STANDIN_CONNS; i++)
		if (m->conns[i].conn)
			standin_step_conn(s, slot, &m->conns[i]);
}
