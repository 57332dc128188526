/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/core/meta.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "mirror/core/meta_impl.h"
#include "mirror/core/version.h"

#define META_PAGE 4096u

static uint64_t meta_plane_bytes(uint64_t size)
{
	uint64_t bytes = (size / MIRROR_BLOCK + 63) / 64 * 8;

	return (bytes + META_PAGE - 1) / META_PAGE * META_PAGE;
}

uint64_t meta_size_for(uint64_t size)
{
	return META_BITMAPS_AT + (MIRROR_MEMBERS_MAX - 1) * meta_plane_bytes(size);
}

int meta_persist(struct meta *m, uint64_t offset, uint64_t len)
{
	int rc = m->broken;

	if (!rc)
		rc = m->broken = m->store.persist(m->store.arg, offset, len);
	return rc;
}

int meta_span_end(struct meta *m, struct meta_span *span)
{
	int rc = span->to ? meta_persist(m, span->from, span->to - span->from) : m->broken;

	*span = (struct meta_span){0};
	return rc;
}

int meta_span_add(struct meta *m, struct meta_span *span, uint64_t offset, uint64_t len)
{
	uint64_t end = offset + len;
	int rc = 0;

	if (span->to && offset / META_PAGE == span->from / META_PAGE) {
		span->from = offset < span->from ? offset : span->from;
		span->to = end > span->to ? end : span->to;
		return 0;
	}
	rc = meta_span_end(m, span);
	*span = (struct meta_span){offset, end};
	return rc;
}

static int meta_write(struct meta *m, enum meta_pair_name pair, const void *record)
{
	uint8_t body[META_BODY_MAX];
	struct wcursor c = wcursor_init(body, sizeof(body));

	switch (pair) {
	case META_PAIR_SUPER:
		meta_super_encode(record, &c);
		break;
	case META_PAIR_PROMISE:
		meta_promise_encode(record, &c);
		break;
	case META_PAIR_HISTORY:
		meta_history_encode(record, &c);
		break;
	case META_PAIR_MEMBERS:
		meta_members_encode(record, &c);
		break;
	case META_PAIRS:
		return -EINVAL;
	}
	return meta_pair_write(m, pair, &c);
}

int meta_set_super(struct meta *m, const struct meta_super *super)
{
	int rc = meta_write(m, META_PAIR_SUPER, super);

	if (!rc)
		m->super = *super;
	return rc;
}

int meta_set_promise(struct meta *m, const struct meta_promise *promise)
{
	int rc = meta_write(m, META_PAIR_PROMISE, promise);

	if (!rc)
		m->promise = *promise;
	return rc;
}

int meta_set_history(struct meta *m, const struct meta_history *history)
{
	int rc = history->count <= MIRROR_HISTORY ? meta_write(m, META_PAIR_HISTORY, history)
						  : -EINVAL;

	if (!rc)
		m->history = *history;
	return rc;
}

int meta_set_members(struct meta *m, const struct meta_members *members)
{
	int rc = meta_write(m, META_PAIR_MEMBERS, members);

	if (!rc)
		m->members = *members;
	return rc;
}

int meta_keep_members(struct meta *m, const struct mirror_config *config)
{
	struct meta_members members = {.config_number = config->number};

	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		const struct mirror_member *from = &config->members[slot];
		const struct meta_member *was = &m->members.members[slot];
		struct meta_member *to = &members.members[slot];

		if (!from->id)
			continue;
		if (was->id == from->id)
			*to = *was;
		to->id = from->id;
		to->port = from->port;
		memcpy(to->name, from->name, sizeof(to->name));
		memcpy(to->host, from->host, sizeof(to->host));
	}
	return meta_set_members(m, &members);
}

int meta_create(const struct meta_store *store, const struct meta_super *super,
		const struct meta_members *members)
{
	struct meta m = {.store = *store, .super = *super};
	int rc;

	if (store->len < meta_size_for(super->size))
		return -EMSGSIZE;
	if (!m.super.format)
		m.super.format = version_ours().lowest;
	if (!m.super.hot_slots)
		m.super.hot_slots = META_HOT_DEFAULT;
	m.promise.seen.view.primary = MIRROR_NO_SLOT;
	rc = meta_persist(&m, META_HOT_AT, store->len - META_HOT_AT);
	if (!rc)
		rc = meta_write(&m, META_PAIR_MEMBERS, members);
	if (!rc)
		rc = meta_write(&m, META_PAIR_HISTORY, &m.history);
	if (!rc)
		rc = meta_write(&m, META_PAIR_PROMISE, &m.promise);
	return rc ? rc : meta_write(&m, META_PAIR_SUPER, &m.super);
}

static int meta_refuse_super(const struct meta *m, struct error *err)
{
	struct mirror_versions ours = version_ours();

	if (version_is_known(m->super.format))
		return error_set(
			err, ERROR_LOCAL, EPROTONOSUPPORT,
			"the superblock has impossible values, or names a feature that this "
			"program does not support");
	return error_set(
		err, ERROR_LOCAL, EPROTONOSUPPORT,
		"the metadata have format %u, but this program understands formats %u to %u: %s",
		m->super.format, ours.lowest, ours.newest,
		m->super.format > ours.newest
			? "upgrade it"
			: "a release between them has to open the copy first");
}

/* Load the superblock. Without a superblock even the set of the copy is unknown. */
static int meta_load_super(struct meta *m, struct error *err)
{
	struct rcursor body;
	enum meta_found found;

	found = meta_pair_read(&m->store, META_PAIR_SUPER, &m->places[META_PAIR_SUPER], &body);
	if (found == META_FOUND_NOTHING)
		return error_set(err, ERROR_LOCAL, ENODATA,
				 "this is no metadata file of a mirror's copy, or its creation was "
				 "interrupted");
	if (found == META_FOUND_DAMAGED)
		return error_set(err, ERROR_LOCAL, EBADMSG,
				 "both superblocks are damaged, or this is no metadata file of a "
				 "mirror's copy");
	if (!meta_super_decode(&body, &m->super))
		return meta_refuse_super(m, err);
	if (found != META_FOUND)
		m->damage |= META_DAMAGED_SUPER;
	if (m->store.len < meta_size_for(m->super.size))
		return error_set(err, ERROR_LOCAL, EMSGSIZE,
				 "the metadata file has %llu bytes, and a set of %llu needs %llu",
				 (unsigned long long)m->store.len,
				 (unsigned long long)m->super.size,
				 (unsigned long long)meta_size_for(m->super.size));
	return 0;
}

/* Load a pair of slots. A result other than FOUND, or a missing body, is damage. The fields that
 * could be read are kept. */
static void meta_load_pair(struct meta *m, enum meta_pair_name pair)
{
	struct rcursor body;
	enum meta_found found = meta_pair_read(&m->store, pair, &m->places[pair], &body);
	bool is_good = found == META_FOUND || found == META_FOUND_OLDER;

	if (is_good && pair == META_PAIR_PROMISE)
		is_good = meta_promise_decode(&body, &m->promise);
	else if (is_good && pair == META_PAIR_HISTORY)
		is_good = meta_history_decode(&body, &m->history);
	else if (is_good)
		is_good = meta_members_decode(&body, &m->members);
	m->damage &= ~(1u << pair);
	if (!is_good || found != META_FOUND)
		m->damage |= 1u << pair;
	if (is_good)
		return;
	if (pair == META_PAIR_PROMISE)
		m->promise = (struct meta_promise){.seen.view.primary = MIRROR_NO_SLOT};
	else if (pair == META_PAIR_HISTORY)
		m->history = (struct meta_history){0};
	else
		m->members = (struct meta_members){0};
}

int meta_reload(struct meta *m)
{
	meta_hot_fini(m);
	meta_load_pair(m, META_PAIR_MEMBERS);
	meta_bitmap_load(m);
	return meta_hot_load(m);
}

static void meta_measure(struct meta *m)
{
	m->extents = (uint32_t)((m->super.size + MIRROR_EXTENT - 1) / MIRROR_EXTENT);
	m->blocks = m->super.size / MIRROR_BLOCK;
	m->plane_bytes = meta_plane_bytes(m->super.size);
}

int meta_load(struct meta *m, const struct meta_store *store, struct error *err)
{
	int rc;

	memset(m, 0, sizeof(*m));
	m->store = *store;
	if (store->len < META_BITMAPS_AT)
		return error_set(err, ERROR_LOCAL, EMSGSIZE,
				 "the metadata file is cut off: it has %llu bytes",
				 (unsigned long long)store->len);
	rc = meta_load_super(m, err);
	if (rc)
		return rc;
	meta_measure(m);
	meta_load_pair(m, META_PAIR_PROMISE);
	meta_load_pair(m, META_PAIR_HISTORY);
	if (meta_reload(m)) {
		meta_fini(m);
		return error_set(err, ERROR_LOCAL, ENOMEM, "no memory for the metadata of a copy");
	}
	return 0;
}

void meta_fini(struct meta *m)
{
	meta_hot_fini(m);
	memset(m->bitmap_counts, 0, sizeof(m->bitmap_counts));
}

int meta_settle(struct meta *m)
{
	int rc = 0;

	for (enum meta_pair_name pair = 0; !rc && pair < META_PAIRS; pair++)
		if (m->places[pair].counter)
			rc = meta_pair_settle(m, pair);
	return rc ? rc : meta_persist(m, META_HOT_AT, META_HOT_SLOTS * 8);
}

int meta_repair(struct meta *m)
{
	struct meta_super super = m->super;
	struct meta_promise promise = m->promise;
	int rc = 0;

	if (!m->damage)
		return 0;
	super.flags |= META_UNKNOWN;
	super.flags &= ~(uint32_t)META_CLEAN;
	rc = meta_set_super(m, &super);
	promise.is_lost = true;
	if (!rc && m->damage & META_DAMAGED_PROMISE)
		rc = meta_set_promise(m, &promise);
	if (!rc && m->damage & META_DAMAGED_HISTORY)
		rc = meta_set_history(m, &m->history);
	/* Stored bits and hot extents are complete only together (W3): if either is damaged, drop
	 * the bitmaps. */
	if (!rc && m->damage & (META_DAMAGED_MEMBERS | META_DAMAGED_HOT))
		rc = meta_bitmap_drop(m, MIRROR_NO_SLOT);
	if (!rc && m->damage & META_DAMAGED_HOT)
		rc = meta_hot_repair(m);
	if (!rc)
		m->damage = 0;
	return rc;
}

int meta_set_size(struct meta *m, uint64_t size)
{
	struct meta_super super = m->super;
	int rc = 0;

	if (size < super.size || size % MIRROR_BLOCK || size > MIRROR_SIZE_MAX)
		return -EINVAL;
	if (m->store.len < meta_size_for(size))
		return -EMSGSIZE;
	if (meta_plane_bytes(size) != m->plane_bytes)
		rc = meta_bitmap_drop(m, MIRROR_NO_SLOT);
	super.size = size;
	if (!rc)
		rc = meta_set_super(m, &super);
	if (rc)
		return rc;
	meta_measure(m);
	return meta_reload(m);
}

void meta_damage_text(unsigned damage, char *text, size_t room)
{
	static const char *const names[] = {"superblock", "promise", "history", "members",
					    "hot extents"};
	size_t len = 0;

	text[0] = '\0';
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (damage & 1u << i && len < room)
			len += (size_t)snprintf(text + len, room - len, "%s%s", len ? ", " : "",
						names[i]);
}
