/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/wire/message.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "mirror/core/epoch.h"
#include "mirror/wire/fields.h"

#define MESSAGE_MAGIC 0x474d4d52u /* "RMMG" */

#define MESSAGE_LENGTH_AT      6
#define MESSAGE_HEAD           44
#define MESSAGE_DURABILITY_END 4 /* one more than the last value of enum rpma_durability */

static void message_put_prove(struct wcursor *c, const struct message *m)
{
	wcursor_bytes(c, m->prove.nonce, GREETING_NONCE);
	wcursor_bytes(c, m->prove.mac, MESSAGE_MAC);
}

static void message_get_prove(struct rcursor *c, struct message *m)
{
	fields_get_bytes(c, m->prove.nonce, GREETING_NONCE);
	fields_get_bytes(c, m->prove.mac, MESSAGE_MAC);
}

static void message_put_desc(struct wcursor *c, const struct message_desc *desc)
{
	assert(desc->len <= MESSAGE_DESC_MAX);
	wcursor_u8(c, desc->len);
	wcursor_bytes(c, desc->bytes, desc->len);
}

static void message_get_desc(struct rcursor *c, struct message_desc *desc)
{
	desc->len = fields_get_below(c, MESSAGE_DESC_MAX + 1);
	fields_get_bytes(c, desc->bytes, desc->len);
}

static void message_put_grant(struct wcursor *c, const struct message *m)
{
	const struct message_grant *grant = &m->grant;

	wcursor_u8(c, grant->status);
	wcursor_u8(c, grant->copy);
	wcursor_u8(c, grant->durability);
	wcursor_le(c, grant->size, 8);
	wcursor_le(c, grant->ring_slots, 4);
	wcursor_bytes(c, grant->mac, MESSAGE_MAC);
	message_put_desc(c, &grant->peer_cfg);
	message_put_desc(c, &grant->data);
	message_put_desc(c, &grant->ring);
}

static void message_get_grant(struct rcursor *c, struct message *m)
{
	struct message_grant *grant = &m->grant;

	grant->status = fields_get_below(c, GREETING_STATUS_END);
	grant->copy = fields_get_below(c, MIRROR_COPY_COUNT);
	grant->durability = fields_get_below(c, MESSAGE_DURABILITY_END);
	grant->size = rcursor_le(c, 8);
	grant->ring_slots = (uint32_t)rcursor_le(c, 4);
	fields_get_bytes(c, grant->mac, MESSAGE_MAC);
	message_get_desc(c, &grant->peer_cfg);
	message_get_desc(c, &grant->data);
	message_get_desc(c, &grant->ring);
}

static void message_put_promised(struct wcursor *c, const struct message *m)
{
	const struct message_promised *promised = &m->promised;

	wcursor_u8(c, promised->copy);
	wcursor_u8(c, promised->flags);
	wcursor_le(c, promised->ranges, 4);
	wcursor_le(c, promised->copy_id, 8);
	wcursor_le(c, promised->size, 8);
	wcursor_le(c, promised->revision, 8);
	fields_put_view(c, &promised->seen);
	epoch_put(c, promised->copy_epoch);
	wcursor_le(c, promised->source_id, 8);
}

static void message_get_promised(struct rcursor *c, struct message *m)
{
	struct message_promised *promised = &m->promised;

	promised->copy = fields_get_below(c, MIRROR_COPY_COUNT);
	promised->flags =
		fields_get_flags(c, MESSAGE_REPORT_HELD | MESSAGE_REPORT_UNCERTAIN |
					    MESSAGE_REPORT_FORCED | MESSAGE_REPORT_UNKNOWN);
	promised->ranges = (uint32_t)rcursor_le(c, 4);
	promised->copy_id = rcursor_le(c, 8);
	promised->size = rcursor_le(c, 8);
	promised->revision = rcursor_le(c, 8);
	fields_get_view(c, &promised->seen);
	promised->copy_epoch = epoch_get(c);
	promised->source_id = rcursor_le(c, 8);
}

static void message_put_ranges(struct wcursor *c, const struct message *m)
{
	const struct message_ranges *ranges = &m->ranges;

	assert(ranges->count <= MESSAGE_RANGES_MAX);
	wcursor_le(c, ranges->index, 4);
	wcursor_le(c, ranges->total, 4);
	wcursor_u8(c, ranges->count);
	for (unsigned i = 0; i < ranges->count; i++) {
		wcursor_le(c, ranges->ranges[i].offset, 8);
		wcursor_le(c, ranges->ranges[i].len, 8);
	}
}

static void message_get_ranges(struct rcursor *c, struct message *m)
{
	struct message_ranges *ranges = &m->ranges;

	ranges->index = (uint32_t)rcursor_le(c, 4);
	ranges->total = (uint32_t)rcursor_le(c, 4);
	ranges->count = fields_get_below(c, MESSAGE_RANGES_MAX + 1);
	for (unsigned i = 0; i < ranges->count; i++) {
		struct mirror_range *range = &ranges->ranges[i];

		range->offset = rcursor_le(c, 8);
		range->len = rcursor_le(c, 8);
		/* limited, because the receiver may add offset and len */
		if (range->offset > MIRROR_SIZE_MAX || range->len > MIRROR_SIZE_MAX || !range->len)
			c->bad = true;
	}
}

static void message_put_resync(struct wcursor *c, const struct message *m)
{
	wcursor_u8(c, m->resync.source);
	wcursor_u8(c, m->resync.flags);
}

static void message_get_resync(struct rcursor *c, struct message *m)
{
	m->resync.source = fields_get_below(c, MIRROR_MEMBERS_MAX);
	m->resync.flags = fields_get_flags(c, MESSAGE_RESYNC_WHOLE);
}

static void message_put_view(struct wcursor *c, const struct message *m)
{
	wcursor_le(c, m->view.revision, 8);
	fields_put_view(c, &m->view.view);
}

static void message_get_view(struct rcursor *c, struct message *m)
{
	m->view.revision = rcursor_le(c, 8);
	fields_get_view(c, &m->view.view);
}

static void message_put_status(struct wcursor *c, const struct message *m)
{
	const struct message_status *status = &m->status;

	wcursor_u8(c, status->role);
	wcursor_u8(c, status->health);
	wcursor_u8(c, status->copy);
	wcursor_u8(c, (uint8_t)(status->flags & ~MESSAGE_STATUS_FINDINGS));
	wcursor_le(c, status->pid, 4);
	wcursor_le(c, status->size, 8);
	wcursor_le(c, status->flushes, 8);
	wcursor_le(c, status->acked, 8);
	wcursor_le(c, status->p50_us, 4);
	wcursor_le(c, status->p99_us, 4);
	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++) {
		const struct message_member *member = &status->members[i];

		wcursor_u8(c, member->copy);
		wcursor_u8(c, member->link);
		wcursor_u8(c, member->flow);
		wcursor_le(c, member->remaining, 8);
		wcursor_le(c, member->rate, 4);
		wcursor_le(c, member->p99_us, 4);
	}
	wcursor_u8(c, status->format);
}

static void message_get_status(struct rcursor *c, struct message *m)
{
	struct message_status *status = &m->status;

	status->role = fields_get_below(c, MIRROR_ROLE_COUNT);
	status->health = fields_get_below(c, MIRROR_HEALTH_COUNT);
	status->copy = fields_get_below(c, MIRROR_COPY_COUNT);
	status->flags = fields_get_flags(c, MESSAGE_STATUS_HELD | MESSAGE_STATUS_REGISTER |
						    MESSAGE_STATUS_WAITING | MESSAGE_STATUS_STUCK |
						    MESSAGE_STATUS_SILENT);
	status->pid = (uint32_t)rcursor_le(c, 4);
	status->size = rcursor_le(c, 8);
	status->flushes = rcursor_le(c, 8);
	status->acked = rcursor_le(c, 8);
	status->p50_us = (uint32_t)rcursor_le(c, 4);
	status->p99_us = (uint32_t)rcursor_le(c, 4);
	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++) {
		struct message_member *member = &status->members[i];

		member->copy = fields_get_below(c, MIRROR_COPY_COUNT);
		member->link = fields_get_below(c, MIRROR_LINK_COUNT);
		member->flow = fields_get_below(c, MIRROR_FLOW_COUNT);
		member->remaining = rcursor_le(c, 8);
		member->rate = (uint32_t)rcursor_le(c, 4);
		member->p99_us = (uint32_t)rcursor_le(c, 4);
	}
	status->format = rcursor_u8(c);
}

static void message_put_done(struct wcursor *c, const struct message *m)
{
	wcursor_u8(c, m->done.to);
	wcursor_u8(c, m->done.status);
	epoch_put(c, m->done.known);
}

static void message_get_done(struct rcursor *c, struct message *m)
{
	m->done.to = fields_get_below(c, MESSAGE_TYPE_END);
	m->done.status = fields_get_below(c, GREETING_STATUS_END);
	m->done.known = epoch_get(c);
}

static void message_put_reserve(struct wcursor *c, const struct message *m)
{
	wcursor_le(c, m->reserve.size, 8);
	wcursor_u8(c, m->reserve.state);
	wcursor_le(c, m->reserve.error, 2);
}

static void message_get_reserve(struct rcursor *c, struct message *m)
{
	struct message_reserve *reserve = &m->reserve;

	reserve->size = rcursor_le(c, 8);
	reserve->state = fields_get_below(c, MESSAGE_RESERVE_FAILED + 1);
	reserve->error = (uint16_t)rcursor_le(c, 2);
	if (!reserve->size || reserve->size % MIRROR_BLOCK || reserve->size > MIRROR_SIZE_MAX)
		c->bad = true;
}

static void message_put_clear(struct wcursor *c, const struct message *m)
{
	wcursor_le(c, m->clear.offset, 8);
	wcursor_le(c, m->clear.len, 4);
}

static void message_get_clear(struct rcursor *c, struct message *m)
{
	struct message_clear *clear = &m->clear;

	clear->offset = rcursor_le(c, 8);
	clear->len = (uint32_t)rcursor_le(c, 4);
	if (clear->offset % MIRROR_BLOCK || clear->offset > MIRROR_SIZE_MAX || !clear->len ||
	    clear->len % MIRROR_BLOCK || clear->len > MESSAGE_CLEAR_MAX)
		c->bad = true;
}

static void message_put_cleared(struct wcursor *c, const struct message *m)
{
	wcursor_u8(c, m->cleared.is_under_way);
	wcursor_le(c, m->cleared.blocks, 2);
	wcursor_le(c, m->cleared.error, 2);
	wcursor_le(c, m->cleared.offset, 8);
}

static void message_get_cleared(struct rcursor *c, struct message *m)
{
	struct message_cleared *cleared = &m->cleared;

	cleared->is_under_way = rcursor_bool(c, 1);
	cleared->blocks = (uint16_t)rcursor_le(c, 2);
	cleared->error = (uint16_t)rcursor_le(c, 2);
	cleared->offset = rcursor_le(c, 8);
	if (cleared->blocks > MESSAGE_CLEAR_MAX / MIRROR_BLOCK || cleared->offset % MIRROR_BLOCK ||
	    cleared->offset > MIRROR_SIZE_MAX || (cleared->offset && !cleared->error) ||
	    (cleared->is_under_way && (cleared->blocks || cleared->error)))
		c->bad = true;
}

struct message_codec {
	const char *name;
	/* NULL: the message has no body */
	void (*put)(struct wcursor *c, const struct message *m);
	void (*get)(struct rcursor *c, struct message *m);
};

static const struct message_codec message_codecs[MESSAGE_TYPE_END] = {
	[MESSAGE_PROVE] = {"PROVE", message_put_prove, message_get_prove},
	[MESSAGE_GRANT] = {"GRANT", message_put_grant, message_get_grant},
	[MESSAGE_PROMISE] = {.name = "PROMISE"},
	[MESSAGE_PROMISED] = {"PROMISED", message_put_promised, message_get_promised},
	[MESSAGE_GET_RANGES] = {"GET_RANGES", message_put_ranges, message_get_ranges},
	[MESSAGE_RANGES] = {"RANGES", message_put_ranges, message_get_ranges},
	[MESSAGE_RECORD_RANGES] = {"RECORD_RANGES", message_put_ranges, message_get_ranges},
	[MESSAGE_RESYNC_BEGIN] = {"RESYNC_BEGIN", message_put_resync, message_get_resync},
	[MESSAGE_RESYNC_END] = {.name = "RESYNC_END"},
	[MESSAGE_RETIRE] = {.name = "RETIRE"},
	[MESSAGE_VIEW] = {"VIEW", message_put_view, message_get_view},
	[MESSAGE_GET_STATUS] = {.name = "GET_STATUS"},
	[MESSAGE_STATUS] = {"STATUS", message_put_status, message_get_status},
	[MESSAGE_PING] = {.name = "PING"},
	[MESSAGE_PONG] = {.name = "PONG"},
	[MESSAGE_DONE] = {"DONE", message_put_done, message_get_done},
	[MESSAGE_RESERVE] = {"RESERVE", message_put_reserve, message_get_reserve},
	[MESSAGE_RESERVED] = {"RESERVED", message_put_reserve, message_get_reserve},
	[MESSAGE_CLEAR_ERRORS] = {"CLEAR_ERRORS", message_put_clear, message_get_clear},
	[MESSAGE_ERRORS_CLEARED] = {"ERRORS_CLEARED", message_put_cleared, message_get_cleared},
};

void message_encode(const struct message *m, unsigned version, uint8_t *buf)
{
	struct wcursor c = wcursor_init(buf, MESSAGE_SIZE);

	assert(m->type > 0 && m->type < MESSAGE_TYPE_END);
	wcursor_le(&c, MESSAGE_MAGIC, 4);
	wcursor_u8(&c, (uint8_t)version);
	wcursor_u8(&c, (uint8_t)m->type);
	wcursor_le(&c, 0, 2);
	wcursor_le(&c, m->id, 4);
	fields_put_uuid(&c, &m->uuid);
	epoch_put(&c, m->epoch);
	if (message_codecs[m->type].put)
		message_codecs[m->type].put(&c, m);
	/* A message of version 1 lacks this field, and its receiver refuses unknown flags. */
	if (version >= VERSION_FINDINGS && m->type == MESSAGE_STATUS)
		wcursor_u8(&c, m->status.flags & MESSAGE_STATUS_FINDINGS);
	version_put_tail(&c, version);
	assert(!c.bad);
	buf[MESSAGE_LENGTH_AT] = (uint8_t)wcursor_len(&c);
	buf[MESSAGE_LENGTH_AT + 1] = (uint8_t)(wcursor_len(&c) >> 8);
	fields_put_padding(&c);
}

/* Check that bytes beyond the message's length are zero, and cut them off. */
static void message_cut(struct rcursor *c, const uint8_t *bytes, size_t len)
{
	struct rcursor rest;

	if (len < MESSAGE_HEAD || len > MESSAGE_SIZE) {
		c->bad = true;
		return;
	}
	rest = rcursor_init(bytes + len, MESSAGE_SIZE - len);
	c->end = bytes + len;
	fields_get_padding(&rest);
	c->bad |= rest.bad;
}

int message_decode(const void *buf, size_t len, unsigned version, struct message *m)
{
	struct rcursor c = rcursor_init(buf, len);
	uint8_t type;

	memset(m, 0, sizeof(*m));
	if (len != MESSAGE_SIZE || rcursor_le(&c, 4) != MESSAGE_MAGIC)
		return -EPROTO;
	if (rcursor_u8(&c) != version)
		return -EPROTONOSUPPORT;
	type = fields_get_below(&c, MESSAGE_TYPE_END);
	message_cut(&c, buf, rcursor_le(&c, 2));
	if (c.bad || !type)
		return -EPROTO;
	m->type = (enum message_type)type;
	m->id = (uint32_t)rcursor_le(&c, 4);
	fields_get_uuid(&c, &m->uuid);
	m->epoch = epoch_get(&c);
	if (message_codecs[type].get)
		message_codecs[type].get(&c, m);
	if (version >= VERSION_FINDINGS && m->type == MESSAGE_STATUS)
		m->status.flags |= fields_get_flags(&c, MESSAGE_STATUS_FINDINGS);
	version_get_tail(&c, version);
	return c.bad || rcursor_left(&c) ? -EPROTO : 0;
}

const char *message_type_2str(unsigned type)
{
	return type > 0 && type < MESSAGE_TYPE_END ? message_codecs[type].name : "?";
}
