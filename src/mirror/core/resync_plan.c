/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/core/resync_plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "mirror/core/meta.h"

struct resync_plan_why {
	char *text;
	size_t size;
};

static enum resync_verdict __attribute__((format(printf, 3, 4)))
resync_plan_because(struct resync_plan_why why, enum resync_verdict verdict, const char *format,
		    ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why.text, why.size, format, args);
	va_end(args);
	return verdict;
}

enum resync_plan_known { PLAN_KNOWN, PLAN_FORGOTTEN, PLAN_UNKNOWN };

/* Find out whether the register ever had that epoch. */
static enum resync_plan_known resync_plan_epoch(const struct mirror_record *rec,
						struct mirror_epoch epoch)
{
	uint64_t oldest = rec->view.epoch.number;

	if (!epoch.number || mirror_epoch_is_equal(epoch, rec->view.epoch))
		return PLAN_KNOWN;
	for (uint32_t i = 0; i < rec->history_count; i++) {
		if (mirror_epoch_is_equal(epoch, rec->history[i].epoch))
			return PLAN_KNOWN;
		oldest = rec->history[i].epoch.number;
	}
	return rec->history_count == MIRROR_HISTORY && epoch.number < oldest ? PLAN_FORGOTTEN
									     : PLAN_UNKNOWN;
}

static bool resync_plan_is_other_copy(const struct resync_facts *f, struct resync_plan_why why)
{
	const struct mirror_config *config = &f->rec->config;

	if (memcmp(&f->uuid, &config->uuid, sizeof(f->uuid)))
		resync_plan_because(
			why, RESYNC_PLAN_REFUSE, "it is a copy of set %s, this is set %s",
			mirror_uuid_text(&f->uuid).text, mirror_uuid_text(&config->uuid).text);
	else if (f->copy_id != config->members[f->slot].id)
		resync_plan_because(why, RESYNC_PLAN_REFUSE,
				    "it is copy %llx, and the configuration names copy %llx",
				    (unsigned long long)f->copy_id,
				    (unsigned long long)config->members[f->slot].id);
	else if (f->size < f->own_size)
		resync_plan_because(why, RESYNC_PLAN_REFUSE,
				    "its size is %llu, and the mapping's is %llu",
				    (unsigned long long)f->size, (unsigned long long)f->own_size);
	else
		return false;
	return true;
}

static bool resync_plan_is_refused(const struct resync_facts *f, struct resync_plan_why why)
{
	const struct mirror_view *view = &f->rec->view;

	if (resync_plan_is_other_copy(f, why))
		return true;
	if (view->primary != f->self || !(view->insync & MIRROR_BIT(f->self)))
		resync_plan_because(why, RESYNC_PLAN_REFUSE,
				    "this host is not the primary, or its copy is not in sync");
	else if (f->held)
		resync_plan_because(why, RESYNC_PLAN_REFUSE,
				    "a process of a former epoch still maps it");
	else if (f->copy == MIRROR_COPY_FAILED)
		resync_plan_because(why, RESYNC_PLAN_REFUSE,
				    "its medium has failed: 'rpmirror member replace' gives the "
				    "member a new copy");
	else
		return false;
	return true;
}

/* Returns the verdict for a member that holds all acknowledged bytes. */
static enum resync_verdict resync_plan_of_insync(const struct resync_facts *f,
						 struct resync_plan_why why)
{
	bool serving = f->rec->view.phase == MIRROR_PHASE_SERVING;

	if (f->uncertain || (!serving && f->own_uncertain))
		return resync_plan_because(
			why, RESYNC_PLAN_DIGESTS,
			"records of the ranges that may differ were lost with a host");
	if (serving ? f->unacknowledged : f->own_records || f->records)
		return resync_plan_because(
			why, RESYNC_PLAN_RECORDS,
			serving ? "flushes were under way to it"
				: "the former primary ended with flushes under way");
	return resync_plan_because(why, RESYNC_PLAN_NOTHING,
				   "nothing has changed since it was equal");
}

static enum resync_verdict resync_plan_of_absent(const struct resync_facts *f,
						 struct resync_plan_why why)
{
	uint64_t own_id = f->rec->config.members[f->self].id;

	if (f->is_discarded)
		return resync_plan_because(why, RESYNC_PLAN_DIGESTS,
					   "an operator discarded its content");
	if (f->copy == MIRROR_COPY_UNKNOWN || f->uncertain)
		return resync_plan_because(why, RESYNC_PLAN_DIGESTS,
					   "its records of the ranges that may differ are lost");
	if (f->copy == MIRROR_COPY_SYNCING && f->source_id != own_id)
		return resync_plan_because(why, RESYNC_PLAN_DIGESTS,
					   "its last resync was from another copy and did not end");
	if (!f->bitmap_is_usable)
		return resync_plan_because(
			why, RESYNC_PLAN_DIGESTS,
			"there is no record of the changes since it was in sync");
	return resync_plan_because(why, RESYNC_PLAN_BITMAP,
				   f->copy == MIRROR_COPY_SYNCING
					   ? "its resync continues where it stopped"
					   : "it was away");
}

enum resync_verdict resync_plan(const struct resync_facts *f, char *text, size_t size)
{
	struct resync_plan_why why = {text, size};
	enum resync_plan_known known = resync_plan_epoch(f->rec, f->epoch);

	if (resync_plan_is_refused(f, why))
		return RESYNC_PLAN_REFUSE;
	if (f->copy == MIRROR_COPY_EMPTY)
		return resync_plan_because(why, RESYNC_PLAN_FULL, "it is empty");
	if (known == PLAN_UNKNOWN && !f->is_discarded)
		return resync_plan_because(
			why, RESYNC_PLAN_SPLIT,
			"it holds flushes of epoch %llu (%llx), unknown to the register: "
			"choose the copy to discard (rpmirror resolve)",
			(unsigned long long)f->epoch.number, (unsigned long long)f->epoch.nonce);
	if (known == PLAN_FORGOTTEN)
		return resync_plan_because(
			why, RESYNC_PLAN_DIGESTS,
			"it was away for more epochs than the register remembers");
	if (f->rec->view.insync & MIRROR_BIT(f->slot))
		return resync_plan_of_insync(f, why);
	return resync_plan_of_absent(f, why);
}

const char *resync_verdict_2str(enum resync_verdict verdict)
{
	static const char *const names[RESYNC_PLAN_COUNT] = {
		[RESYNC_PLAN_REFUSE] = "refuse",   [RESYNC_PLAN_SPLIT] = "split",
		[RESYNC_PLAN_NOTHING] = "nothing", [RESYNC_PLAN_RECORDS] = "records",
		[RESYNC_PLAN_BITMAP] = "bitmap",   [RESYNC_PLAN_DIGESTS] = "digests",
		[RESYNC_PLAN_FULL] = "full",
	};

	return verdict < RESYNC_PLAN_COUNT ? names[verdict] : "?";
}
