/* SPDX-License-Identifier: BSD-3-Clause */
/* member.c -- a copy at the daemon's start, the copy's condition, and the process that maps it. */
#include "mirror/core/member.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mirror/core/killpoint.h"
#include "mirror/core/member_impl.h"

void member_yes(struct member_verdict *v)
{
	*v = (struct member_verdict){.answer = MEMBER_YES};
}

void member_no(struct member_verdict *v, enum member_reason reason, const char *fmt, ...)
{
	va_list args;

	*v = (struct member_verdict){.answer = MEMBER_NO, .reason = reason};
	va_start(args, fmt);
	vsnprintf(v->text, sizeof(v->text), fmt, args);
	va_end(args);
}

void member_done(struct member_verdict *v, int rc)
{
	if (rc)
		member_no(v, MEMBER_IO, "the metadata of the copy cannot be written: %s",
			  strerror(-rc));
	else
		member_yes(v);
}

const char *member_reason_name(enum member_reason reason)
{
	static const char *const names[MEMBER_REASONS] = {
		[MEMBER_OK] = "ok",
		[MEMBER_OTHER_SET] = "other-set",
		[MEMBER_OTHER_COPY] = "other-copy",
		[MEMBER_OTHER_SIZE] = "other-size",
		[MEMBER_EPOCH_OLD] = "epoch-old",
		[MEMBER_EPOCH_TWIN] = "epoch-twin",
		[MEMBER_NOT_PROMISED] = "not-promised",
		[MEMBER_IS_HELD] = "held",
		[MEMBER_HAS_FAILED] = "failed",
		[MEMBER_IS_SYNCING] = "syncing",
		[MEMBER_IS_UNKNOWN] = "unknown",
		[MEMBER_NOT_BEGUN] = "not-begun",
		[MEMBER_IS_SPLIT] = "split",
		[MEMBER_IO] = "io",
	};

	return (unsigned)reason < MEMBER_REASONS ? names[reason] : "?";
}

struct member_epoch_text member_epoch_text(struct mirror_epoch epoch)
{
	struct member_epoch_text t;

	snprintf(t.text, sizeof(t.text), "%" PRIu64 ".%" PRIx64, epoch.number, epoch.nonce);
	return t;
}

int member_set_super(struct member *m, const struct meta_super *super)
{
	if (!memcmp(super, &m->meta->super, sizeof(*super)))
		return m->meta->broken;
	return meta_set_super(m->meta, super);
}

bool member_has_bitmaps(const struct member *m)
{
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (m->meta->members.members[slot].has_bitmap)
			return true;
	return false;
}

/* If the host has restarted, its former holder is gone and placed intents may be lost: record
 * both. */
static int member_note_boot(struct member *m)
{
	static const struct mirror_uuid none;
	struct meta_super super = m->meta->super;
	const struct mirror_uuid *used = &super.used_boot;

	if (super.holder.pid && memcmp(&super.holder.boot, &m->boot, sizeof(m->boot)))
		super.holder = (struct meta_holder){0};
	/* Intents are placed without being flushed, so a restart of the host loses them. */
	if (memcmp(used, &none, sizeof(none)) && memcmp(used, &m->boot, sizeof(m->boot)))
		super.flags |= META_UNCERTAIN;
	return member_set_super(m, &super);
}

int member_init(struct member *m, struct meta *meta, const struct mirror_uuid *boot)
{
	int rc;

	*m = (struct member){.meta = meta, .boot = *boot};
	rc = meta_repair(meta);
	if (!rc)
		rc = meta_settle(meta);
	if (!rc)
		rc = member_note_boot(m);
	if (!rc && !meta->super.holder.pid)
		rc = meta_hot_fold(meta);
	return rc;
}

void member_distrust(struct meta_super *super)
{
	super->flags |= META_SYNCING | META_UNKNOWN | META_UNCERTAIN;
	super->flags &= ~(uint32_t)META_CLEAN;
	super->source_id = 0;
}

void member_set_files(struct member *m, const struct meta_files *files, struct member_verdict *v)
{
	struct meta_super super = m->meta->super;
	const struct meta_files *was = &super.files;

	if ((was->meta_inode && was->meta_inode != files->meta_inode) ||
	    (was->data_inode && was->data_inode != files->data_inode) ||
	    (was->data_time_ns && was->data_time_ns != files->data_time_ns))
		member_distrust(&super);
	super.files = *files;
	super.files.data_time_ns = 0; /* the file changes from now on */
	member_done(v, member_set_super(m, &super));
}

void member_leave_files(struct member *m, const struct meta_files *files, struct member_verdict *v)
{
	struct meta_super super = m->meta->super;

	if (!super.holder.pid) /* if a process holds the copy, it changes the file meanwhile */
		super.files = *files;
	member_done(v, member_set_super(m, &super));
}

void member_fini(struct member *m)
{
	free(m->ranges);
	m->ranges = NULL;
	m->range_count = m->range_room = 0;
}

enum mirror_copy member_copy(const struct member *m, bool asked)
{
	const struct meta *meta = m->meta;
	const struct mirror_view *seen = &meta->promise.seen.view;

	if (m->has_failed || meta->broken || meta->super.flags & META_FAILED)
		return MIRROR_COPY_FAILED;
	if (meta->super.flags & META_SYNCING)
		return MIRROR_COPY_SYNCING;
	if (meta->super.flags & META_UNKNOWN || meta->damage || m->is_split)
		return MIRROR_COPY_UNKNOWN;
	if (meta->super.flags & META_EMPTY)
		return MIRROR_COPY_EMPTY;
	if (!meta->promise.seen.revision && !seen->epoch.number)
		return MIRROR_COPY_UNKNOWN;
	if (!(seen->insync & MIRROR_BIT(meta->super.slot)))
		return MIRROR_COPY_STALE;
	return asked ? MIRROR_COPY_INSYNC : MIRROR_COPY_UNKNOWN;
}

bool member_is_free(const struct member *m, struct member_verdict *v)
{
	if (!m->meta->super.holder.pid)
		return true;
	member_no(v, MEMBER_IS_HELD, "process %" PRIu64 " maps the copy; end it, or let it unmap",
		  m->meta->super.holder.pid);
	return false;
}

bool member_is_good(const struct member *m, struct member_verdict *v)
{
	if (!m->has_failed && !m->meta->broken && !(m->meta->super.flags & META_FAILED))
		return true;
	member_no(v, MEMBER_HAS_FAILED,
		  "the medium of the copy, or a write-back, failed; when the medium is good again, "
		  "restart rpmirrord; if that does not help, 'rpmirror member replace' gives the "
		  "member a new copy");
	return false;
}

void member_hold(struct member *m, const struct meta_holder *holder, struct member_verdict *v)
{
	struct meta_super super = m->meta->super;

	if (!memcmp(holder, &super.holder, sizeof(*holder))) {
		member_yes(v);
		return;
	}
	if (!member_is_good(m, v) || !member_is_free(m, v))
		return;
	super.holder = *holder;
	super.flags &= ~(uint32_t)META_CLEAN;
	killpoint(KILLPOINT_w7_hold_before);
	member_done(v, member_set_super(m, &super));
	killpoint(KILLPOINT_w7_hold_after);
}

void member_serve(struct member *m, struct mirror_epoch epoch, bool forced,
		  struct member_verdict *v)
{
	struct meta_super super = m->meta->super;

	if (!member_is_promised(m, epoch, v) || !member_is_good(m, v))
		return;
	if (!super.holder.pid) {
		member_no(v, MEMBER_NOT_BEGUN, "no process holds the copy");
		return;
	}
	super.epoch = epoch;
	super.flags &= ~(uint32_t)META_EMPTY;
	super.flags |= META_WAS_PRIMARY;
	if (forced) {
		/* A copy that is promoted by force is good by definition: all others are made
		 * equal to it. */
		super.flags &= ~(uint32_t)(META_SYNCING | META_UNKNOWN);
		super.flags |= META_FORCED;
		super.source_id = 0;
		super.source_epoch = (struct mirror_epoch){0};
	}
	killpoint(KILLPOINT_w7_serve_before);
	member_done(v, member_set_super(m, &super));
	killpoint(KILLPOINT_w7_serve_after);
}

void member_release(struct member *m, bool clean, struct member_verdict *v)
{
	struct meta_super super = m->meta->super;
	int rc = meta_reload(m->meta);

	/* Records that only the holder had in memory are lost; from now on only the stored records
	 * count. */
	if (!rc)
		rc = meta_repair(m->meta);
	if (!rc)
		rc = meta_settle(m->meta);
	if (!rc)
		rc = meta_hot_fold(m->meta);
	super.flags |= m->meta->super.flags;
	super.holder = (struct meta_holder){0};
	if (clean && !m->meta->hot_count) {
		super.flags &= ~(uint32_t)META_WAS_PRIMARY;
		super.flags |= META_CLEAN;
	}
	killpoint(KILLPOINT_w7_release_before);
	member_done(v, rc ? rc : member_set_super(m, &super));
	killpoint(KILLPOINT_w7_release_after);
}

void member_doubt(struct member *m, struct member_verdict *v)
{
	struct meta_super super = m->meta->super;

	member_distrust(&super);
	member_done(v, member_set_super(m, &super));
}

void member_lose(struct member *m, struct member_verdict *v)
{
	m->has_failed = true;
	member_doubt(m, v);
}

void member_fail(struct member *m, struct member_verdict *v)
{
	struct meta_super super = m->meta->super;

	m->has_failed = true;
	super.flags |= META_FAILED;
	super.flags &= ~(uint32_t)META_CLEAN;
	member_done(v, member_set_super(m, &super));
}
