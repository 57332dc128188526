/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirrord/findings.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define FINDINGS_NEXT                                                                              \
	"decide which copy counts: 'rpmirror verify --repair' on the primary's host makes the "    \
	"others equal to the primary's; if another copy is right, make its member the primary "    \
	"before"

/* ---- the daemon that has findings ---- */

static const struct findings *findings_own(const struct set *s)
{
	return &s->meta.super.findings;
}

bool findings_has_own(const struct set *s)
{
	return s->is_open && findings_has_any(findings_own(s));
}

/* Returns the slot of a member whose daemon reports findings, or MIRROR_NO_SLOT. */
static uint8_t findings_of_neighbour(const struct set *s)
{
	const struct mirror_config *config = &s->entry.record.config;
	struct neighbour_answer answer;

	for (uint8_t slot = 0; s->has_entry && slot < MIRROR_MEMBERS_MAX; slot++) {
		if (!config->members[slot].id || (s->is_open && slot == s->meta.super.slot))
			continue;
		neighbours_get(s->neighbours, slot, &answer);
		if (answer.answers && answer.status.flags & MESSAGE_STATUS_DIFFERS)
			return slot;
	}
	return MIRROR_NO_SLOT;
}

bool findings_spoil(const struct set *s)
{
	return findings_has_own(s) || findings_of_neighbour(s) != MIRROR_NO_SLOT;
}

static bool findings_are_none(const struct set *s)
{
	const struct findings *f = findings_own(s);

	return s->is_open && f->is_whole && !findings_has_any(f) && s->holder.epoch.number &&
	       mirror_epoch_is_equal(f->epoch, s->holder.epoch);
}

uint8_t findings_flags(const struct set *s)
{
	return (uint8_t)((findings_has_own(s) ? MESSAGE_STATUS_DIFFERS : 0) |
			 (findings_are_none(s) ? MESSAGE_STATUS_COMPARED : 0));
}

bool findings_forbid_promotion(const struct set *s)
{
	return s->is_open && findings_has_wrong(findings_own(s), FINDING_PRIMARY) &&
	       s->entry.record.view.insync & (mirror_mask)~MIRROR_BIT(s->meta.super.slot);
}

/* ---- findings that were repaired since ---- */

/* Returns the slots whose copy has changed since the last call, because the member was replaced or
 * removed. */
static mirror_mask findings_replaced(struct set *s)
{
	mirror_mask replaced = 0;

	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		uint64_t known = s->known_ids[slot], now = s->entry.record.config.members[slot].id;

		if (!known)
			known = s->meta.members.members[slot].id;
		if (known && known != now)
			replaced |= MIRROR_BIT(slot);
		s->known_ids[slot] = now;
	}
	return replaced;
}

static bool findings_forget_replaced(struct set *s, struct findings *f)
{
	mirror_mask named = f->more_members, replaced = findings_replaced(s);

	for (unsigned i = 0; i < f->count; i++)
		named |= f->list[i].members;
	if (!(named & replaced))
		return false;
	findings_forget(f, replaced);
	return true;
}

static bool findings_were_compared(const struct set *s)
{
	const struct mirror_view *view = &s->entry.record.view;
	struct neighbour_answer answer;

	if (view->primary == MIRROR_NO_SLOT || view->primary == s->meta.super.slot ||
	    findings_own(s)->epoch.number >= view->epoch.number)
		return false;
	neighbours_get(s->neighbours, view->primary, &answer);
	return answer.answers && answer.status.role == MIRROR_ROLE_PRIMARY &&
	       answer.status.flags & MESSAGE_STATUS_COMPARED;
}

void findings_look(struct set *s)
{
	struct meta_super super;
	bool is_changed;

	if (!findings_has_own(s) || !s->has_entry) {
		memset(s->known_ids, 0, sizeof(s->known_ids));
		return;
	}
	super = s->meta.super;
	is_changed = findings_forget_replaced(s, &super.findings);
	is_changed |= findings_on_insync(&super.findings, s->entry.record.view.insync);
	if (findings_were_compared(s)) {
		memset(&super.findings, 0, sizeof(super.findings));
		is_changed = true;
	}
	if (is_changed && meta_set_super(&s->meta, &super))
		LOG_ERROR("set %s: cannot record that the copies are equal again", s->conf->name);
}

/* ---- the texts ---- */

static const char *findings_verdict(const struct findings *f)
{
	if (findings_has_wrong(f, FINDING_PRIMARY))
		return "a majority of the copies agrees, but the primary's differs";
	if (findings_has_wrong(f, FINDING_UNDECIDED) || f->more)
		return "no majority of the copies agrees, so the right copy is unknown";
	return "a majority of the copies agrees, but this copy differs";
}

static const char *findings_name(const struct set *s, mirror_mask members)
{
	const struct mirror_config *config = &s->entry.record.config;
	unsigned slot = members ? (unsigned)__builtin_ctz(members) : 0;

	return config->members[slot].id ? config->members[slot].name : "a former member";
}

static void findings_print_own(const struct set *s, char *text, size_t size)
{
	const struct findings *f = findings_own(s);
	const struct finding *first = &f->list[0];
	time_t found = (time_t)f->time_s;
	struct tm tm;
	char when[32] = "";

	if (gmtime_r(&found, &tm))
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	if (!f->count)
		snprintf(text, size, "%" PRIu64 " bytes of the copies differ (found %s)",
			 findings_bytes(f), when);
	else
		snprintf(text, size,
			 "the copy of %s differs from the primary's in %" PRIu64
			 " bytes at offset %" PRIu64 "%s (found %s): %s",
			 findings_name(s, first->members), first->range.len, first->range.offset,
			 f->count > 1 || f->more ? ", and there is more" : "", when,
			 findings_verdict(f));
}

static bool findings_are_due(const struct findings *f)
{
	bool all = !f->more;

	for (unsigned i = 0; i < f->count; i++)
		all = all && f->list[i].is_due;
	return all;
}

bool findings_has_open(const struct set *s)
{
	return findings_has_own(s) && !findings_are_due(findings_own(s));
}

void findings_get_words(const struct set *s, struct findings_words *words)
{
	words->next = FINDINGS_NEXT;
	if (findings_has_own(s)) {
		findings_print_own(s, words->why, sizeof(words->why));
		if (findings_are_due(findings_own(s)))
			words->next =
				"'rpmirror resume MEMBER' lets the member return, and a resync "
				"makes its copy equal";
		return;
	}
	snprintf(words->why, sizeof(words->why),
		 "a comparison has found that copies differ; the status on the host of %s shows "
		 "more",
		 findings_name(s, MIRROR_BIT(findings_of_neighbour(s) % MIRROR_MEMBERS_MAX)));
}

static json_t *findings_json_members(const struct set *s, mirror_mask members)
{
	json_t *out = json_array();

	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (members & MIRROR_BIT(slot))
			json_array_append_new(out, json_string(findings_name(s, MIRROR_BIT(slot))));
	return out;
}

json_t *findings_json(const struct set *s)
{
	const struct findings *f = findings_own(s);
	json_t *ranges = json_array();

	for (unsigned i = 0; i < f->count; i++)
		json_array_append_new(ranges,
				      json_pack("{s:I, s:I, s:s, s:b, s:o}", "offset",
						(json_int_t)f->list[i].range.offset, "length",
						(json_int_t)f->list[i].range.len, "wrong",
						finding_wrong_2str(f->list[i].wrong), "due",
						(int)f->list[i].is_due, "members",
						findings_json_members(s, f->list[i].members)));
	return json_pack("{s:I, s:I, s:o, s:I}", "time", (json_int_t)f->time_s, "epoch",
			 (json_int_t)f->epoch.number, "ranges", ranges, "more",
			 (json_int_t)f->more);
}
