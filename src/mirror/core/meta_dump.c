/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/core/meta_dump.h"

#include "mirror/core/meta_print.h"
#include "mirror/core/words.h"

static void dump_flags(struct meta_printer *p, uint32_t flags)
{
	static const char *const names[] = {"clean",  "syncing",   "failed", "was-primary",
					    "forced", "uncertain", "empty",  "unknown"};

	meta_print_open(p, "flags", '[');
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (flags & 1u << i)
			meta_print_text(p, NULL, names[i]);
	meta_print_close(p, ']');
}

static void dump_epoch(struct meta_printer *p, const char *key, struct mirror_epoch epoch)
{
	meta_print_open(p, key, '{');
	meta_print_number(p, "number", epoch.number);
	meta_print_hex(p, "nonce", epoch.nonce);
	meta_print_close(p, '}');
}

static void dump_uuid(struct meta_printer *p, const char *key, const struct mirror_uuid *uuid)
{
	meta_print_text(p, key, mirror_uuid_text(uuid).text);
}

static void dump_finding(struct meta_printer *p, const struct finding *finding)
{
	meta_print_open(p, NULL, '{');
	meta_print_number(p, "offset", finding->range.offset);
	meta_print_number(p, "length", finding->range.len);
	meta_print_text(p, "wrong", finding_wrong_2str(finding->wrong));
	meta_print_bool(p, "due", finding->is_due);
	meta_print_open(p, "members", '[');
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (finding->members & MIRROR_BIT(slot))
			meta_print_number(p, NULL, slot);
	meta_print_close(p, ']');
	meta_print_close(p, '}');
}

static void dump_findings(struct meta_printer *p, const struct findings *f)
{
	if (!f->time_s)
		return;
	meta_print_open(p, "findings", '{');
	meta_print_number(p, "time", f->time_s);
	dump_epoch(p, "epoch", f->epoch);
	meta_print_bool(p, "whole", f->is_whole);
	meta_print_open(p, "ranges", '[');
	for (unsigned i = 0; i < f->count; i++)
		dump_finding(p, &f->list[i]);
	meta_print_close(p, ']');
	meta_print_number(p, "more", f->more);
	meta_print_close(p, '}');
}

static void dump_super(struct meta_printer *p, const struct meta_super *super)
{
	meta_print_number(p, "format", super->format);
	meta_print_text(p, "set", super->set);
	dump_uuid(p, "uuid", &super->uuid);
	meta_print_number(p, "slot", super->slot);
	meta_print_hex(p, "copy", super->member_id);
	meta_print_number(p, "size", super->size);
	meta_print_number(p, "address", super->address);
	meta_print_number(p, "hot_slots", super->hot_slots);
	dump_flags(p, super->flags);
	dump_epoch(p, "epoch", super->epoch);
	meta_print_number(p, "acked", super->acked);
	meta_print_number(p, "retired_below", super->retired_below);
	if (super->flags & META_SYNCING) {
		meta_print_hex(p, "source", super->source_id);
		dump_epoch(p, "source_epoch", super->source_epoch);
	}
	if (super->holder.pid) {
		meta_print_open(p, "holder", '{');
		meta_print_number(p, "pid", super->holder.pid);
		meta_print_number(p, "start_time", super->holder.start_time);
		dump_uuid(p, "boot", &super->holder.boot);
		meta_print_hex(p, "image", super->holder.image);
		meta_print_close(p, '}');
	}
	dump_uuid(p, "used_boot", &super->used_boot);
	meta_print_number(p, "data_inode", super->files.data_inode);
	meta_print_number(p, "meta_inode", super->files.meta_inode);
	meta_print_number(p, "room", super->room);
	meta_print_number(p, "data_time", super->files.data_time_ns);
	meta_print_open(p, "scrub", '{');
	meta_print_number(p, "time", super->scrub.time_s);
	meta_print_number(p, "compared", super->scrub.compared);
	meta_print_number(p, "different", super->scrub.different);
	meta_print_close(p, '}');
	dump_findings(p, &super->findings);
}

static void dump_promise(struct meta_printer *p, const struct meta_promise *promise)
{
	const struct mirror_view *view = &promise->seen.view;

	meta_print_open(p, "promise", '{');
	dump_epoch(p, "epoch", promise->epoch);
	meta_print_bool(p, "lost", promise->is_lost);
	meta_print_open(p, "seen", '{');
	meta_print_number(p, "revision", promise->seen.revision);
	meta_print_number(p, "config", promise->seen.config_number);
	dump_epoch(p, "epoch", view->epoch);
	meta_print_number(p, "seq", view->seq);
	meta_print_text(p, "phase", words_phase[view->phase]);
	if (view->primary != MIRROR_NO_SLOT)
		meta_print_number(p, "primary", view->primary);
	meta_print_bool(p, "clean", view->clean);
	meta_print_bool(p, "forced", view->forced);
	meta_print_open(p, "insync", '[');
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (view->insync & MIRROR_BIT(slot))
			meta_print_number(p, NULL, slot);
	meta_print_close(p, ']');
	meta_print_close(p, '}');
	meta_print_close(p, '}');
}

static void dump_history(struct meta_printer *p, const struct meta_history *history)
{
	meta_print_open(p, "history", '[');
	for (uint32_t i = 0; i < history->count; i++) {
		meta_print_open(p, NULL, '{');
		meta_print_number(p, "number", history->ended[i].epoch.number);
		meta_print_hex(p, "nonce", history->ended[i].epoch.nonce);
		meta_print_number(p, "seq", history->ended[i].seq);
		meta_print_close(p, '}');
	}
	meta_print_close(p, ']');
}

static void dump_member(struct meta_printer *p, const struct meta *m, unsigned slot)
{
	const struct meta_member *member = &m->members.members[slot];

	meta_print_open(p, NULL, '{');
	meta_print_number(p, "slot", slot);
	meta_print_text(p, "name", member->name);
	meta_print_hex(p, "copy", member->id);
	meta_print_text(p, "host", member->host);
	meta_print_number(p, "port", member->port);
	if (member->has_bitmap) {
		meta_print_open(p, "bitmap", '{');
		meta_print_number(p, "blocks", meta_bitmap_count(m, (uint8_t)slot));
		dump_epoch(p, "base", member->base);
		dump_epoch(p, "started", member->started);
		meta_print_close(p, '}');
	}
	meta_print_close(p, '}');
}

static void dump_hot(struct meta_printer *p, const struct meta *m)
{
	meta_print_open(p, "hot_extents", '[');
	for (uint32_t extent = 0; extent < m->extents; extent++)
		if (meta_hot_is(m, extent))
			meta_print_number(p, NULL, extent);
	meta_print_close(p, ']');
}

static void dump_ring(struct meta_printer *p, const struct meta *m)
{
	struct intent_reader reader = {.ring = meta_ring(m),
				       .size = m->super.size,
				       .from = m->super.retired_below,
				       .upto = UINT64_MAX};
	struct intent intent;

	meta_print_number(p, "unacknowledged", intent_read(&reader, NULL, NULL));
	meta_print_open(p, "intents", '[');
	for (uint32_t i = 0; i < INTENT_SLOTS; i++) {
		if (!intent_decode(reader.ring + (size_t)i * INTENT_BYTES, m->super.size, &intent))
			continue;
		meta_print_open(p, NULL, '{');
		meta_print_number(p, "seq", intent.head.seq);
		meta_print_number(p, "epoch", intent.head.epoch.number);
		meta_print_number(p, "acked", intent.head.acked);
		meta_print_number(p, "ranges", intent.head.count);
		meta_print_close(p, '}');
	}
	meta_print_close(p, ']');
}

void meta_dump(const struct meta *m, enum meta_form form, FILE *out)
{
	struct meta_printer p = {.out = out, .is_json = form == META_FORM_JSON};
	char damage[96];

	meta_damage_text(m->damage, damage, sizeof(damage));
	meta_print_open(&p, NULL, '{');
	p.depth = 0;
	dump_super(&p, &m->super);
	meta_print_text(&p, "damage", damage[0] ? damage : "none");
	dump_promise(&p, &m->promise);
	dump_history(&p, &m->history);
	meta_print_open(&p, "members", '[');
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (m->members.members[slot].id)
			dump_member(&p, m, slot);
	meta_print_close(&p, ']');
	dump_hot(&p, m);
	dump_ring(&p, m);
	p.depth = 1;
	meta_print_close(&p, '}');
	if (p.is_json)
		fputc('\n', out);
}
