/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmem/wire/message.h"

#include <string.h>

#include "base/cursor.h"

static const char *const message_names[WIRE_TYPE_END] = {
	[WIRE_GREETING] = "GREETING", [WIRE_PROOF] = "PROOF",   [WIRE_PROVEN] = "PROVEN",
	[WIRE_CREATE] = "CREATE",     [WIRE_OPEN] = "OPEN",     [WIRE_SET_ATTR] = "SET_ATTR",
	[WIRE_LANES] = "LANES",       [WIRE_DEEP] = "DEEP",     [WIRE_CLOSE] = "CLOSE",
	[WIRE_REMOVE] = "REMOVE",     [WIRE_ANSWER] = "ANSWER",
};

const char *wire_type_name(unsigned type)
{
	return type < WIRE_TYPE_END && message_names[type] ? message_names[type] : "unknown";
}

static struct wcursor message_begin(uint8_t *buf)
{
	return wcursor_init(buf, WIRE_BODY_MAX);
}

/* Returns true if the body was long enough, and all of it was read. */
static bool message_end(const struct rcursor *c)
{
	return !c->bad && !rcursor_left(c);
}

static void message_put_text(struct wcursor *c, const char *text, size_t max)
{
	size_t len = strnlen(text, max);

	wcursor_le(c, len, 2);
	wcursor_bytes(c, text, len);
}

/*
 * text has room for max bytes and a NUL. A NUL inside the received text is refused, because it
 * would hide the rest of the text.
 */
static void message_get_text(struct rcursor *c, char *text, size_t max)
{
	size_t len = rcursor_le(c, 2);
	const uint8_t *at = len <= max ? rcursor_bytes(c, len) : NULL;

	text[0] = '\0';
	if (!at || memchr(at, 0, len)) {
		c->bad = true;
		return;
	}
	memcpy(text, at, len);
	text[len] = '\0';
}

static void message_get_bytes(struct rcursor *c, void *dst, size_t len)
{
	const uint8_t *at = rcursor_bytes(c, len);

	if (at)
		memcpy(dst, at, len);
}

static void message_put_attr(struct wcursor *c, const struct wire_attr *a)
{
	wcursor_bytes(c, a->signature, sizeof(a->signature));
	wcursor_le(c, a->major, 4);
	wcursor_le(c, a->compat_features, 4);
	wcursor_le(c, a->incompat_features, 4);
	wcursor_le(c, a->ro_compat_features, 4);
	wcursor_bytes(c, a->poolset_uuid, 16);
	wcursor_bytes(c, a->uuid, 16);
	wcursor_bytes(c, a->next_uuid, 16);
	wcursor_bytes(c, a->prev_uuid, 16);
	wcursor_bytes(c, a->user_flags, 16);
}

static void message_get_attr(struct rcursor *c, struct wire_attr *a)
{
	message_get_bytes(c, a->signature, sizeof(a->signature));
	a->major = (uint32_t)rcursor_le(c, 4);
	a->compat_features = (uint32_t)rcursor_le(c, 4);
	a->incompat_features = (uint32_t)rcursor_le(c, 4);
	a->ro_compat_features = (uint32_t)rcursor_le(c, 4);
	message_get_bytes(c, a->poolset_uuid, 16);
	message_get_bytes(c, a->uuid, 16);
	message_get_bytes(c, a->next_uuid, 16);
	message_get_bytes(c, a->prev_uuid, 16);
	message_get_bytes(c, a->user_flags, 16);
}

/* Write a flag and, if the flag is set, the attributes. */
static void message_put_optional_attr(struct wcursor *c, bool has, const struct wire_attr *a)
{
	wcursor_u8(c, has);
	if (has)
		message_put_attr(c, a);
}

static bool message_get_optional_attr(struct rcursor *c, struct wire_attr *a)
{
	bool has = rcursor_bool(c, 1);

	if (has)
		message_get_attr(c, a);
	return has;
}

size_t wire_greeting_encode(const struct wire_greeting *m, uint8_t *buf)
{
	struct wcursor c = message_begin(buf);

	wcursor_le(&c, m->flags, 4);
	wcursor_le(&c, m->error, 4);
	wcursor_bytes(&c, m->nonce, WIRE_NONCE);
	message_put_text(&c, m->text, WIRE_TEXT_MAX);
	return wcursor_len(&c);
}

bool wire_greeting_decode(const uint8_t *buf, size_t len, struct wire_greeting *m)
{
	struct rcursor c = rcursor_init(buf, len);

	memset(m, 0, sizeof(*m));
	m->flags = (uint32_t)rcursor_le(&c, 4);
	m->error = (uint32_t)rcursor_le(&c, 4);
	message_get_bytes(&c, m->nonce, WIRE_NONCE);
	message_get_text(&c, m->text, WIRE_TEXT_MAX);
	return message_end(&c);
}

size_t wire_proof_encode(const struct wire_proof *m, uint8_t *buf)
{
	struct wcursor c = message_begin(buf);

	wcursor_bytes(&c, m->nonce, WIRE_NONCE);
	wcursor_bytes(&c, m->mac, WIRE_MAC);
	return wcursor_len(&c);
}

bool wire_proof_decode(const uint8_t *buf, size_t len, struct wire_proof *m)
{
	struct rcursor c = rcursor_init(buf, len);

	memset(m, 0, sizeof(*m));
	message_get_bytes(&c, m->nonce, WIRE_NONCE);
	message_get_bytes(&c, m->mac, WIRE_MAC);
	return message_end(&c);
}

size_t wire_proven_encode(const struct wire_proven *m, uint8_t *buf)
{
	struct wcursor c = message_begin(buf);

	wcursor_le(&c, m->error, 4);
	wcursor_bytes(&c, m->mac, WIRE_MAC);
	message_put_text(&c, m->text, WIRE_TEXT_MAX);
	return wcursor_len(&c);
}

bool wire_proven_decode(const uint8_t *buf, size_t len, struct wire_proven *m)
{
	struct rcursor c = rcursor_init(buf, len);

	memset(m, 0, sizeof(*m));
	m->error = (uint32_t)rcursor_le(&c, 4);
	message_get_bytes(&c, m->mac, WIRE_MAC);
	message_get_text(&c, m->text, WIRE_TEXT_MAX);
	return message_end(&c);
}

size_t wire_pool_request_encode(const struct wire_pool_request *m, uint8_t *buf)
{
	struct wcursor c = message_begin(buf);

	wcursor_le(&c, m->pool_size, 8);
	wcursor_le(&c, m->lanes, 4);
	wcursor_le(&c, m->features, 4);
	wcursor_u8(&c, m->method);
	message_put_optional_attr(&c, m->has_attr, &m->attr);
	message_put_text(&c, m->name, WIRE_NAME_MAX);
	return wcursor_len(&c);
}

bool wire_pool_request_decode(const uint8_t *buf, size_t len, struct wire_pool_request *m)
{
	struct rcursor c = rcursor_init(buf, len);

	memset(m, 0, sizeof(*m));
	m->pool_size = rcursor_le(&c, 8);
	m->lanes = (uint32_t)rcursor_le(&c, 4);
	m->features = (uint32_t)rcursor_le(&c, 4);
	m->method = rcursor_u8(&c);
	m->has_attr = message_get_optional_attr(&c, &m->attr);
	message_get_text(&c, m->name, WIRE_NAME_MAX);
	return message_end(&c) && m->method < WIRE_METHOD_END;
}

size_t wire_set_attr_encode(const struct wire_set_attr *m, uint8_t *buf)
{
	struct wcursor c = message_begin(buf);

	message_put_optional_attr(&c, m->has_attr, &m->attr);
	return wcursor_len(&c);
}

bool wire_set_attr_decode(const uint8_t *buf, size_t len, struct wire_set_attr *m)
{
	struct rcursor c = rcursor_init(buf, len);

	memset(m, 0, sizeof(*m));
	m->has_attr = message_get_optional_attr(&c, &m->attr);
	return message_end(&c);
}

size_t wire_lanes_encode(const struct wire_lanes *m, uint8_t *buf)
{
	struct wcursor c = message_begin(buf);

	wcursor_le(&c, m->first, 4);
	wcursor_le(&c, m->count, 4);
	return wcursor_len(&c);
}

bool wire_lanes_decode(const uint8_t *buf, size_t len, struct wire_lanes *m)
{
	struct rcursor c = rcursor_init(buf, len);

	m->first = (uint32_t)rcursor_le(&c, 4);
	m->count = (uint32_t)rcursor_le(&c, 4);
	return message_end(&c);
}

size_t wire_deep_encode(const struct wire_deep *m, uint8_t *buf)
{
	struct wcursor c = message_begin(buf);

	wcursor_le(&c, m->offset, 8);
	wcursor_le(&c, m->length, 8);
	return wcursor_len(&c);
}

bool wire_deep_decode(const uint8_t *buf, size_t len, struct wire_deep *m)
{
	struct rcursor c = rcursor_init(buf, len);

	m->offset = rcursor_le(&c, 8);
	m->length = rcursor_le(&c, 8);
	return message_end(&c);
}

size_t wire_close_encode(const struct wire_close *m, uint8_t *buf)
{
	struct wcursor c = message_begin(buf);

	wcursor_le(&c, m->flags, 4);
	return wcursor_len(&c);
}

bool wire_close_decode(const uint8_t *buf, size_t len, struct wire_close *m)
{
	struct rcursor c = rcursor_init(buf, len);

	m->flags = (uint32_t)rcursor_le(&c, 4);
	return message_end(&c);
}

size_t wire_remove_encode(const struct wire_remove *m, uint8_t *buf)
{
	struct wcursor c = message_begin(buf);

	wcursor_le(&c, m->flags, 4);
	message_put_text(&c, m->name, WIRE_NAME_MAX);
	return wcursor_len(&c);
}

bool wire_remove_decode(const uint8_t *buf, size_t len, struct wire_remove *m)
{
	struct rcursor c = rcursor_init(buf, len);

	memset(m, 0, sizeof(*m));
	m->flags = (uint32_t)rcursor_le(&c, 4);
	message_get_text(&c, m->name, WIRE_NAME_MAX);
	return message_end(&c);
}

static void message_put_pool_answer(struct wcursor *c, const struct wire_pool_answer *m)
{
	wcursor_le(c, m->lanes, 4);
	wcursor_le(c, m->features, 4);
	wcursor_u8(c, m->method);
	wcursor_u8(c, m->durability);
	wcursor_le(c, m->port, 2);
	message_put_text(c, m->addr, WIRE_ADDR_MAX);
	wcursor_bytes(c, m->lane_key, WIRE_KEY);
	message_put_optional_attr(c, m->has_headers, &m->attr);
}

static void message_get_pool_answer(struct rcursor *c, struct wire_pool_answer *m)
{
	m->lanes = (uint32_t)rcursor_le(c, 4);
	m->features = (uint32_t)rcursor_le(c, 4);
	m->method = rcursor_u8(c);
	m->durability = rcursor_u8(c);
	m->port = (uint16_t)rcursor_le(c, 2);
	message_get_text(c, m->addr, WIRE_ADDR_MAX);
	message_get_bytes(c, m->lane_key, WIRE_KEY);
	m->has_headers = message_get_optional_attr(c, &m->attr);
	if (m->method == WIRE_METHOD_ANY || m->method >= WIRE_METHOD_END || !m->lanes)
		c->bad = true;
}

size_t wire_answer_encode(const struct wire_answer *m, uint8_t *buf)
{
	struct wcursor c = message_begin(buf);

	wcursor_u8(&c, m->request);
	wcursor_u8(&c, m->status);
	wcursor_le(&c, m->error, 4);
	message_put_text(&c, m->text, WIRE_TEXT_MAX);
	if (m->status == WIRE_OK && (m->request == WIRE_CREATE || m->request == WIRE_OPEN))
		message_put_pool_answer(&c, &m->pool);
	if (m->status == WIRE_OK && m->request == WIRE_LANES)
		wcursor_le(&c, m->lanes.port, 2);
	return wcursor_len(&c);
}

bool wire_answer_decode(const uint8_t *buf, size_t len, struct wire_answer *m)
{
	struct rcursor c = rcursor_init(buf, len);

	memset(m, 0, sizeof(*m));
	m->request = rcursor_u8(&c);
	m->status = rcursor_u8(&c);
	m->error = (uint32_t)rcursor_le(&c, 4);
	message_get_text(&c, m->text, WIRE_TEXT_MAX);
	if (m->status == WIRE_OK && (m->request == WIRE_CREATE || m->request == WIRE_OPEN))
		message_get_pool_answer(&c, &m->pool);
	if (m->status == WIRE_OK && m->request == WIRE_LANES)
		m->lanes.port = (uint16_t)rcursor_le(&c, 2);
	return message_end(&c) && m->status < WIRE_STATUS_END;
}
