/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * health.c -- finds out whether a set is served and how well, as far as this host can see. The
 * register shows which member may serve, but not whether the member serves: only the primary's
 * process, or the daemon on its host, can confirm this. Without a confirmation a set does not
 * count as healthy.
 */
#include <string.h>

#include "mirrord/copies.h"
#include "mirrord/findings.h"
#include "mirrord/health.h"

/* Fill *words if the primary is on this host. */
static void health_ask_own(const struct set *s, struct primary_words *words)
{
	words->report = set_report(s);
	words->copy = copy_state(s);
	words->status = words->report ? &words->report->status : NULL;
	words->is_silent = set_is_silent(s);
	words->has_ended = !s->holder.pid;
}

static void health_ask_neighbour(const struct set *s, uint8_t primary, struct primary_words *words)
{
	struct neighbour_answer answer;

	neighbours_get(s->neighbours, primary, &answer);
	if (!answer.answers) {
		words->is_unreachable = answer.why_not[0];
		return;
	}
	words->of_neighbour = answer.status;
	words->copy = (enum mirror_copy)answer.status.copy;
	words->is_silent = answer.status.flags & MESSAGE_STATUS_SILENT;
	words->has_ended = !(answer.status.flags & MESSAGE_STATUS_HELD);
	if (!words->is_silent && answer.status.role == MIRROR_ROLE_PRIMARY)
		words->status = &words->of_neighbour;
}

void health_ask_primary(const struct set *s, struct primary_words *words)
{
	uint8_t primary = s->entry.record.view.primary;

	memset(words, 0, sizeof(*words));
	if (!s->has_entry || !s->is_open || primary == MIRROR_NO_SLOT)
		return;
	if (primary == s->meta.super.slot)
		health_ask_own(s, words);
	else
		health_ask_neighbour(s, primary, words);
}

static bool health_is_to_serve(const struct set *s)
{
	return !s->is_split && s->has_entry && s->entry.record.view.phase == MIRROR_PHASE_SERVING;
}

bool health_is_removed(const struct set *s)
{
	return s->is_split && s->split_reason == MEMBER_OTHER_COPY &&
	       !s->entry.record.config.members[s->meta.super.slot].id;
}

const char *health_doubt(const struct set *s, const struct primary_words *words)
{
	if (!health_is_to_serve(s) || words->status)
		return NULL;
	if (words->is_silent)
		return "the primary's process runs, but has not reported for some seconds: the "
		       "following comes from the register alone";
	if (words->has_ended)
		return "the primary's process has ended, and no member has taken over yet";
	if (words->is_unreachable)
		return "the primary's daemon does not answer, so it is unknown here whether "
		       "the primary serves: the following comes from the register alone";
	if (!s->register_answers)
		return "neither the register nor the primary's daemon answers";
	return NULL;
}

enum mirror_health health_by_register(const struct set *s)
{
	if (s->is_split)
		return MIRROR_HEALTH_SPLIT;
	/* If the daemon of the primary's host cannot open the copy, it does not renew the lease. */
	if (!health_is_to_serve(s) ||
	    (!s->is_open && set_own_slot(s) == s->entry.record.view.primary))
		return MIRROR_HEALTH_DOWN;
	return s->entry.record.view.insync == mirror_config_members(&s->entry.record.config)
		       ? MIRROR_HEALTH_HEALTHY
		       : MIRROR_HEALTH_DEGRADED;
}

static enum mirror_health health_by_words(const struct set *s, const struct primary_words *words)
{
	/* true if the primary serves from a copy that is no longer in-sync */
	bool lacks_own = words->copy != MIRROR_COPY_INSYNC && words->copy != MIRROR_COPY_UNKNOWN;

	if (s->is_split)
		return MIRROR_HEALTH_SPLIT;
	/* Without the register no member can be excluded, and no member can take over. */
	if (words->status && words->status->health == MIRROR_HEALTH_HEALTHY &&
	    (lacks_own || !s->register_answers || reg_refusal(s)))
		return MIRROR_HEALTH_DEGRADED;
	if (words->status)
		return (enum mirror_health)words->status->health;
	if (health_doubt(s, words))
		return words->has_ended ? MIRROR_HEALTH_DOWN : MIRROR_HEALTH_BLOCKED;
	return health_by_register(s);
}

enum mirror_health health_of(const struct set *s, const struct primary_words *words)
{
	enum mirror_health health = health_by_words(s, words);

	if (health_is_removed(s))
		/* the set has no primary, and nothing has to be resolved first */
		return MIRROR_HEALTH_DOWN;
	return health == MIRROR_HEALTH_HEALTHY && findings_spoil(s) ? MIRROR_HEALTH_DEGRADED
								    : health;
}
