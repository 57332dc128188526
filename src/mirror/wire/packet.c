/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/wire/packet_impl.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "mirror/core/record.h"
#include "mirror/wire/fields.h"

#define PACKET_MAGIC 0x504d4d52u /* "RMMP" */

/* Writes the record's length, then its bytes; length 0 stands for a record of zeros. */
static void packet_put_record(struct wcursor *c, const struct mirror_record *record)
{
	uint8_t *at = c->p;
	size_t len = 0;

	wcursor_le(c, 0, 4);
	if (c->bad || !record->config.number)
		return;
	len = record_encode(record, c->p, (size_t)(c->end - c->p));
	assert(len);
	for (unsigned i = 0; i < 4; i++)
		at[i] = (uint8_t)(len >> (8 * i));
	c->p += len;
}

static void packet_get_record(struct rcursor *c, struct mirror_record *record)
{
	size_t len = rcursor_le(c, 4);
	const uint8_t *at = rcursor_bytes(c, len);

	if (len && (!at || record_decode(record, at, len)))
		c->bad = true;
}

static void packet_put_map(struct wcursor *c, const struct packet *p)
{
	wcursor_u8(c, p->map.flags);
	fields_put_text(c, p->map.set, sizeof(p->map.set));
	epoch_put(c, p->map.epoch);
	if (packet_has_findings(p))
		wcursor_le(c, p->map.image, 8);
}

static void packet_get_map(struct rcursor *c, struct packet *p)
{
	p->map.flags = fields_get_flags(c, PACKET_MAP_WAIT | PACKET_MAP_READONLY |
						   PACKET_MAP_FORCE | PACKET_MAP_RESUME);
	fields_get_text(c, p->map.set, sizeof(p->map.set));
	p->map.epoch = epoch_get(c);
	if (packet_has_findings(p))
		p->map.image = rcursor_le(c, 8);
}

enum {
	PACKET_MAPPED_SECRET = 1 << 0,
	PACKET_MAPPED_FORCED = 1 << 1,
	PACKET_MAPPED_SILENT = 1 << 2,
};

static void packet_put_mapped(struct wcursor *c, const struct packet *p)
{
	const struct packet_mapped *mapped = &p->mapped;

	wcursor_u8(c, mapped->status);
	wcursor_u8(c, mapped->slot);
	wcursor_u8(c, (uint8_t)((mapped->has_secret ? PACKET_MAPPED_SECRET : 0) |
				(mapped->is_forced ? PACKET_MAPPED_FORCED : 0) |
				(mapped->is_silent ? PACKET_MAPPED_SILENT : 0)));
	fields_put_uuid(c, &mapped->uuid);
	wcursor_le(c, mapped->copy_id, 8);
	wcursor_le(c, mapped->size, 8);
	wcursor_bytes(c, mapped->key, sizeof(mapped->key));
	fields_put_text(c, mapped->data_path, sizeof(mapped->data_path));
	fields_put_text(c, mapped->meta_path, sizeof(mapped->meta_path));
	wcursor_le(c, mapped->revision, 8);
	packet_put_record(c, &mapped->record);
	fields_put_text(c, mapped->text, sizeof(mapped->text));
}

static void packet_get_mapped(struct rcursor *c, struct packet *p)
{
	struct packet_mapped *mapped = &p->mapped;
	uint8_t flags;

	mapped->status = fields_get_below(c, PACKET_STATUS_END);
	mapped->slot = fields_get_slot(c);
	flags = fields_get_flags(c, PACKET_MAPPED_SECRET | PACKET_MAPPED_FORCED |
					    PACKET_MAPPED_SILENT);
	mapped->has_secret = flags & PACKET_MAPPED_SECRET;
	mapped->is_forced = flags & PACKET_MAPPED_FORCED;
	mapped->is_silent = flags & PACKET_MAPPED_SILENT;
	fields_get_uuid(c, &mapped->uuid);
	mapped->copy_id = rcursor_le(c, 8);
	mapped->size = rcursor_le(c, 8);
	fields_get_bytes(c, mapped->key, sizeof(mapped->key));
	fields_get_text(c, mapped->data_path, sizeof(mapped->data_path));
	fields_get_text(c, mapped->meta_path, sizeof(mapped->meta_path));
	mapped->revision = rcursor_le(c, 8);
	packet_get_record(c, &mapped->record);
	fields_get_text(c, mapped->text, sizeof(mapped->text));
}

static void packet_put_unmap(struct wcursor *c, const struct packet *p)
{
	wcursor_u8(c, p->unmap.clean);
}

static void packet_get_unmap(struct rcursor *c, struct packet *p)
{
	p->unmap.clean = rcursor_bool(c, 1);
}

static void packet_put_entry(struct wcursor *c, const struct packet *p)
{
	wcursor_u8(c, p->record.status);
	wcursor_le(c, p->record.revision, 8);
	packet_put_record(c, &p->record.record);
	fields_put_text(c, p->record.text, sizeof(p->record.text));
}

static void packet_get_entry(struct rcursor *c, struct packet *p)
{
	p->record.status = fields_get_below(c, PACKET_STATUS_END);
	p->record.revision = rcursor_le(c, 8);
	packet_get_record(c, &p->record.record);
	fields_get_text(c, p->record.text, sizeof(p->record.text));
}

static void packet_put_swap(struct wcursor *c, const struct packet *p)
{
	wcursor_u8(c, p->swap.promotes);
	wcursor_le(c, p->swap.revision, 8);
	packet_put_record(c, &p->swap.before);
	packet_put_record(c, &p->swap.after);
}

static void packet_get_swap(struct rcursor *c, struct packet *p)
{
	p->swap.promotes = rcursor_bool(c, 1);
	p->swap.revision = rcursor_le(c, 8);
	packet_get_record(c, &p->swap.before);
	packet_get_record(c, &p->swap.after);
}

static void packet_put_swapped(struct wcursor *c, const struct packet *p)
{
	wcursor_u8(c, p->swapped.result);
	wcursor_le(c, p->swapped.revision, 8);
	packet_put_record(c, &p->swapped.record);
	fields_put_text(c, p->swapped.text, sizeof(p->swapped.text));
}

static void packet_get_swapped(struct rcursor *c, struct packet *p)
{
	p->swapped.result = fields_get_below(c, PACKET_SWAP_END);
	p->swapped.revision = rcursor_le(c, 8);
	packet_get_record(c, &p->swapped.record);
	fields_get_text(c, p->swapped.text, sizeof(p->swapped.text));
}

static void packet_put_member(struct wcursor *c, const struct packet *p)
{
	uint8_t buf[MESSAGE_SIZE];

	message_encode(&p->member, p->versions.newest, buf);
	wcursor_bytes(c, buf, sizeof(buf));
}

static void packet_get_member(struct rcursor *c, struct packet *p)
{
	const uint8_t *at = rcursor_bytes(c, MESSAGE_SIZE);

	if (!at || message_decode(at, MESSAGE_SIZE, p->versions.newest, &p->member))
		c->bad = true;
}

static void packet_put_serve(struct wcursor *c, const struct packet *p)
{
	epoch_put(c, p->serve.epoch);
	wcursor_u8(c, p->serve.forced);
}

static void packet_get_serve(struct rcursor *c, struct packet *p)
{
	p->serve.epoch = epoch_get(c);
	p->serve.forced = rcursor_bool(c, 1);
}

static void packet_put_lost(struct wcursor *c, const struct packet *p)
{
	wcursor_le(c, p->lost.error, 2);
}

static void packet_get_lost(struct rcursor *c, struct packet *p)
{
	p->lost.error = (uint16_t)rcursor_le(c, 2);
}

static void packet_put_lease(struct wcursor *c, const struct packet *p)
{
	wcursor_le(c, p->lease.sent_ns, 8);
	wcursor_le(c, p->lease.confirmed_ns, 8);
}

static void packet_get_lease(struct rcursor *c, struct packet *p)
{
	p->lease.sent_ns = rcursor_le(c, 8);
	p->lease.confirmed_ns = rcursor_le(c, 8);
}

static void packet_put_fenced(struct wcursor *c, const struct packet *p)
{
	epoch_put(c, p->fenced.known);
}

static void packet_get_fenced(struct rcursor *c, struct packet *p)
{
	p->fenced.known = epoch_get(c);
}

static void packet_put_done(struct wcursor *c, const struct packet *p)
{
	wcursor_u8(c, p->done.status);
	fields_put_text(c, p->done.text, sizeof(p->done.text));
}

static void packet_get_done(struct rcursor *c, struct packet *p)
{
	p->done.status = fields_get_below(c, PACKET_STATUS_END);
	fields_get_text(c, p->done.text, sizeof(p->done.text));
}

static void packet_put_age(struct wcursor *c, const struct packet *p)
{
	wcursor_le(c, p->age.fresh_ns, 8);
	wcursor_le(c, p->age.epoch, 8);
	wcursor_le(c, p->age.view_seq, 8);
	wcursor_le(c, p->age.flush_seq, 8);
}

static void packet_get_age(struct rcursor *c, struct packet *p)
{
	p->age.fresh_ns = rcursor_le(c, 8);
	p->age.epoch = rcursor_le(c, 8);
	p->age.view_seq = rcursor_le(c, 8);
	p->age.flush_seq = rcursor_le(c, 8);
}

struct packet_codec {
	const char *name;
	void (*put)(struct wcursor *c, const struct packet *p); /* NULL: the packet has no body */
	void (*get)(struct rcursor *c, struct packet *p);
};

static const struct packet_codec packet_codecs[PACKET_TYPE_END] = {
	[PACKET_MAP] = {"MAP", packet_put_map, packet_get_map},
	[PACKET_MAPPED] = {"MAPPED", packet_put_mapped, packet_get_mapped},
	[PACKET_UNMAP] = {"UNMAP", packet_put_unmap, packet_get_unmap},
	[PACKET_GET_RECORD] = {.name = "GET_RECORD"},
	[PACKET_RECORD] = {"RECORD", packet_put_entry, packet_get_entry},
	[PACKET_SWAP] = {"SWAP", packet_put_swap, packet_get_swap},
	[PACKET_SWAPPED] = {"SWAPPED", packet_put_swapped, packet_get_swapped},
	[PACKET_MEMBER] = {"MEMBER", packet_put_member, packet_get_member},
	[PACKET_HEARTBEAT] = {.name = "HEARTBEAT"},
	[PACKET_SERVE] = {"SERVE", packet_put_serve, packet_get_serve},
	[PACKET_FAIL] = {.name = "FAIL"},
	[PACKET_STATUS] = {"STATUS", packet_put_report, packet_get_report},
	[PACKET_EVENT] = {"EVENT", packet_put_event, packet_get_event},
	[PACKET_LEASE] = {"LEASE", packet_put_lease, packet_get_lease},
	[PACKET_CHANGED] = {"CHANGED", packet_put_entry, packet_get_entry},
	[PACKET_FENCED] = {"FENCED", packet_put_fenced, packet_get_fenced},
	[PACKET_ORDER] = {"ORDER", packet_put_order, packet_get_order},
	[PACKET_ORDERED] = {"ORDERED", packet_put_ordered, packet_get_ordered},
	[PACKET_DONE] = {"DONE", packet_put_done, packet_get_done},
	[PACKET_GET_AGE] = {.name = "GET_AGE"},
	[PACKET_AGE] = {"AGE", packet_put_age, packet_get_age},
	[PACKET_LOST] = {"LOST", packet_put_lost, packet_get_lost},
};

struct packet *packet_begin(struct packet *p, enum packet_type type, uint32_t id)
{
	memset(p, 0, sizeof(*p));
	p->type = type;
	p->id = id;
	return p;
}

size_t packet_encode(struct packet *p, unsigned version, uint8_t *buf)
{
	struct wcursor c = wcursor_init(buf, PACKET_MAX);

	assert(p->type > 0 && p->type < PACKET_TYPE_END);
	p->versions = (struct mirror_versions){(uint8_t)version, version_ours().lowest};
	wcursor_le(&c, PACKET_MAGIC, 4);
	wcursor_u8(&c, p->versions.newest);
	wcursor_u8(&c, (uint8_t)p->type);
	wcursor_u8(&c, p->versions.lowest);
	wcursor_u8(&c, 0);
	wcursor_le(&c, p->id, 4);
	if (packet_codecs[p->type].put)
		packet_codecs[p->type].put(&c, p);
	version_put_tail(&c, version);
	assert(!c.bad);
	return wcursor_len(&c);
}

static int packet_decode_body(struct rcursor *c, struct packet *p)
{
	unsigned version = p->versions.newest;
	bool is_newer = version > version_newest();

	/* A refusal has the same form in all versions, except that a newer version may add fields
	 * at the end. */
	if (p->type == PACKET_DONE && !version_is_known(version)) {
		packet_get_done(c, p);
		return c->bad || p->done.status != PACKET_VERSION ? -EPROTO : 0;
	}
	if (p->type == PACKET_MAP ? !version_agree(p->versions, version_ours())
				  : !version_is_known(version))
		return -EPROTONOSUPPORT;
	if (packet_codecs[p->type].get)
		packet_codecs[p->type].get(c, p);
	version_get_tail(c, version);
	return c->bad || (rcursor_left(c) && !is_newer) ? -EPROTO : 0;
}

int packet_decode(const void *buf, size_t len, struct packet *p)
{
	struct rcursor c = rcursor_init(buf, len);
	uint8_t type;

	memset(p, 0, sizeof(*p));
	if (len > PACKET_MAX || rcursor_le(&c, 4) != PACKET_MAGIC)
		return -EPROTO;
	p->versions.newest = rcursor_u8(&c);
	type = rcursor_u8(&c);
	p->versions.lowest = rcursor_u8(&c);
	if (rcursor_u8(&c) || !version_is_possible(p->versions))
		return -EPROTO;
	p->id = (uint32_t)rcursor_le(&c, 4);
	if (c.bad || !type)
		return -EPROTO;
	if (type >= PACKET_TYPE_END)
		return version_is_known(p->versions.newest) ? -EPROTO : -EPROTONOSUPPORT;
	p->type = (enum packet_type)type;
	return packet_decode_body(&c, p);
}

const char *packet_type_2str(unsigned type)
{
	return type > 0 && type < PACKET_TYPE_END ? packet_codecs[type].name : "?";
}

const char *packet_event_2str(unsigned what)
{
	static const char *const words[PACKET_EVENT_END] = {
		[PACKET_EVENT_LOST] = "lost",     [PACKET_EVENT_SLOW] = "slow",
		[PACKET_EVENT_LEASE] = "lease",   [PACKET_EVENT_FENCED] = "fenced",
		[PACKET_EVENT_MEDIUM] = "medium", [PACKET_EVENT_ERROR] = "error",
		[PACKET_EVENT_STUCK] = "stuck",   [PACKET_EVENT_VERIFY] = "verify",
	};

	return what < PACKET_EVENT_END ? words[what] : "?";
}

const char *packet_status_2str(unsigned status)
{
	static const char *const words[PACKET_STATUS_END] = {
		[PACKET_OK] = "done",
		[PACKET_BAD] = "the request is not valid now",
		[PACKET_NO_SET] = "no copy of this set is configured on this host",
		[PACKET_PERMISSION] = "this user may not map the set",
		[PACKET_BUSY] = "it is in use",
		[PACKET_NOT_INSYNC] = "the copy of this host is not in-sync",
		[PACKET_SPLIT] = "copies contradict each other; an operator has to choose one",
		[PACKET_COPY_FAILED] = "the copy of this host has failed",
		[PACKET_REGISTER] = "the set's register does not answer",
		[PACKET_IO] = "a file of this host cannot be used",
		[PACKET_COPIES] = "too few copies would be left",
		[PACKET_TIMEOUT] = "it was not completed in time",
		[PACKET_EPOCH] = "a newer primary exists",
		[PACKET_VERSION] = "there is no version in common",
	};

	return status < PACKET_STATUS_END ? words[status] : "an unknown reason";
}
