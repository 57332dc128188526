/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/wire/greeting.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "mirror/wire/fields.h"

#define GREETING_MAGIC 0x4d494d52u /* "RMIM" */
#define REPLY_MAGIC    0x52494d52u /* "RMIR" */

size_t greeting_encode(const struct greeting *g, uint8_t *buf)
{
	struct wcursor c = wcursor_init(buf, GREETING_SIZE);

	wcursor_le(&c, GREETING_MAGIC, 4);
	wcursor_u8(&c, GREETING_VERSION);
	wcursor_u8(&c, g->kind);
	wcursor_u8(&c, g->from);
	wcursor_u8(&c, g->to);
	fields_put_uuid(&c, &g->uuid);
	epoch_put(&c, g->epoch);
	wcursor_le(&c, g->copy_id, 8);
	assert(!c.bad);
	return wcursor_len(&c);
}

/* Magic and version, the same in both. */
static int greeting_open(struct rcursor *c, uint32_t magic)
{
	if (rcursor_le(c, 4) != magic)
		return -EPROTO;
	if (rcursor_u8(c) != GREETING_VERSION)
		return c->bad ? -EPROTO : -EPROTONOSUPPORT;
	return 0;
}

int greeting_decode(const void *buf, size_t len, struct greeting *g)
{
	struct rcursor c = rcursor_init(buf, len);
	int rc = greeting_open(&c, GREETING_MAGIC);

	memset(g, 0, sizeof(*g));
	if (rc)
		return rc;
	g->kind = fields_get_below(&c, GREETING_KIND_END);
	g->from = fields_get_slot(&c);
	g->to = fields_get_below(&c, MIRROR_MEMBERS_MAX);
	fields_get_uuid(&c, &g->uuid);
	g->epoch = epoch_get(&c);
	g->copy_id = rcursor_le(&c, 8);
	fields_get_padding(&c);
	/* Only who observes needs no epoch, and has none. */
	if (!g->kind || (g->kind == GREETING_OBSERVE) != !g->epoch.number)
		c.bad = true;
	if (g->kind != GREETING_OBSERVE && g->from == MIRROR_NOBODY)
		c.bad = true;
	return c.bad ? -EPROTO : 0;
}

size_t greeting_reply_encode(const struct greeting_reply *reply, uint8_t *buf)
{
	struct wcursor c = wcursor_init(buf, GREETING_REPLY);

	wcursor_le(&c, REPLY_MAGIC, 4);
	wcursor_u8(&c, GREETING_VERSION);
	wcursor_u8(&c, reply->status);
	wcursor_u8(&c, reply->has_secret);
	wcursor_u8(&c, 0);
	epoch_put(&c, reply->known);
	wcursor_bytes(&c, reply->nonce, GREETING_NONCE);
	assert(!c.bad);
	return wcursor_len(&c);
}

int greeting_reply_decode(const void *buf, size_t len, struct greeting_reply *reply)
{
	struct rcursor c = rcursor_init(buf, len);
	int rc = greeting_open(&c, REPLY_MAGIC);

	memset(reply, 0, sizeof(*reply));
	if (rc)
		return rc;
	reply->status = fields_get_below(&c, GREETING_STATUS_END);
	reply->has_secret = fields_get_bool(&c);
	fields_get_below(&c, 1);
	reply->known = epoch_get(&c);
	fields_get_bytes(&c, reply->nonce, GREETING_NONCE);
	fields_get_padding(&c);
	return c.bad ? -EPROTO : 0;
}

const char *greeting_status_2str(unsigned status)
{
	static const char *const words[GREETING_STATUS_END] = {
		[GREETING_OK] = "accepted",
		[GREETING_BAD_VERSION] = "it speaks another version of the protocol",
		[GREETING_BAD_REQUEST] = "the request makes no sense there",
		[GREETING_NO_SET] = "it has no copy of this set",
		[GREETING_NOT_MEMBER] = "its copy is not that member's",
		[GREETING_EPOCH] = "it obeys a higher epoch",
		[GREETING_SECRET_WRONG] = "the secrets differ",
		[GREETING_HELD] = "a process there still maps the copy",
		[GREETING_BUSY] = "it is busy",
		[GREETING_COPY_FAILED] = "the copy there has failed",
		[GREETING_WRONG_COPY] =
			("the copy there is not the one that is configured: 'rpmirror explain' on "
			 "its host says how to replace it"),
		[GREETING_FULL] = "there is no room in its records",
		[GREETING_IO] = "it could not write its records",
		[GREETING_SMALLER] = "its copy has not grown to the set's size yet",
		[GREETING_SPLIT] = "it has seen what the register has not: the set is split",
	};

	return status < GREETING_STATUS_END ? words[status] : "an unknown reason";
}
