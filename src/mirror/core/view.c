/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/core/view.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "mirror/core/version.h"

/* Set *why and return error, so that a refusal is one line. */
static int view_refuse(int error, const char *text, const char **why)
{
	if (why)
		*why = text;
	return error;
}

static bool view_has_member(const struct mirror_record *rec, uint8_t slot)
{
	return slot < MIRROR_MEMBERS_MAX && rec->config.members[slot].id != 0;
}

/* Change rec into the primary's next record of the same epoch. */
static int view_change(struct mirror_record *rec, uint64_t nonce)
{
	rec->nonce = nonce;
	rec->view.seq++;
	return 0;
}

static void view_begin_epoch(struct mirror_record *rec, uint8_t slot, uint64_t nonce)
{
	struct mirror_view *v = &rec->view;

	if (v->epoch.number != 0) {
		if (rec->history_count < MIRROR_HISTORY)
			rec->history_count++;
		memmove(&rec->history[1], &rec->history[0],
			(rec->history_count - 1) * sizeof(rec->history[0]));
		rec->history[0].epoch = v->epoch;
		rec->history[0].seq = v->seq;
		rec->history[0].insync = v->insync;
	}
	v->epoch.number++;
	v->epoch.nonce = nonce;
	v->seq = 1;
	v->phase = MIRROR_PHASE_RECOVERING;
	v->primary = slot;
	v->clean = false;
	rec->nonce = nonce;
}

int view_create(struct mirror_record *rec, const struct mirror_config *config, mirror_mask insync,
		uint64_t nonce, const char **why)
{
	if (!view_config_is_valid(config, why))
		return -EINVAL;
	if (!insync || (insync & ~mirror_config_members(config)))
		return view_refuse(
			-EINVAL, "the in-sync set must have at least one member, and only members",
			why);
	memset(rec, 0, sizeof(*rec));
	rec->config = *config;
	rec->config.number = 1;
	rec->nonce = nonce;
	rec->view.seq = 1;
	rec->view.primary = MIRROR_NO_SLOT;
	rec->view.clean = true;
	rec->view.insync = insync;
	return 0;
}

int view_promote(struct mirror_record *rec, uint8_t slot, uint64_t nonce, const char **why)
{
	if (!view_has_member(rec, slot))
		return view_refuse(-EINVAL, "there is no such member", why);
	if (!(rec->view.insync & MIRROR_BIT(slot)))
		return view_refuse(-EPERM, "it may lack acknowledged data: it is not in-sync", why);
	view_begin_epoch(rec, slot, nonce);
	rec->view.forced = false;
	return 0;
}

int view_force(struct mirror_record *rec, uint8_t slot, uint64_t nonce, const char **why)
{
	if (!view_has_member(rec, slot))
		return view_refuse(-EINVAL, "there is no such member", why);
	view_begin_epoch(rec, slot, nonce);
	rec->view.forced = true;
	rec->view.insync = MIRROR_BIT(slot);
	return 0;
}

static int view_check_primary(const struct mirror_record *rec, uint8_t slot, const char **why)
{
	if (rec->view.phase == MIRROR_PHASE_NONE || rec->view.primary != slot)
		return view_refuse(-ESTALE, "it is not the primary", why);
	return 0;
}

int view_serve(struct mirror_record *rec, uint8_t slot, uint64_t nonce, const char **why)
{
	int error = view_check_primary(rec, slot, why);

	if (error)
		return error;
	if (rec->view.phase != MIRROR_PHASE_RECOVERING)
		return view_refuse(-EALREADY, "it serves already", why);
	rec->view.phase = MIRROR_PHASE_SERVING;
	return view_change(rec, nonce);
}

bool view_is_enough(unsigned left, unsigned min_copies, enum mirror_lonely lonely, const char **why)
{
	if (!left)
		view_refuse(0, "it is the last one in-sync", why);
	else if (left < min_copies)
		view_refuse(0, "fewer than min_copies would be left", why);
	else if (left == 1 && lonely == MIRROR_LONELY_BLOCK)
		view_refuse(
			0, "only one copy would be left, and the setting lonely=block forbids that",
			why);
	else
		return true;
	return false;
}

bool view_may_shrink(const struct mirror_record *rec, mirror_mask lost, const char **why)
{
	return view_is_enough(view_count((mirror_mask)(rec->view.insync & ~lost)),
			      rec->config.min_copies, rec->config.lonely, why);
}

int view_shrink(struct mirror_record *rec, uint8_t slot, mirror_mask lost, uint64_t nonce,
		const char **why)
{
	int error = view_check_primary(rec, slot, why);

	if (error)
		return error;
	if (!lost || (lost & ~rec->view.insync))
		return view_refuse(-EINVAL, "only an in-sync member can leave", why);
	if (!view_may_shrink(rec, lost, why))
		return -EBUSY;
	rec->view.insync &= (mirror_mask)~lost;
	return view_change(rec, nonce);
}

int view_expand(struct mirror_record *rec, uint8_t slot, mirror_mask joined, uint64_t nonce,
		const char **why)
{
	int error = view_check_primary(rec, slot, why);

	if (error)
		return error;
	if (rec->view.phase != MIRROR_PHASE_SERVING)
		return view_refuse(-EAGAIN, "the primary does not serve yet", why);
	if (!joined || (joined & rec->view.insync) ||
	    (joined & ~mirror_config_members(&rec->config)))
		return view_refuse(-EINVAL, "only members that are not in-sync can join", why);
	rec->view.insync |= joined;
	return view_change(rec, nonce);
}

int view_exchange(struct mirror_record *rec, uint8_t slot, mirror_mask lost, mirror_mask joined,
		  uint64_t nonce, const char **why)
{
	mirror_mask left = (mirror_mask)((rec->view.insync & ~lost) | joined);
	int error = view_check_primary(rec, slot, why);

	if (error)
		return error;
	if (rec->view.phase != MIRROR_PHASE_RECOVERING)
		return view_refuse(-EALREADY, "it serves already", why);
	if (!lost || (lost & ~rec->view.insync) || (lost & MIRROR_BIT(slot)))
		return view_refuse(-EINVAL, "only an in-sync member can leave", why);
	if (!joined || (joined & rec->view.insync) ||
	    (joined & ~mirror_config_members(&rec->config)))
		return view_refuse(-EINVAL, "only members that are not in-sync can join", why);
	if (!view_is_enough(view_count(left), rec->config.min_copies, rec->config.lonely, why))
		return -EBUSY;
	rec->view.insync = left;
	return view_change(rec, nonce);
}

int view_supersede(struct mirror_record *rec, uint8_t slot, uint64_t nonce, const char **why)
{
	int error = view_check_primary(rec, slot, why);

	return error ? error : view_change(rec, nonce);
}

int view_demote(struct mirror_record *rec, uint8_t slot, bool clean, uint64_t nonce,
		const char **why)
{
	int error = view_check_primary(rec, slot, why);

	if (error)
		return error;
	rec->view.clean = clean && rec->view.phase == MIRROR_PHASE_SERVING;
	rec->view.phase = MIRROR_PHASE_NONE;
	rec->view.primary = MIRROR_NO_SLOT;
	return view_change(rec, nonce);
}

int view_set_config(struct mirror_record *rec, const struct mirror_config *config, uint64_t nonce,
		    const char **why)
{
	const struct mirror_config *old = &rec->config;
	mirror_mask left = 0, removed = 0;

	if (!view_config_is_valid(config, why))
		return -EINVAL;
	if (memcmp(&config->uuid, &old->uuid, sizeof(old->uuid)) ||
	    strcmp(config->set, old->set) != 0)
		return view_refuse(-EINVAL, "it is the configuration of another set", why);
	if (config->format < old->format)
		return view_refuse(-EINVAL, "the record's format cannot be lowered", why);
	if (config->size < old->size)
		return view_refuse(-EINVAL, "a set cannot be made smaller", why);
	if ((config->lonely == MIRROR_LONELY_NONE) != (old->lonely == MIRROR_LONELY_NONE))
		return view_refuse(
			-EINVAL,
			"whether a set has the setting 'lonely' depends on its register, and "
			"cannot be changed",
			why);
	if (config->lease_ms != old->lease_ms && rec->view.primary != MIRROR_NO_SLOT)
		return view_refuse(
			-EBUSY, "the lease changes only while there is no primary: demote it first",
			why);
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		if (config->members[slot].id != old->members[slot].id)
			left |= MIRROR_BIT(slot);
		if (!config->members[slot].id)
			removed |= MIRROR_BIT(slot);
	}
	if (rec->view.primary != MIRROR_NO_SLOT && (left & MIRROR_BIT(rec->view.primary)))
		return view_refuse(-EBUSY, "the primary must be demoted first", why);
	if (!(rec->view.insync & ~left))
		return view_refuse(-EAGAIN, "no in-sync member would be left", why);
	/* If the copy's removal leaves too few copies, refuse it. A copy that is lost for good may
	 * still be replaced, because only a new copy ends the wait. */
	if (rec->view.insync & removed &&
	    view_count(rec->view.insync & (mirror_mask)~left) < config->min_copies)
		return view_refuse(-EAGAIN,
				   "fewer than min_copies would be left: rpmirror set SET "
				   "min-copies=N, or wait until another copy is in-sync",
				   why);
	if (config->min_copies > old->min_copies &&
	    view_count(rec->view.insync & (mirror_mask)~left) < config->min_copies)
		return view_refuse(-EAGAIN, "fewer members than that are in-sync", why);
	uint64_t number = old->number + 1;

	rec->config = *config;
	rec->config.number = number;
	rec->view.insync &= (mirror_mask)~left;
	rec->nonce = nonce; /* a change of the configuration leaves seq unchanged */
	return 0;
}

static bool view_member_is_valid(const struct mirror_config *config, unsigned slot,
				 const char **why)
{
	const struct mirror_member *m = &config->members[slot];

	if (!m->name[0] || !memchr(m->name, 0, sizeof(m->name)) ||
	    !memchr(m->host, 0, sizeof(m->host)) || !memchr(m->path, 0, sizeof(m->path)))
		return view_refuse(0, "a member has no name, or a text that is too long", why);
	for (unsigned other = 0; other < slot; other++) {
		const struct mirror_member *o = &config->members[other];

		if (o->id && (o->id == m->id || strcmp(o->name, m->name) == 0))
			return view_refuse(0, "two members have the same name or id", why);
	}
	return true;
}

bool view_config_is_valid(const struct mirror_config *config, const char **why)
{
	unsigned count = view_count(mirror_config_members(config));

	if (config->size == 0 || config->size % MIRROR_BLOCK || config->size > MIRROR_SIZE_MAX)
		return view_refuse(0, "the size must be a positive multiple of 4 KiB", why);
	if (!version_is_known(config->format))
		return view_refuse(0, "this program does not support that format of the record",
				   why);
	if (!config->set[0] || !memchr(config->set, 0, sizeof(config->set)))
		return view_refuse(0, "the set has no name, or one that is too long", why);
	if (count == 0)
		return view_refuse(0, "a set has at least one member", why);
	if (config->min_copies < 1 || config->min_copies > count)
		return view_refuse(0, "min_copies must be between 1 and the number of members",
				   why);
	if ((unsigned)config->lonely > MIRROR_LONELY_MANUAL)
		return view_refuse(0, "the setting 'lonely' has no such value", why);
	if (!config->lease_ms || !config->replica_timeout_ms || !config->holdoff_ms)
		return view_refuse(0, "lease, replica-timeout and holdoff must not be zero", why);
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (config->members[slot].id && !view_member_is_valid(config, slot, why))
			return false;
	return true;
}

static enum view_order view_compare_past(const struct mirror_record *rec,
					 const struct mirror_view *seen)
{
	for (uint32_t i = 0; i < rec->history_count; i++) {
		const struct mirror_ended *past = &rec->history[i];

		if (!mirror_epoch_is_equal(past->epoch, seen->epoch))
			continue;
		if (seen->seq == past->seq && past->insync & ~seen->insync)
			return VIEW_BRANCH;
		return seen->seq <= past->seq ? VIEW_OLDER : VIEW_BRANCH;
	}
	/* If the history is full, it has dropped the oldest epochs. */
	if (rec->history_count == MIRROR_HISTORY &&
	    seen->epoch.number < rec->history[MIRROR_HISTORY - 1].epoch.number)
		return VIEW_OLDER;
	return VIEW_BRANCH;
}

/* Compare views of the same epoch and seq, which can differ only by a change of the
 * configuration. */
static enum view_order view_compare_insync(const struct mirror_view *v,
					   const struct mirror_view *seen)
{
	if (seen->phase != v->phase || seen->primary != v->primary)
		return VIEW_BRANCH;
	if (seen->insync == v->insync)
		return VIEW_SAME;
	if (!(v->insync & ~seen->insync))
		return VIEW_OLDER;
	return seen->insync & ~v->insync ? VIEW_BRANCH : VIEW_NEWER;
}

enum view_order view_compare(const struct mirror_record *rec, const struct mirror_view *seen)
{
	const struct mirror_view *v = &rec->view;

	if (seen->epoch.number == 0)
		return VIEW_OLDER;
	if (seen->epoch.number > v->epoch.number)
		return VIEW_NEWER;
	if (seen->epoch.number < v->epoch.number)
		return view_compare_past(rec, seen);
	if (seen->epoch.nonce != v->epoch.nonce)
		return VIEW_BRANCH;
	if (seen->seq != v->seq)
		return seen->seq < v->seq ? VIEW_OLDER : VIEW_NEWER;
	return view_compare_insync(v, seen);
}
