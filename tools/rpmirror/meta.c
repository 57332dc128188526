/* SPDX-License-Identifier: BSD-3-Clause */
/* rpmirror meta dump|check: the metadata of a copy, without a daemon. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "base/text.h"
#include "commands.h"
#include "copyfile.h"
#include "out.h"

static json_t *meta_hex(uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%016" PRIx64, number);
	return json_string(text);
}

static json_t *meta_epoch(struct mirror_epoch epoch)
{
	return json_pack("{s:I, s:o}", "number", (json_int_t)epoch.number, "nonce",
			 meta_hex(epoch.nonce));
}

static json_t *meta_flags(uint32_t flags)
{
	static const char *const names[] = {"clean",  "syncing",   "failed", "was-primary",
					    "forced", "uncertain", "empty",  "unknown"};
	json_t *list = json_array();

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (flags & 1u << i)
			json_array_append_new(list, json_string(names[i]));
	return list;
}

static json_t *meta_uuid(const struct mirror_uuid *uuid)
{
	return json_string(mirror_uuid_text(uuid).text);
}

static json_t *meta_members(const struct meta *m)
{
	json_t *list = json_array();

	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		const struct meta_member *member = &m->members.members[slot];
		json_t *object;

		if (!member->id)
			continue;
		object = json_pack("{s:s, s:i, s:o, s:s, s:i}", "name", member->name, "slot", slot,
				   "id", meta_hex(member->id), "host", member->host, "port",
				   member->port);
		if (member->has_bitmap)
			json_object_set_new(
				object, "bitmap",
				json_pack("{s:o, s:o, s:I}", "base", meta_epoch(member->base),
					  "started", meta_epoch(member->started), "bytes",
					  (json_int_t)(meta_bitmap_count(m, (uint8_t)slot) *
						       MIRROR_BLOCK)));
		json_array_append_new(list, object);
	}
	return list;
}

static json_t *meta_history(const struct meta *m)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < m->history.count; i++) {
		json_t *ended = meta_epoch(m->history.ended[i].epoch);

		json_object_set_new(ended, "seq",
				    json_integer((json_int_t)m->history.ended[i].seq));
		json_array_append_new(list, ended);
	}
	return list;
}

static json_t *meta_json(const struct meta *m)
{
	const struct meta_super *s = &m->super;
	const struct meta_seen *seen = &m->promise.seen;
	char damage[128];
	json_t *object;

	meta_damage_text(m->damage, damage, sizeof(damage));
	object = json_pack("{s:i, s:s, s:o, s:o, s:i, s:I, s:o, s:o}", "schema", 1, "set", s->set,
			   "uuid", meta_uuid(&s->uuid), "member_id", meta_hex(s->member_id), "slot",
			   s->slot, "size", (json_int_t)s->size, "flags", meta_flags(s->flags),
			   "epoch", meta_epoch(s->epoch));
	json_object_set_new(object, "promised", meta_epoch(m->promise.epoch));
	json_object_set_new(object, "seen",
			    json_pack("{s:o, s:I, s:I, s:I}", "epoch", meta_epoch(seen->view.epoch),
				      "seq", (json_int_t)seen->view.seq, "revision",
				      (json_int_t)seen->revision, "config",
				      (json_int_t)seen->config_number));
	if (s->flags & META_SYNCING)
		json_object_set_new(object, "source", meta_hex(s->source_id));
	if (s->holder.pid)
		json_object_set_new(object, "holder_pid", json_integer((json_int_t)s->holder.pid));
	if (s->scrub.compared)
		json_object_set_new(object, "scrub",
				    json_pack("{s:I, s:I, s:I}", "time",
					      (json_int_t)s->scrub.time_s, "compared",
					      (json_int_t)s->scrub.compared, "different",
					      (json_int_t)s->scrub.different));
	json_object_set_new(object, "hot_extents", json_integer(m->hot_count));
	json_object_set_new(object, "members", meta_members(m));
	json_object_set_new(object, "history", meta_history(m));
	json_object_set_new(object, "damage", json_string(damage));
	return object;
}

static int meta_open(const char *path, struct copyfile *f)
{
	struct error err;

	if (!copyfile_open(f, path, &err))
		return OUT_DONE;
	return out_fail(err.cause == ENODATA || err.cause == EPROTONOSUPPORT ? OUT_CONFIG : OUT_IO,
			NULL, "%s", err.text);
}

static int meta_check(const struct args *args, const struct meta *m)
{
	char damage[128];

	meta_damage_text(m->damage, damage, sizeof(damage));
	if (m->damage)
		return out_fail(OUT_IO,
				"the copy counts as unknown until it has been compared as a whole",
				"damaged: %s", damage);
	if (args->json)
		out_json(json_pack("{s:b}", "ok", 1));
	else
		printf("the metadata of set %s, slot %u, are whole\n", m->super.set, m->super.slot);
	return OUT_DONE;
}

int cmd_meta(int argc, char **argv)
{
	const struct args_option options[] = {{0}};
	struct copyfile f;
	struct args args;
	json_t *object;
	bool dump;
	int code;

	if (args_parse(argc, argv, options, 2, 2, &args, &code))
		return code;
	dump = !strcmp(args.rest.items[0], "dump");
	if (!dump && strcmp(args.rest.items[0], "check") != 0)
		return out_usage("'%s' is neither dump nor check", args.rest.items[0]);
	code = meta_open(args.rest.items[1], &f);
	if (code)
		return code;
	if (dump) {
		object = meta_json(&f.meta);
		json_dumpf(object, stdout, args.json ? JSON_COMPACT : JSON_INDENT(2));
		putchar('\n');
		json_decref(object);
	} else {
		code = meta_check(&args, &f.meta);
	}
	copyfile_close(&f);
	return code;
}
