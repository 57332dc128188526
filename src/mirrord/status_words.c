/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the sentences of a set's status: its problems, and advice for an operator. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "mirrord/copies.h"
#include "mirrord/findings.h"
#include "mirrord/programs.h"
#include "mirrord/requests.h"
#include "mirrord/status_words.h"

static mirror_mask status_members(const struct set *s)
{
	return s->has_entry ? mirror_config_members(&s->entry.record.config) : 0;
}

static mirror_mask status_insync(const struct set *s)
{
	return s->has_entry ? s->entry.record.view.insync : 0;
}

/* Returns true if, according to the register, the copies of all members are in-sync. */
static bool status_has_all(const struct set *s)
{
	return status_insync(s) == status_members(s);
}

static const char *status_reason_of_down(const struct set *s)
{
	const struct mirror_view *view = &s->entry.record.view;

	if (view->phase == MIRROR_PHASE_RECOVERING)
		return "the primary makes the copies equal";
	if (!s->has_entry && !s->register_answers)
		return "the register has not been read yet, so it is not known which process is "
		       "primary";
	return s->has_entry && !view->epoch.number ? "the set is new: no process has mapped it yet"
						   : "no process is primary";
}

static const char *status_reason(const struct set *s, const struct primary_words *words,
				 enum mirror_health health)
{
	const char *doubt = health_doubt(s, words);

	if (!s->is_open)
		return s->why_not.text;
	if (doubt)
		return doubt;
	if (health_is_removed(s))
		return s->split_why;
	if (words->report && words->report->why[0])
		return words->report->why;
	if (health == MIRROR_HEALTH_DEGRADED && reg_refusal(s))
		return s->register_answers
			       ? "the register refuses to be written by this host: the lease ends, "
				 "and no member can be excluded"
			       : "the register refuses this host: no member can be excluded, and "
				 "none can follow the primary";
	if (health == MIRROR_HEALTH_DEGRADED && words->status && words->copy == MIRROR_COPY_FAILED)
		return "the primary's own copy has failed";
	if (health == MIRROR_HEALTH_DEGRADED && !s->register_answers)
		return "the register does not answer: no member can be excluded, and none can "
		       "follow the primary";
	switch (health) {
	case MIRROR_HEALTH_SPLIT:
		return s->split_why;
	case MIRROR_HEALTH_DOWN:
		return status_reason_of_down(s);
	case MIRROR_HEALTH_DEGRADED:
		return status_has_all(s) ? "a member of the in-sync set is not reached, or is "
					   "being made equal"
					 : "a member is not in-sync";
	case MIRROR_HEALTH_BLOCKED:
		return "flushes wait for copies or for the register";
	default:
		return NULL;
	}
}

static bool status_is_paused(const struct primary_words *words)
{
	for (unsigned slot = 0; words->status && slot < MIRROR_MEMBERS_MAX; slot++)
		if (words->status->members[slot].flow == MIRROR_FLOW_PAUSED)
			return true;
	return false;
}

static const char *status_next_of_split(enum member_reason reason)
{
	switch (reason) {
	case MEMBER_IS_SPLIT:
		return "decide which history counts: rpmirror resolve --discard MEMBER";
	case MEMBER_OTHER_COPY:
		return "make a new copy: rpmirror member replace, and rpmirror init --join on its "
		       "host";
	case MEMBER_OTHER_SIZE:
		return "let the set grow again, to the size of its largest copy: rpmirror grow";
	default:
		return "correct the daemon's configuration, or put the copy's files back";
	}
}

static bool status_has_failed(const struct set *s)
{
	const struct mirror_config *config = &s->entry.record.config;
	bool any = false;

	for (uint8_t slot = 0; slot < MIRROR_MEMBERS_MAX && !any; slot++)
		any = config->members[slot].id && copy_has_failed(s, slot);
	return any;
}

/* ---- copies that cannot be used ---- */

enum status_use { STATUS_USABLE, STATUS_SILENT, STATUS_UNUSABLE };

/* Returns whether the member's copy can be mapped, as far as this host can see. */
static enum status_use status_use_of(const struct set *s, uint8_t slot)
{
	struct neighbour_answer answer;

	if (slot == set_own_slot(s))
		return s->is_open && copy_state(s) != MIRROR_COPY_FAILED ? STATUS_USABLE
									 : STATUS_UNUSABLE;
	neighbours_get(s->neighbours, slot, &answer);
	if (answer.answers)
		return answer.status.copy != MIRROR_COPY_FAILED ? STATUS_USABLE : STATUS_UNUSABLE;
	return answer.lacks_copy ? STATUS_UNUSABLE : STATUS_SILENT;
}

static mirror_mask status_of_use(const struct set *s, mirror_mask members, enum status_use use)
{
	mirror_mask found = 0;

	for (uint8_t slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (members & MIRROR_BIT(slot) && status_use_of(s, slot) == use)
			found |= MIRROR_BIT(slot);
	return found;
}

static bool status_lacks_copy(const struct set *s)
{
	return status_of_use(s, status_members(s), STATUS_UNUSABLE);
}

/* Returns advice if a member's daemon permanently refuses this host, else NULL. */
static const char *status_next_of_refused(const struct set *s)
{
	const char *refusal = NULL;
	struct neighbour_answer answer;

	for (uint8_t slot = 0; slot < MIRROR_MEMBERS_MAX && !refusal; slot++)
		if (status_members(s) & MIRROR_BIT(slot) && slot != set_own_slot(s)) {
			neighbours_get(s->neighbours, slot, &answer);
			refusal = answer.refusal;
		}
	if (!refusal)
		return NULL;
	return !strcmp(refusal, "secret")
		       ? "put the same secret file on each host, with mode 600, and reload its "
			 "rpmirrord (SIGHUP); a set's first secret counts from a restart on"
		       : "upgrade the host whose rpmirrord is too old for the others";
}

/* Returns advice if this host's files cannot be opened. */
static const char *status_next_of_closed(const struct set *s)
{
	uint8_t own = set_own_slot(s);

	if (s->is_secret_bad)
		return "put the secret file of another host here, with mode 600; the daemon opens "
		       "the copy within seconds, and no new copy is needed";
	if (own != MIRROR_NO_SLOT && status_insync(s) == MIRROR_BIT(own))
		return "only this host's copy has all acknowledged flushes: put both of its files "
		       "back; if they are lost, 'rpmirror promote --force' on another host "
		       "continues with the data of its copy";
	return "put both of the copy's files back, or correct the daemon's configuration; if the "
	       "files are lost: rpmirror member replace, and rpmirror init --join on this host";
}

const char *status_next_of_down(const struct set *s)
{
	mirror_mask insync = status_insync(s);

	if (!insync || status_of_use(s, insync, STATUS_USABLE))
		return "start the application on a host whose copy is in-sync";
	if (status_of_use(s, insync, STATUS_SILENT))
		return "start rpmirrord on the hosts of the in-sync copies, and then the "
		       "application on one of them";
	return "no in-sync copy can be used: put its files back on its host; if they are lost, "
	       "'rpmirror promote --force' continues with the data of another copy";
}

/* ---- the advice ---- */

#define STATUS_NEXT_OF_REGISTER "check the register, and this host's network connection to it"

/* Returns true if a primary does not serve yet because the host of an in-sync copy does not
 * answer. */
static bool status_waits_for_member(const struct set *s, const struct primary_words *words)
{
	return s->has_entry && s->entry.record.view.phase == MIRROR_PHASE_RECOVERING &&
	       words->report && words->report->why[0] &&
	       status_of_use(s, status_insync(s), STATUS_SILENT);
}

static const char *status_next(const struct set *s, const struct primary_words *words,
			       enum mirror_health health)
{
	if (health_is_removed(s))
		return "take the set out of rpmirrord's configuration on this host; for a new copy "
		       "here: rpmirror member add, and rpmirror init --join";
	if (!s->is_open)
		return status_next_of_closed(s);
	if (!s->register_answers && s->read_why.cause == ENOENT)
		return "check whether 'register' in rpmirrord's configuration is right; if "
		       "the register has lost its data, make the record again from the newest "
		       "copy: rpmirror init --from MEMBER";
	if (health != MIRROR_HEALTH_SPLIT && reg_refusal(s))
		return "give the daemon of this host its rights at the register again, or correct "
		       "'register' in its configuration (password, certificates, path)";
	if (words->is_silent)
		return "check whether the process is stopped or overloaded";
	if (words->is_unreachable && health == MIRROR_HEALTH_BLOCKED)
		return "look at the primary's host; if an application waits on another host, it "
		       "becomes primary when the lease is over";
	switch (health) {
	case MIRROR_HEALTH_SPLIT:
		return status_next_of_split(s->split_reason);
	case MIRROR_HEALTH_DOWN:
		if (status_waits_for_member(s, words))
			return "start the host of the member that the primary waits for, or of "
			       "another member, whose copy is then filled first; if a host is lost "
			       "for ever: rpmirror member replace; to serve with fewer copies "
			       "until one returns: rpmirror set SET min-copies=1";
		if (!s->register_answers)
			return STATUS_NEXT_OF_REGISTER;
		return status_next_of_down(s);
	case MIRROR_HEALTH_DEGRADED:
		if (!s->register_answers)
			return STATUS_NEXT_OF_REGISTER;
		if (status_is_paused(words))
			return "an operator keeps a member away: rpmirror resume MEMBER";
		if (status_has_failed(s))
			return "a copy has failed: " COPY_FAILED_NEXT;
		if (status_lacks_copy(s))
			return "a member's daemon has no copy that belongs to the set: put the "
			       "copy's files back there; if they are lost: rpmirror member "
			       "replace, and rpmirror init --join on its host";
		if (status_next_of_refused(s))
			return status_next_of_refused(s);
		return "the primary resyncs it as soon as its daemon can be reached";
	default:
		return NULL;
	}
}

/* ---- the whole status ---- */

/*
 * Find the reason why no process serves the set, or why this is uncertain. The text about the
 * fence agent has priority, because it is more precise.
 */
static bool status_obstacle(const struct set *s, struct fence_words *words,
			    enum mirror_health *health)
{
	if (!fence_agent_obstacle(s, words))
		return alive_obstacle(s, words, health);
	*health = MIRROR_HEALTH_DOWN;
	return true;
}

/* Returns true if copies differ, and no resync that would repair them is running. */
static bool status_is_spoilt(const struct set *s, enum mirror_health health)
{
	return health == MIRROR_HEALTH_DEGRADED && findings_spoil(s) &&
	       (status_has_all(s) || findings_has_open(s));
}

static void status_take(struct status_words *out, const char *reason, const char *next)
{
	snprintf(out->reason, sizeof(out->reason), "%s", reason ? reason : "");
	snprintf(out->next, sizeof(out->next), "%s", next ? next : "");
}

/* Add the findings to the status. If a member is excluded as well, the sentence about that member
 * comes first. */
static void status_take_findings(const struct set *s, struct status_words *out)
{
	struct findings_words findings;

	findings_get_words(s, &findings);
	if (status_has_all(s))
		status_take(out, findings.why, findings.next);
	else
		snprintf(out->reason + strlen(out->reason),
			 sizeof(out->reason) - strlen(out->reason), "; and %s: %s", findings.why,
			 findings.next);
}

/* Returns true if the state will change without an operator. */
static bool status_progresses(const struct set *s, const struct status_words *out,
			      const struct primary_words *words, bool is_silent)
{
	return out->health == MIRROR_HEALTH_DEGRADED &&
	       !(status_is_spoilt(s, out->health) && status_has_all(s)) &&
	       (is_silent || (words->status && !(words->status->flags & MESSAGE_STATUS_STUCK)));
}

/* Returns the remedy if the register has no space, else NULL. Only the primary's host writes to the
 * register. Other hosts detect missing space by etcd's alarm; without the alarm they only observe
 * that the lease ends. */
static const char *status_next_of_full(const struct set *s)
{
	const struct error *why = s->register_answers ? &s->write_why : &s->read_why;
	bool is_etcd = !strncmp(s->conf->register_uri, "etcd:", 5);

	if (!s->register_health.is_full && !(reg_refusal(s) && why->cause == ENOSPC))
		return NULL;
	return is_etcd ? "free space in etcd, with --endpoints of all its members: etcdctl compact "
			 "REVISION (the revision of etcdctl endpoint status -w json), then etcdctl "
			 "defrag, then etcdctl alarm disarm; and set "
			 "ETCD_AUTO_COMPACTION_RETENTION=1 in etcd's configuration"
		       : "make room on the file system of the register's file";
}

void status_get_words(const struct set *s, const struct primary_words *words,
		      struct status_words *out)
{
	struct fence_words fence;
	bool is_silent = false;

	out->health = health_of(s, words);
	status_take(out, status_reason(s, words, out->health), status_next(s, words, out->health));
	if (out->health != MIRROR_HEALTH_SPLIT && status_obstacle(s, &fence, &out->health)) {
		status_take(out, "", fence.next);
		snprintf(out->reason, sizeof(out->reason), "%s: %s", fence.what, fence.why);
		is_silent = true;
	}
	if (status_is_spoilt(s, out->health))
		status_take_findings(s, out);
	if (out->next[0] && out->health != MIRROR_HEALTH_SPLIT && status_next_of_full(s))
		snprintf(out->next, sizeof(out->next), "%s", status_next_of_full(s));
	out->progresses = status_progresses(s, out, words, is_silent);
}
