/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/wire/greeting.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "mirror/wire/fields.h"

#define GREETING_MAGIC 0x4d494d52u /* "RMIM" */
#define REPLY_MAGIC    0x52494d52u /* "RMIR" */

#define GREETING_LENGTH_AT 6

/* Writes magic and versions, as in every greeting and reply. The length is known only at the
 * end. */
static void greeting_begin(struct wcursor *c, uint32_t magic, struct mirror_versions versions)
{
	if (!versions.newest)
		versions = version_ours();
	wcursor_le(c, magic, 4);
	wcursor_u8(c, versions.newest);
	wcursor_u8(c, versions.lowest);
	wcursor_u8(c, 0);
}

static size_t greeting_finish(struct wcursor *c, unsigned version)
{
	version_put_tail(c, version);
	assert(!c->bad);
	c->start[GREETING_LENGTH_AT] = (uint8_t)wcursor_len(c);
	fields_put_padding(c);
	return wcursor_len(c);
}

/* Read magic, versions and kind. Bytes beyond the length must be zeros. A newer program may have
 * unknown bytes before that. */
static int greeting_open(struct rcursor *c, uint32_t magic, struct mirror_versions *versions,
			 uint8_t *kind)
{
	struct rcursor rest = *c;
	size_t size = rcursor_left(c), len;

	if (rcursor_le(c, 4) != magic)
		return -EPROTO;
	versions->newest = rcursor_u8(c);
	versions->lowest = rcursor_u8(c);
	len = rcursor_u8(c);
	*kind = rcursor_u8(c);
	if (c->bad || !version_is_possible(*versions))
		return -EPROTO;
	if (!version_agree(*versions, version_ours()))
		return -EPROTONOSUPPORT;
	if (len > size)
		return -EPROTO;
	rcursor_bytes(&rest, len);
	fields_get_padding(&rest);
	c->end -= size - len;
	c->bad |= rest.bad || c->p > c->end;
	return c->bad ? -EPROTO : 0;
}

/* Check the end: all fields of this version were read, and only a newer version may have more. */
static int greeting_close(struct rcursor *c, struct mirror_versions versions)
{
	version_get_tail(c, versions.newest);
	if (rcursor_left(c) && versions.newest <= version_newest())
		c->bad = true;
	return c->bad ? -EPROTO : 0;
}

size_t greeting_encode(const struct greeting *g, unsigned version, uint8_t *buf)
{
	struct wcursor c = wcursor_init(buf, GREETING_SIZE);

	greeting_begin(&c, GREETING_MAGIC, g->versions);
	wcursor_u8(&c, g->kind);
	wcursor_u8(&c, g->from);
	wcursor_u8(&c, g->to);
	wcursor_le(&c, 0, 2);
	fields_put_uuid(&c, &g->uuid);
	epoch_put(&c, g->epoch);
	wcursor_le(&c, g->copy_id, 8);
	return greeting_finish(&c, version);
}

int greeting_decode(const void *buf, size_t len, struct greeting *g)
{
	struct rcursor c = rcursor_init(buf, len);
	int rc;

	memset(g, 0, sizeof(*g));
	rc = greeting_open(&c, GREETING_MAGIC, &g->versions, &g->kind);
	if (rc)
		return rc;
	g->from = fields_get_slot(&c);
	g->to = fields_get_below(&c, MIRROR_MEMBERS_MAX);
	c.bad |= rcursor_le(&c, 2) != 0;
	fields_get_uuid(&c, &g->uuid);
	g->epoch = epoch_get(&c);
	g->copy_id = rcursor_le(&c, 8);
	/* Only a connection of kind OBSERVE has no epoch. */
	if (!g->kind || g->kind >= GREETING_KIND_END ||
	    (g->kind == GREETING_OBSERVE) != !g->epoch.number)
		c.bad = true;
	if (g->kind != GREETING_OBSERVE && g->from == MIRROR_NO_SLOT)
		c.bad = true;
	return greeting_close(&c, g->versions);
}

size_t greeting_reply_encode(const struct greeting_reply *reply, unsigned version, uint8_t *buf)
{
	struct wcursor c = wcursor_init(buf, GREETING_REPLY);

	greeting_begin(&c, REPLY_MAGIC, reply->versions);
	wcursor_u8(&c, reply->status);
	wcursor_u8(&c, reply->has_secret);
	wcursor_le(&c, 0, 3);
	epoch_put(&c, reply->known);
	wcursor_bytes(&c, reply->nonce, GREETING_NONCE);
	return greeting_finish(&c, version);
}

int greeting_reply_decode(const void *buf, size_t len, struct greeting_reply *reply)
{
	struct rcursor c = rcursor_init(buf, len);
	int rc;

	memset(reply, 0, sizeof(*reply));
	rc = greeting_open(&c, REPLY_MAGIC, &reply->versions, &reply->status);
	if (rc)
		return rc;
	reply->has_secret = rcursor_bool(&c, 1);
	c.bad |= rcursor_le(&c, 3) != 0 || reply->status >= GREETING_STATUS_END;
	reply->known = epoch_get(&c);
	fields_get_bytes(&c, reply->nonce, GREETING_NONCE);
	return greeting_close(&c, reply->versions);
}

const char *greeting_status_2str(unsigned status)
{
	static const char *const words[GREETING_STATUS_END] = {
		[GREETING_OK] = "accepted",
		[GREETING_BAD_VERSION] = "it has another version of the protocol",
		[GREETING_BAD_REQUEST] = "the request is not valid there",
		[GREETING_NO_SET] = "it has no copy of this set",
		[GREETING_NOT_MEMBER] = "its copy is not that member's",
		[GREETING_EPOCH] = "it has promised a higher epoch",
		[GREETING_SECRET_WRONG] =
			"the secrets differ, or its secret file cannot be used: rpmirror status "
			"there names the file and its mode",
		[GREETING_HELD] = "a process there still maps the copy",
		[GREETING_BUSY] = "it is busy",
		[GREETING_COPY_FAILED] = "the copy there has failed",
		[GREETING_WRONG_COPY] =
			("the copy there is not the one that is configured: 'rpmirror explain' on "
			 "its host shows how to replace it"),
		[GREETING_FULL] = "its records are full",
		[GREETING_IO] = "it could not write its records",
		[GREETING_SMALLER] = "its copy has not grown to the set's size yet",
		[GREETING_SPLIT] = "it has seen a state that the register lacks: the set is split",
	};

	return status < GREETING_STATUS_END ? words[status] : "an unknown reason";
}
