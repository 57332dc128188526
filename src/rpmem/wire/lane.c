/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmem/wire/lane.h"

#include <string.h>

#include "base/cursor.h"

#define LANE_MAGIC    0x4c50u /* "PL" */
#define LANE_VERSION  1
#define PERSIST_MAGIC 0x50504c52u /* "RLPP" */

#define LABEL_LANE "rpmem lane     1"
_Static_assert(sizeof(LABEL_LANE) - 1 == MAC_LABEL, "length");

enum lane_role { LANE_INITIATOR = 'I', LANE_DAEMON = 'D' };

static void lane_mac(const struct wire_key *key, enum lane_role role, uint16_t port,
		     const uint8_t *bytes, size_t len, uint8_t mac[WIRE_MAC])
{
	uint8_t head[3] = {(uint8_t)role, (uint8_t)port, (uint8_t)(port >> 8)};
	const struct mac_part parts[] = {{head, sizeof(head)}, {bytes, len}};

	mac_make(key->bytes, LABEL_LANE, parts, 2, mac);
}

/* Append the MAC of all bytes written so far. */
static void lane_put_mac(struct wcursor *c, const struct wire_key *key, enum lane_role role,
			 uint16_t port)
{
	uint8_t mac[WIRE_MAC];

	lane_mac(key, role, port, c->start, wcursor_len(c), mac);
	wcursor_bytes(c, mac, sizeof(mac));
}

static bool lane_check_mac(struct rcursor *c, const struct wire_key *key, enum lane_role role,
			   uint16_t port, const uint8_t *start)
{
	size_t covered = (size_t)(c->p - start);
	const uint8_t *sent = rcursor_bytes(c, WIRE_MAC);
	uint8_t mac[WIRE_MAC];

	if (c->bad)
		return false;
	lane_mac(key, role, port, start, covered, mac);
	return mac_is_equal(sent, mac);
}

static void lane_put_head(struct wcursor *c, uint32_t lane, uint8_t status)
{
	wcursor_le(c, LANE_MAGIC, 2);
	wcursor_u8(c, LANE_VERSION);
	wcursor_u8(c, status);
	wcursor_le(c, lane, 4);
}

static bool lane_get_head(struct rcursor *c, uint32_t *lane, uint8_t *status)
{
	bool ours = rcursor_le(c, 2) == LANE_MAGIC && rcursor_u8(c) == LANE_VERSION;

	*status = rcursor_u8(c);
	*lane = (uint32_t)rcursor_le(c, 4);
	return ours && !c->bad;
}

size_t wire_lane_request_encode(const struct wire_key *key, uint32_t lane, uint16_t port,
				uint8_t *buf)
{
	struct wcursor c = wcursor_init(buf, WIRE_LANE_REQUEST);

	lane_put_head(&c, lane, WIRE_LANE_OK);
	wcursor_le(&c, 0, 4); /* reserved for a later version */
	lane_put_mac(&c, key, LANE_INITIATOR, port);
	return wcursor_len(&c);
}

bool wire_lane_request_decode(const struct wire_key *key, uint16_t port, const uint8_t *buf,
			      size_t len, uint32_t *lane)
{
	struct rcursor c = rcursor_init(buf, len);
	uint8_t status;

	if (!lane_get_head(&c, lane, &status))
		return false;
	rcursor_le(&c, 4);
	return lane_check_mac(&c, key, LANE_INITIATOR, port, buf);
}

static void lane_put_descriptor(struct wcursor *c, const uint8_t *bytes, uint8_t len)
{
	wcursor_u8(c, len);
	wcursor_bytes(c, bytes, len);
}

static void lane_get_descriptor(struct rcursor *c, uint8_t *bytes, uint8_t *len)
{
	const uint8_t *at;

	*len = rcursor_u8(c);
	at = *len <= WIRE_DESC_MAX ? rcursor_bytes(c, *len) : NULL;
	if (at)
		memcpy(bytes, at, *len);
	else
		c->bad = true;
}

size_t wire_lane_reply_encode(const struct wire_key *key, uint32_t lane, uint16_t port,
			      const struct wire_lane_reply *reply, uint8_t *buf)
{
	struct wcursor c = wcursor_init(buf, WIRE_LANE_REPLY);

	lane_put_head(&c, lane, reply->status);
	lane_put_descriptor(&c, reply->mr, reply->mr_len);
	lane_put_descriptor(&c, reply->pcfg, reply->pcfg_len);
	lane_put_mac(&c, key, LANE_DAEMON, port);
	return wcursor_len(&c);
}

bool wire_lane_reply_decode(const struct wire_key *key, uint32_t lane, uint16_t port,
			    const uint8_t *buf, size_t len, struct wire_lane_reply *reply)
{
	struct rcursor c = rcursor_init(buf, len);
	uint32_t which;

	memset(reply, 0, sizeof(*reply));
	if (!lane_get_head(&c, &which, &reply->status) || which != lane)
		return false;
	lane_get_descriptor(&c, reply->mr, &reply->mr_len);
	lane_get_descriptor(&c, reply->pcfg, &reply->pcfg_len);
	return !c.bad && reply->status < WIRE_LANE_STATUS_END &&
	       lane_check_mac(&c, key, LANE_DAEMON, port, buf);
}

size_t wire_persist_encode(const struct wire_persist *m, uint8_t *buf)
{
	struct wcursor c = wcursor_init(buf, WIRE_PERSIST_REQUEST);

	wcursor_le(&c, PERSIST_MAGIC, 4);
	wcursor_le(&c, m->id, 4);
	wcursor_le(&c, m->offset, 8);
	wcursor_le(&c, m->length, 8);
	return wcursor_len(&c);
}

bool wire_persist_decode(const uint8_t *buf, size_t len, struct wire_persist *m)
{
	struct rcursor c = rcursor_init(buf, len);
	bool ours = rcursor_le(&c, 4) == PERSIST_MAGIC;

	m->id = (uint32_t)rcursor_le(&c, 4);
	m->offset = rcursor_le(&c, 8);
	m->length = rcursor_le(&c, 8);
	return ours && !c.bad && !rcursor_left(&c);
}

size_t wire_persisted_encode(const struct wire_persisted *m, uint8_t *buf)
{
	struct wcursor c = wcursor_init(buf, WIRE_PERSIST_ANSWER);

	wcursor_le(&c, PERSIST_MAGIC, 4);
	wcursor_le(&c, m->id, 4);
	wcursor_le(&c, m->error, 4);
	return wcursor_len(&c);
}

bool wire_persisted_decode(const uint8_t *buf, size_t len, struct wire_persisted *m)
{
	struct rcursor c = rcursor_init(buf, len);
	bool ours = rcursor_le(&c, 4) == PERSIST_MAGIC;

	m->id = (uint32_t)rcursor_le(&c, 4);
	m->error = (uint32_t)rcursor_le(&c, 4);
	return ours && !c.bad && !rcursor_left(&c);
}
