/* SPDX-License-Identifier: BSD-3-Clause */
/* meta_codec.c -- encodes and decodes the bodies of superblock, promise, history and members
 * (doc/mirror-format.md). */
#include <string.h>

#include "mirror/core/epoch.h"
#include "mirror/core/meta_impl.h"
#include "mirror/core/version.h"

#define CODEC_INCOMPAT_KNOWN 0u
#define CODEC_FLAGS_KNOWN    (META_UNKNOWN * 2u - 1)

static void codec_put_uuid(struct wcursor *c, const struct mirror_uuid *uuid)
{
	wcursor_bytes(c, uuid->bytes, sizeof(uuid->bytes));
}

/* Reads a field of fixed length; the result is zero if the buffer ends before the field does. */
static void codec_get_bytes(struct rcursor *c, void *out, size_t len)
{
	const uint8_t *bytes = rcursor_bytes(c, len);

	memset(out, 0, len);
	if (bytes)
		memcpy(out, bytes, len);
}

/* Reads a text from a field of fixed length, in which zeros follow the text. */
static bool codec_get_text(struct rcursor *c, char *out, size_t size)
{
	size_t len;

	codec_get_bytes(c, out, size);
	len = strnlen(out, size);
	for (size_t i = len; i < size; i++)
		if (out[i])
			return false;
	return len < size;
}

static void codec_put_text(struct wcursor *c, const char *text, size_t size)
{
	char field[MIRROR_HOST_MAX + 1] = "";

	memcpy(field, text, strnlen(text, size - 1));
	wcursor_bytes(c, field, size);
}

static void codec_put_findings(struct wcursor *c, const struct findings *f)
{
	wcursor_le(c, f->time_s, 8);
	epoch_put(c, f->epoch);
	wcursor_u8(c, f->is_whole);
	wcursor_u8(c, f->count);
	wcursor_le(c, f->more_members, 2);
	wcursor_le(c, 0, 4);
	wcursor_le(c, f->more, 8);
	for (unsigned i = 0; i < FINDINGS_MAX; i++) {
		wcursor_u8(c, f->list[i].members);
		wcursor_u8(c, f->list[i].wrong);
		wcursor_u8(c, f->list[i].is_due);
		wcursor_le(c, 0, 5);
		wcursor_le(c, f->list[i].range.offset, 8);
		wcursor_le(c, f->list[i].range.len, 8);
	}
}

/* The range may reach beyond the end of the file, because it is only printed. */
static bool codec_get_finding(struct rcursor *c, struct finding *finding)
{
	uint8_t is_due;

	finding->members = rcursor_u8(c);
	finding->wrong = rcursor_u8(c);
	is_due = rcursor_u8(c);
	finding->is_due = is_due;
	rcursor_le(c, 5);
	finding->range.offset = rcursor_le(c, 8);
	finding->range.len = rcursor_le(c, 8);
	return finding->wrong < FINDING_WRONG_END && is_due <= 1 &&
	       finding->range.offset <= MIRROR_SIZE_MAX && finding->range.len <= MIRROR_SIZE_MAX;
}

static bool codec_get_findings(struct rcursor *c, struct findings *f)
{
	uint8_t is_whole;
	bool is_good = true;

	f->time_s = rcursor_le(c, 8);
	f->epoch = epoch_get(c);
	is_whole = rcursor_u8(c);
	f->is_whole = is_whole;
	f->count = rcursor_u8(c);
	f->more_members = (mirror_mask)rcursor_le(c, 2);
	rcursor_le(c, 4);
	f->more = rcursor_le(c, 8);
	for (unsigned i = 0; i < FINDINGS_MAX; i++)
		is_good &= codec_get_finding(c, &f->list[i]);
	return is_good && is_whole <= 1 && f->count <= FINDINGS_MAX;
}

void meta_super_encode(const struct meta_super *super, struct wcursor *c)
{
	wcursor_le(c, super->format, 4);
	wcursor_le(c, super->compat, 4);
	wcursor_le(c, super->incompat, 4);
	wcursor_le(c, super->flags, 4);
	codec_put_uuid(c, &super->uuid);
	wcursor_le(c, super->member_id, 8);
	wcursor_le(c, super->size, 8);
	wcursor_le(c, MIRROR_BLOCK, 4);
	wcursor_le(c, MIRROR_EXTENT, 4);
	wcursor_le(c, super->hot_slots, 4);
	wcursor_le(c, super->slot, 4);
	wcursor_le(c, super->address, 8);
	epoch_put(c, super->epoch);
	wcursor_le(c, super->source_id, 8);
	epoch_put(c, super->source_epoch);
	wcursor_le(c, super->acked, 8);
	wcursor_le(c, super->retired_below, 8);
	wcursor_le(c, super->holder.pid, 8);
	wcursor_le(c, super->holder.start_time, 8);
	codec_put_uuid(c, &super->holder.boot);
	codec_put_uuid(c, &super->used_boot);
	wcursor_le(c, super->files.data_inode, 8);
	wcursor_le(c, super->files.meta_inode, 8);
	codec_put_text(c, super->set, sizeof(super->set));
	wcursor_le(c, super->scrub.time_s, 8);
	wcursor_le(c, super->scrub.compared, 8);
	wcursor_le(c, super->scrub.different, 8);
	wcursor_le(c, super->room, 8);
	wcursor_le(c, super->files.data_time_ns, 8);
	codec_put_findings(c, &super->findings);
	wcursor_le(c, super->holder.image, 8);
	version_put_tail(c, super->format);
}

static bool codec_super_is_possible(const struct meta_super *super)
{
	return super->size && super->size % MIRROR_BLOCK == 0 && super->size <= MIRROR_SIZE_MAX &&
	       super->slot < MIRROR_MEMBERS_MAX && super->hot_slots &&
	       super->hot_slots <= META_HOT_SLOTS && super->member_id &&
	       !(super->flags & ~CODEC_FLAGS_KNOWN) && !(super->incompat & ~CODEC_INCOMPAT_KNOWN);
}

bool meta_super_decode(struct rcursor *c, struct meta_super *super)
{
	uint64_t block, extent;
	bool is_text, has_findings;

	super->format = (uint32_t)rcursor_le(c, 4);
	if (!version_is_known(super->format))
		return false;
	super->compat = (uint32_t)rcursor_le(c, 4);
	super->incompat = (uint32_t)rcursor_le(c, 4);
	super->flags = (uint32_t)rcursor_le(c, 4);
	codec_get_bytes(c, super->uuid.bytes, sizeof(super->uuid.bytes));
	super->member_id = rcursor_le(c, 8);
	super->size = rcursor_le(c, 8);
	block = rcursor_le(c, 4);
	extent = rcursor_le(c, 4);
	super->hot_slots = (uint32_t)rcursor_le(c, 4);
	super->slot = (uint8_t)rcursor_le(c, 4);
	super->address = rcursor_le(c, 8);
	super->epoch = epoch_get(c);
	super->source_id = rcursor_le(c, 8);
	super->source_epoch = epoch_get(c);
	super->acked = rcursor_le(c, 8);
	super->retired_below = rcursor_le(c, 8);
	super->holder.pid = rcursor_le(c, 8);
	super->holder.start_time = rcursor_le(c, 8);
	codec_get_bytes(c, super->holder.boot.bytes, sizeof(super->holder.boot.bytes));
	codec_get_bytes(c, super->used_boot.bytes, sizeof(super->used_boot.bytes));
	super->files.data_inode = rcursor_le(c, 8);
	super->files.meta_inode = rcursor_le(c, 8);
	is_text = codec_get_text(c, super->set, sizeof(super->set));
	super->scrub.time_s = rcursor_le(c, 8);
	super->scrub.compared = rcursor_le(c, 8);
	super->scrub.different = rcursor_le(c, 8);
	/* Versions after version 1 have added the fields below. */
	super->room = rcursor_left(c) ? rcursor_le(c, 8) : 0;
	super->files.data_time_ns = rcursor_left(c) ? rcursor_le(c, 8) : 0;
	memset(&super->findings, 0, sizeof(super->findings));
	has_findings = !rcursor_left(c) || codec_get_findings(c, &super->findings);
	super->holder.image = rcursor_left(c) ? rcursor_le(c, 8) : 0;
	version_get_tail(c, super->format);
	return !c->bad && is_text && has_findings && block == MIRROR_BLOCK &&
	       extent == MIRROR_EXTENT && codec_super_is_possible(super);
}

void meta_promise_encode(const struct meta_promise *promise, struct wcursor *c)
{
	const struct mirror_view *view = &promise->seen.view;

	epoch_put(c, promise->epoch);
	wcursor_le(c, promise->is_lost, 4);
	wcursor_le(c, 0, 4);
	wcursor_le(c, promise->seen.revision, 8);
	wcursor_le(c, promise->seen.config_number, 8);
	epoch_put(c, view->epoch);
	wcursor_le(c, view->seq, 8);
	wcursor_u8(c, (uint8_t)view->phase);
	wcursor_u8(c, view->primary);
	wcursor_u8(c, view->clean);
	wcursor_u8(c, view->forced);
	wcursor_u8(c, view->insync);
}

bool meta_promise_decode(struct rcursor *c, struct meta_promise *promise)
{
	struct mirror_view *view = &promise->seen.view;
	uint8_t phase;

	promise->epoch = epoch_get(c);
	promise->is_lost = rcursor_bool(c, 4);
	rcursor_le(c, 4);
	promise->seen.revision = rcursor_le(c, 8);
	promise->seen.config_number = rcursor_le(c, 8);
	view->epoch = epoch_get(c);
	view->seq = rcursor_le(c, 8);
	phase = rcursor_u8(c);
	view->phase = phase;
	view->primary = rcursor_u8(c);
	view->clean = rcursor_bool(c, 1);
	view->forced = rcursor_bool(c, 1);
	view->insync = rcursor_u8(c);
	return !c->bad && phase <= MIRROR_PHASE_SERVING &&
	       (view->primary < MIRROR_MEMBERS_MAX || view->primary == MIRROR_NO_SLOT);
}

void meta_history_encode(const struct meta_history *history, struct wcursor *c)
{
	wcursor_le(c, history->count, 8);
	for (uint32_t i = 0; i < history->count; i++) {
		epoch_put(c, history->ended[i].epoch);
		wcursor_le(c, history->ended[i].seq, 8);
	}
}

bool meta_history_decode(struct rcursor *c, struct meta_history *history)
{
	uint64_t count = rcursor_le(c, 8);

	memset(history, 0, sizeof(*history));
	if (count > MIRROR_HISTORY)
		return false;
	history->count = (uint32_t)count;
	for (uint32_t i = 0; i < count; i++) {
		history->ended[i].epoch = epoch_get(c);
		history->ended[i].seq = rcursor_le(c, 8);
	}
	return !c->bad;
}

void meta_members_encode(const struct meta_members *members, struct wcursor *c)
{
	wcursor_le(c, members->config_number, 8);
	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++) {
		const struct meta_member *member = &members->members[i];

		wcursor_le(c, member->id, 8);
		wcursor_le(c, member->has_bitmap, 4);
		wcursor_le(c, member->port, 4);
		epoch_put(c, member->base);
		epoch_put(c, member->started);
		codec_put_text(c, member->name, sizeof(member->name));
		codec_put_text(c, member->host, sizeof(member->host));
	}
}

bool meta_members_decode(struct rcursor *c, struct meta_members *members)
{
	bool is_text = true;

	members->config_number = rcursor_le(c, 8);
	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++) {
		struct meta_member *member = &members->members[i];
		uint64_t port;

		member->id = rcursor_le(c, 8);
		member->has_bitmap = rcursor_bool(c, 4);
		port = rcursor_le(c, 4);
		c->bad |= port > UINT16_MAX;
		member->port = (uint16_t)port;
		member->base = epoch_get(c);
		member->started = epoch_get(c);
		is_text &= codec_get_text(c, member->name, sizeof(member->name));
		is_text &= codec_get_text(c, member->host, sizeof(member->host));
	}
	return !c->bad && is_text;
}
