/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/core/record.h"

#include <errno.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/cursor.h"
#include "mirror/core/epoch.h"
#include "mirror/core/version.h"

#define RECORD_MAGIC "RPMRECRD"
#define RECORD_HEAD  16 /* magic, format, length */
#define RECORD_SUM   4

static bool record_text_is_good(const char *text, size_t size)
{
	size_t len = strnlen(text, size);

	return len > 0 && len < size;
}

static const char *record_check_member(const struct mirror_config *config, unsigned slot)
{
	const struct mirror_member *member = &config->members[slot];

	if (!record_text_is_good(member->name, sizeof(member->name)) ||
	    !record_text_is_good(member->host, sizeof(member->host)) ||
	    !record_text_is_good(member->path, sizeof(member->path)))
		return "a member's name, host or path is empty or does not end";
	for (unsigned i = 0; i < slot; i++) {
		if (!config->members[i].id)
			continue;
		if (config->members[i].id == member->id)
			return "two members have the same copy";
		if (!strcmp(config->members[i].name, member->name))
			return "two members have the same name";
	}
	return NULL;
}

static const char *record_check_config(const struct mirror_config *config)
{
	if (!version_is_known(config->format))
		return "its format is not one of this program's";
	if (!record_text_is_good(config->set, sizeof(config->set)))
		return "the set's name is empty or does not end";
	if (!config->size || config->size % MIRROR_BLOCK || config->size > MIRROR_SIZE_MAX)
		return "the size is zero, too large or not in whole blocks";
	if (!config->min_copies || config->min_copies > MIRROR_MEMBERS_MAX)
		return "min_copies is not 1 to 8";
	if (config->lonely > MIRROR_LONELY_MANUAL)
		return "lonely has no known value";
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		const char *why =
			config->members[slot].id ? record_check_member(config, slot) : NULL;

		if (why)
			return why;
	}
	return NULL;
}

const char *record_check(const struct mirror_record *rec)
{
	mirror_mask members = mirror_config_members(&rec->config);
	const struct mirror_view *view = &rec->view;

	if (view->phase > MIRROR_PHASE_SERVING)
		return "the phase has no known value";
	if ((view->primary == MIRROR_NO_SLOT) != (view->phase == MIRROR_PHASE_NONE))
		return "a phase without a primary, or a primary without a phase";
	if (view->primary != MIRROR_NO_SLOT &&
	    (view->primary >= MIRROR_MEMBERS_MAX || !(members & MIRROR_BIT(view->primary))))
		return "the primary is no member";
	if (view->insync & ~members)
		return "a slot without a member is in-sync";
	if (rec->history_count > MIRROR_HISTORY)
		return "the history is too long";
	return record_check_config(&rec->config);
}

static void record_put_text(struct wcursor *c, const char *text)
{
	size_t len = strlen(text);

	wcursor_le(c, len, 2);
	wcursor_bytes(c, text, len);
}

/* Read a text. The cursor becomes bad if the text does not fit, or has a NUL inside. */
static void record_get_text(struct rcursor *c, char *text, size_t size)
{
	size_t len = (size_t)rcursor_le(c, 2);
	const uint8_t *bytes = len < size ? rcursor_bytes(c, len) : NULL;

	if (!bytes || memchr(bytes, '\0', len)) {
		c->bad = true;
		return;
	}
	memcpy(text, bytes, len);
}

static void record_put_config(struct wcursor *c, const struct mirror_config *config)
{
	wcursor_le(c, config->number, 8);
	wcursor_bytes(c, config->uuid.bytes, sizeof(config->uuid.bytes));
	record_put_text(c, config->set);
	wcursor_le(c, config->size, 8);
	wcursor_le(c, config->address, 8);
	wcursor_le(c, config->min_copies, 4);
	wcursor_u8(c, (uint8_t)config->lonely);
	wcursor_le(c, config->lease_ms, 4);
	wcursor_le(c, config->replica_timeout_ms, 4);
	wcursor_le(c, config->slow_ms, 4);
	wcursor_le(c, config->holdoff_ms, 4);
	wcursor_le(c, config->blocked_ms, 4);
	wcursor_u8(c, config->local_error_continues);
	wcursor_u8(c, mirror_config_members(config));
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		const struct mirror_member *member = &config->members[slot];

		if (!member->id)
			continue;
		wcursor_le(c, member->id, 8);
		record_put_text(c, member->name);
		record_put_text(c, member->host);
		wcursor_le(c, member->port, 2);
		record_put_text(c, member->path);
	}
}

static void record_get_member(struct rcursor *c, struct mirror_member *member)
{
	member->id = rcursor_le(c, 8);
	c->bad |= !member->id;
	record_get_text(c, member->name, sizeof(member->name));
	record_get_text(c, member->host, sizeof(member->host));
	member->port = (uint16_t)rcursor_le(c, 2);
	record_get_text(c, member->path, sizeof(member->path));
}

static void record_get_config(struct rcursor *c, struct mirror_config *config)
{
	const uint8_t *uuid;
	mirror_mask members;

	config->number = rcursor_le(c, 8);
	uuid = rcursor_bytes(c, sizeof(config->uuid.bytes));
	if (uuid)
		memcpy(config->uuid.bytes, uuid, sizeof(config->uuid.bytes));
	record_get_text(c, config->set, sizeof(config->set));
	config->size = rcursor_le(c, 8);
	config->address = rcursor_le(c, 8);
	config->min_copies = (uint32_t)rcursor_le(c, 4);
	config->lonely = rcursor_u8(c);
	config->lease_ms = (uint32_t)rcursor_le(c, 4);
	config->replica_timeout_ms = (uint32_t)rcursor_le(c, 4);
	config->slow_ms = (uint32_t)rcursor_le(c, 4);
	config->holdoff_ms = (uint32_t)rcursor_le(c, 4);
	config->blocked_ms = (uint32_t)rcursor_le(c, 4);
	config->local_error_continues = rcursor_bool(c, 1);
	members = rcursor_u8(c);
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (members & MIRROR_BIT(slot))
			record_get_member(c, &config->members[slot]);
}

static void record_put_view(struct wcursor *c, const struct mirror_view *view)
{
	epoch_put(c, view->epoch);
	wcursor_le(c, view->seq, 8);
	wcursor_u8(c, (uint8_t)view->phase);
	wcursor_u8(c, view->primary);
	wcursor_u8(c, view->clean);
	wcursor_u8(c, view->forced);
	wcursor_u8(c, view->insync);
}

static void record_get_view(struct rcursor *c, struct mirror_view *view)
{
	view->epoch = epoch_get(c);
	view->seq = rcursor_le(c, 8);
	view->phase = rcursor_u8(c);
	view->primary = rcursor_u8(c);
	view->clean = rcursor_bool(c, 1);
	view->forced = rcursor_bool(c, 1);
	view->insync = rcursor_u8(c);
}

/* Fill in the record's length, which is known only at the end. Returns the length. */
static size_t record_finish(struct wcursor *c)
{
	size_t len = wcursor_len(c) + RECORD_SUM;
	struct wcursor at = wcursor_init(c->start + 12, 4);

	if (c->bad || (size_t)(c->end - c->p) < RECORD_SUM)
		return 0;
	wcursor_le(&at, len, 4);
	wcursor_le(c, crc32c_final(crc32c_update(CRC32C_INIT, c->start, len - RECORD_SUM)), 4);
	return len;
}

/* Write the fields that versions after version 1 have added. */
static void record_put_ended(struct wcursor *c, const struct mirror_record *rec)
{
	mirror_mask known = 0;

	for (uint32_t i = 0; i < rec->history_count; i++)
		known |= rec->history[i].insync;
	for (uint32_t i = 0; known && i < rec->history_count; i++)
		wcursor_u8(c, rec->history[i].insync);
}

static void record_get_ended(struct rcursor *c, struct mirror_record *rec)
{
	mirror_mask known = 0;

	if (!rcursor_left(c))
		return;
	for (uint32_t i = 0; i < rec->history_count; i++)
		known |= rec->history[i].insync = rcursor_u8(c);
	c->bad |= !known;
}

size_t record_encode(const struct mirror_record *rec, void *buf, size_t room)
{
	struct wcursor c = wcursor_init(buf, room);

	if (record_check(rec))
		return 0;
	wcursor_bytes(&c, RECORD_MAGIC, 8);
	wcursor_le(&c, rec->config.format, 4);
	wcursor_le(&c, 0, 4);
	record_put_config(&c, &rec->config);
	record_put_view(&c, &rec->view);
	wcursor_le(&c, rec->nonce, 8);
	wcursor_u8(&c, (uint8_t)rec->history_count);
	for (uint32_t i = 0; i < rec->history_count; i++) {
		epoch_put(&c, rec->history[i].epoch);
		wcursor_le(&c, rec->history[i].seq, 8);
	}
	version_put_tail(&c, rec->config.format);
	record_put_ended(&c, rec);
	return record_finish(&c);
}

/* Read the part between the head and the checksum. */
static void record_get_body(struct rcursor *c, struct mirror_record *rec)
{
	uint8_t count;

	record_get_config(c, &rec->config);
	record_get_view(c, &rec->view);
	rec->nonce = rcursor_le(c, 8);
	count = rcursor_u8(c);
	if (count > MIRROR_HISTORY) {
		c->bad = true;
		return;
	}
	rec->history_count = count;
	for (unsigned i = 0; i < count; i++) {
		rec->history[i].epoch = epoch_get(c);
		rec->history[i].seq = rcursor_le(c, 8);
	}
	version_get_tail(c, rec->config.format);
	record_get_ended(c, rec);
}

static int record_check_frame(const uint8_t *bytes, size_t len, uint32_t *format)
{
	struct rcursor c = rcursor_init(bytes, len), sum;

	if (len < RECORD_HEAD + RECORD_SUM || memcmp(bytes, RECORD_MAGIC, 8))
		return -EBADMSG;
	rcursor_bytes(&c, 8);
	*format = (uint32_t)rcursor_le(&c, 4);
	if (!version_is_known(*format))
		return -EPROTONOSUPPORT;
	sum = rcursor_init(bytes + len - RECORD_SUM, RECORD_SUM);
	if (rcursor_le(&c, 4) != len ||
	    rcursor_le(&sum, 4) !=
		    crc32c_final(crc32c_update(CRC32C_INIT, bytes, len - RECORD_SUM)))
		return -EBADMSG;
	return 0;
}

int record_decode(struct mirror_record *rec, const void *buf, size_t len)
{
	struct mirror_record got = {0};
	int rc = record_check_frame(buf, len, &got.config.format);
	struct rcursor c;

	if (rc)
		return rc;
	c = rcursor_init((const uint8_t *)buf + RECORD_HEAD, len - RECORD_HEAD - RECORD_SUM);
	record_get_body(&c, &got);
	if (c.bad || rcursor_left(&c) || record_check(&got))
		return -EBADMSG;
	*rec = got;
	return 0;
}

bool record_is_equal(const struct mirror_record *a, const struct mirror_record *b)
{
	uint8_t x[RECORD_BYTES], y[RECORD_BYTES];
	size_t len = record_encode(a, x, sizeof(x));

	return len && len == record_encode(b, y, sizeof(y)) && !memcmp(x, y, len);
}
