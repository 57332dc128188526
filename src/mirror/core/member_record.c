/* SPDX-License-Identifier: BSD-3-Clause */
/* member_record.c -- keeps a part of the register's record in a copy, and detects a register that
 * is older than the copy. */
#include <inttypes.h>
#include <string.h>

#include "mirror/core/member_impl.h"
#include "mirror/core/view.h"

/* Returns true if the record contains this epoch. An epoch that is too old for the record's
 * history counts as contained. */
static bool member_record_knows(const struct mirror_record *rec, struct mirror_epoch epoch)
{
	const struct mirror_view *view = &rec->view;
	uint32_t n = rec->history_count;

	if (!epoch.number || mirror_epoch_is_equal(epoch, view->epoch))
		return true;
	for (uint32_t i = 0; i < n; i++)
		if (mirror_epoch_is_equal(epoch, rec->history[i].epoch))
			return true;
	return n == MIRROR_HISTORY && epoch.number < rec->history[n - 1].epoch.number;
}

static bool member_is_ours(const struct member *m, const struct mirror_record *rec,
			   struct member_verdict *v)
{
	const struct meta_super *super = &m->meta->super;
	const struct mirror_config *config = &rec->config;

	if (memcmp(&config->uuid, &super->uuid, sizeof(super->uuid)))
		member_no(v, MEMBER_OTHER_SET,
			  "the register has another set '%s' (%s), but this copy is of set '%s' "
			  "(%s): correct 'register' or 'data' in the daemon's configuration",
			  config->set, mirror_uuid_text(&config->uuid).text, super->set,
			  mirror_uuid_text(&super->uuid).text);
	else if (!config->members[super->slot].id)
		member_no(v, MEMBER_OTHER_COPY,
			  "copy %016" PRIx64 " of this host was removed from the set",
			  super->member_id);
	else if (config->members[super->slot].id != super->member_id)
		member_no(v, MEMBER_OTHER_COPY,
			  "copy %016" PRIx64 " was replaced by %016" PRIx64
			  " as member %u, or is another host's. If the register was restored: "
			  "'rpmirror member replace %s %s'. Then, for a new copy: 'rpmirror init "
			  "--join'",
			  super->member_id, config->members[super->slot].id, super->slot,
			  super->set, config->members[super->slot].name);
	/* if the size is larger, the copy grows: see member_size.c */
	else if (config->size < super->size)
		member_no(v, MEMBER_OTHER_SIZE,
			  "the set has %" PRIu64 " bytes, and this copy %" PRIu64
			  ": the register was restored to a state before the set grew; let the set "
			  "grow again by 'rpmirror grow %s %" PRIu64 "'",
			  config->size, super->size, super->set, super->size);
	else
		return true;
	return false;
}

/* Returns true if the copy has seen an epoch or view that the register lacks. */
static bool member_is_ahead(const struct member *m, const struct mirror_record *rec,
			    struct member_verdict *v)
{
	const struct meta_promise *promise = &m->meta->promise;
	const struct meta_seen *seen = &promise->seen;
	struct mirror_epoch of_data = m->meta->super.epoch;
	struct member_epoch_text has = member_epoch_text(rec->view.epoch);

	if (!member_record_knows(rec, of_data))
		member_no(
			v, MEMBER_IS_SPLIT,
			"this copy holds flushes of epoch %s, which the register (now %s) does not "
			"have: the register was restored, or a promotion was forced",
			member_epoch_text(of_data).text, has.text);
	else if (view_compare(rec, &seen->view) >= VIEW_NEWER)
		member_no(v, MEMBER_IS_SPLIT,
			  "this member has seen epoch %s seq %" PRIu64
			  " with the in-sync members %#x in the register, which is at %s seq "
			  "%" PRIu64 ": the register was restored",
			  member_epoch_text(seen->view.epoch).text, seen->view.seq,
			  seen->view.insync, has.text, rec->view.seq);
	else if (rec->config.number < seen->config_number)
		member_no(v, MEMBER_IS_SPLIT,
			  "this member has seen configuration %" PRIu64
			  " in the register, which has %" PRIu64 ": the register was restored",
			  seen->config_number, rec->config.number);
	else if (!promise->is_lost && !member_record_knows(rec, promise->epoch) &&
		 promise->epoch.number <= rec->view.epoch.number)
		member_no(v, MEMBER_IS_SPLIT,
			  "this member has promised epoch %s, which the register (now %s) does not "
			  "have",
			  member_epoch_text(promise->epoch).text, has.text);
	else
		return false;
	v->known = rec->view.epoch;
	return true;
}

/* Returns true if the copy's metadata are older than the record. Each member of an in-sync set
 * that serves or ended well has promised the set's epoch. If this copy's metadata lack that
 * promise, they are an old, restored state, and the data may be old, too. */
static bool member_has_older_metadata(const struct member *m, const struct mirror_record *rec)
{
	const struct mirror_view *view = &rec->view;
	bool has_served = view->phase == MIRROR_PHASE_SERVING ||
			  (view->phase == MIRROR_PHASE_NONE && view->clean && view->epoch.number);

	return has_served && view->insync & MIRROR_BIT(m->meta->super.slot) &&
	       m->meta->promise.epoch.number < view->epoch.number;
}

static int member_keep_seen(struct member *m, const struct mirror_record *rec, uint64_t revision)
{
	struct meta_promise promise = m->meta->promise;

	promise.seen = (struct meta_seen){
		.revision = revision, .view = rec->view, .config_number = rec->config.number};
	if (promise.is_lost && promise.epoch.number < rec->view.epoch.number)
		promise.epoch = rec->view.epoch;
	promise.is_lost = false;
	return meta_set_promise(m->meta, &promise);
}

static int member_keep_history(struct member *m, const struct mirror_record *rec)
{
	struct meta_history history = {.count = rec->history_count};

	for (uint32_t i = 0; i < rec->history_count; i++)
		history.ended[i] = (struct mirror_ended){.epoch = rec->history[i].epoch,
							 .seq = rec->history[i].seq};
	if (!memcmp(&history, &m->meta->history, sizeof(history)))
		return m->meta->broken;
	return meta_set_history(m->meta, &history);
}

static int member_keep(struct member *m, const struct mirror_record *rec, uint64_t revision)
{
	struct meta_super super = m->meta->super;
	bool is_held = super.holder.pid != 0;
	int rc = 0;

	if (member_has_older_metadata(m, rec)) {
		member_distrust(&super);
		rc = member_set_super(m, &super);
	}
	/* While the copy is held, the member table and the bitmaps belong to the holder. */
	if (!rc && !is_held && m->meta->members.config_number != rec->config.number)
		rc = meta_keep_members(m->meta, &rec->config);
	if (!rc)
		rc = member_keep_history(m, rec);
	return rc ? rc : member_keep_seen(m, rec, revision);
}

void member_on_record(struct member *m, const struct mirror_record *rec, uint64_t revision,
		      struct member_verdict *v)
{
	const struct meta_seen *seen = &m->meta->promise.seen;

	if (!member_is_ours(m, rec, v)) {
		/* A set never shrinks, so this register is older than this copy. */
		m->is_split |= v->reason == MEMBER_OTHER_SIZE;
		return;
	}
	m->is_split = member_is_ahead(m, rec, v);
	if (m->is_split)
		return;
	if (!m->meta->promise.is_lost && seen->revision == revision &&
	    seen->config_number == rec->config.number && seen->view.seq == rec->view.seq &&
	    mirror_epoch_is_equal(seen->view.epoch, rec->view.epoch))
		member_done(v, m->meta->broken);
	else
		member_done(v, member_keep(m, rec, revision));
	/* Raise the format of the copy's files. This is permitted because all daemons and processes
	 * of the set understand the format. */
	if (v->answer == MEMBER_YES && rec->config.format > m->meta->super.format) {
		struct meta_super super = m->meta->super;

		super.format = rec->config.format;
		member_done(v, meta_set_super(m->meta, &super));
	}
}

void member_on_view(struct member *m, const struct mirror_view *view, struct member_verdict *v)
{
	struct meta_promise promise = m->meta->promise;
	bool is_newer;

	if (!member_is_promised(m, view->epoch, v))
		return;
	is_newer =
		promise.seen.view.epoch.number < view->epoch.number ||
		(mirror_epoch_is_equal(promise.seen.view.epoch, view->epoch) &&
		 (promise.seen.view.seq < view->seq || (promise.seen.view.seq == view->seq &&
							promise.seen.view.insync & ~view->insync)));
	promise.seen.view = *view;
	member_done(v, is_newer ? meta_set_promise(m->meta, &promise) : m->meta->broken);
}

void member_may_discard(const struct member *m, const struct mirror_record *rec,
			struct member_verdict *v)
{
	if (member_is_ours(m, rec, v) && member_is_free(m, v))
		member_yes(v);
}

void member_discard(struct member *m, const struct mirror_record *rec, uint64_t revision,
		    struct member_verdict *v)
{
	struct meta_super super = m->meta->super;
	struct meta_promise promise = m->meta->promise;
	int rc;

	member_may_discard(m, rec, v);
	if (v->answer != MEMBER_YES)
		return;
	member_distrust(&super);
	super.flags &= ~(uint32_t)(META_WAS_PRIMARY | META_FORCED);
	super.epoch = (struct mirror_epoch){0};
	rc = member_set_super(m, &super);
	if (!rc)
		rc = meta_bitmap_drop(m->meta, MIRROR_NO_SLOT);
	promise.epoch = rec->view.epoch;
	promise.seen = (struct meta_seen){.view = {.primary = MIRROR_NO_SLOT}};
	promise.is_lost = false;
	if (!rc)
		rc = meta_set_promise(m->meta, &promise);
	if (!rc)
		rc = member_keep(m, rec, revision);
	m->is_split = false;
	member_done(v, rc);
}
