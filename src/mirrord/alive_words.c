/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alive_words.c -- describes the state of a serving primary by its alive key. This host has no
 * other evidence: the primary may be dead, cut off or stopped, and no member may take over before
 * the primary's lease is over.
 */
#include <stdio.h>

#include "mirrord/health.h"
#include "mirrord/status_words.h"

static uint64_t alive_silent_ms(const struct set *s)
{
	return s->candidate.has_seen && s->seen_ms > s->candidate.since_ms
		       ? s->seen_ms - s->candidate.since_ms
		       : 0;
}

/* Returns true if the register names a primary, this host's process does not serve, and the alive
 * key was read after the primary's epoch became known. */
static bool alive_is_known(const struct set *s)
{
	const struct mirror_view *view = &s->entry.record.view;

	return s->is_open && s->has_entry && s->register_answers && !s->is_split &&
	       !s->holder.epoch.number && view->primary != MIRROR_NO_SLOT && s->seen_ms &&
	       (!s->seen.is_set || mirror_epoch_is_equal(s->seen.epoch, view->epoch));
}

static void alive_say_over(const struct set *s, const char *member, struct fence_words *words)
{
	snprintf(words->what, sizeof(words->what), "the lease of member %s is over", member);
	if (s->may_promote) {
		snprintf(words->why, sizeof(words->why), "no sign of life arrived for %.1f s",
			 (double)alive_silent_ms(s) / 1000);
		snprintf(words->next, sizeof(words->next), "%s", status_next_of_down(s));
		return;
	}
	snprintf(words->why, sizeof(words->why),
		 "no sign of life arrived for %.1f s, which proves nothing with this register",
		 (double)alive_silent_ms(s) / 1000);
	snprintf(words->next, sizeof(words->next),
		 "if it is off for certain: 'rpmirror fence %s %s'", s->conf->name, member);
}

bool alive_obstacle(const struct set *s, struct fence_words *words, enum mirror_health *health)
{
	const struct mirror_record *rec = &s->entry.record;
	uint64_t silent = alive_silent_ms(s), lease = rec->config.lease_ms;
	const char *member;

	if (!alive_is_known(s))
		return false;
	*words = (struct fence_words){.deadline_ms = -1, .retry_ms = -1};
	member = rec->config.members[rec->view.primary].name;
	if (!s->seen.is_set) {
		if (!s->may_promote || rec->view.phase != MIRROR_PHASE_SERVING)
			return false;
		*health = MIRROR_HEALTH_DOWN;
		snprintf(words->what, sizeof(words->what), "the primary on member %s has ended",
			 member);
		snprintf(words->why, sizeof(words->why), "no other process has become primary yet");
		snprintf(words->next, sizeof(words->next), "%s", status_next_of_down(s));
	} else if (s->lease_is_over) {
		*health = MIRROR_HEALTH_DOWN;
		alive_say_over(s, member, words);
	} else if (silent >= lease / 2 && silent < lease) {
		if (*health == MIRROR_HEALTH_HEALTHY)
			/* the primary answers, but its lease is not renewed */
			*health = MIRROR_HEALTH_DEGRADED;
		words->deadline_ms = (int64_t)(lease - silent);
		snprintf(words->what, sizeof(words->what), "the primary on member %s is silent",
			 member);
		snprintf(words->why, sizeof(words->why),
			 "no sign of life arrived for %.1f s, and its lease ends in %.1f s",
			 (double)silent / 1000, (double)words->deadline_ms / 1000);
		snprintf(words->next, sizeof(words->next),
			 "wait for the end of the lease; if it is off for certain: 'rpmirror fence "
			 "%s %s'",
			 s->conf->name, member);
	} else {
		return false;
	}
	return true;
}
