/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "mirror/core/primary_impl.h"

void primary_set_state(struct primary *p, enum primary_state state, const char *event)
{
	if (p->state == state)
		return;
	LOG_NOTICE("mirror set '%s': %s -> %s (%s), epoch %llu.%llu", p->rec.config.set,
		   primary_state_2str(p->state), primary_state_2str(state), event,
		   (unsigned long long)p->rec.view.epoch.number,
		   (unsigned long long)p->rec.view.seq);
	p->state = state;
	if (!primary_is_over(p))
		return;
	p->pending = 0;
	p->swapping = false;
	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++) {
		p->members[i].pending = 0;
		if (p->members[i].state > PRIMARY_MEMBER_AWAY && i != p->slot)
			primary_pend_member(p, i, PRIMARY_DO_DROP);
	}
	primary_pend(p, state == PRIMARY_DEMOTED  ? PRIMARY_DO_DEMOTED
			: state == PRIMARY_FENCED ? PRIMARY_DO_FENCED
						  : PRIMARY_DO_FAILED);
}

void primary_pend(struct primary *p, enum primary_action_type type)
{
	p->pending |= 1u << type;
}

void primary_pend_member(struct primary *p, unsigned slot, enum primary_action_type type)
{
	p->members[slot].pending |= 1u << type;
}

void primary_fail(struct primary *p, int error, const char *fmt, ...)
{
	va_list ap;

	if (primary_is_over(p))
		return;
	va_start(ap, fmt);
	vsnprintf(p->text, sizeof(p->text), fmt, ap);
	va_end(ap);
	p->error = error;
	primary_set_state(p, PRIMARY_FAILED, p->text);
}

mirror_mask primary_lost(const struct primary *p)
{
	mirror_mask lost = 0;

	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++)
		/* Do not swap out a member that has promised a higher epoch, has seen a newer
		 * view, or reports a split set: a register that was restored from a backup would
		 * permit that swap. */
		if (p->members[i].lost && primary_in_s(p, i) && !p->members[i].promised.number &&
		    !p->members[i].ahead.epoch.number && !p->members[i].splits)
			lost |= MIRROR_BIT(i);
	return lost;
}

static bool primary_all_equal(const struct primary *p)
{
	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++)
		if (primary_in_s(p, i) &&
		    (p->members[i].state != PRIMARY_MEMBER_EQUAL || p->members[i].lost))
			return false;
	return true;
}

bool primary_fills(const struct primary *p)
{
	mirror_mask lost = primary_lost(p);

	if (p->state != PRIMARY_RECOVERING || !lost || view_may_shrink(&p->rec, lost, NULL))
		return false;
	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++)
		if (primary_in_s(p, i) && !(lost & MIRROR_BIT(i)) &&
		    p->members[i].state != PRIMARY_MEMBER_EQUAL)
			return false;
	return true;
}

bool primary_is_whole(const struct primary *p)
{
	return p->rec.view.insync == mirror_config_members(&p->rec.config) && primary_all_equal(p);
}

void primary_start(struct primary *p, const struct mirror_record *rec, uint64_t revision,
		   uint8_t slot, const struct mirror_view *seen, bool force, uint64_t now_ms,
		   uint64_t (*random)(void *arg), void *arg)
{
	memset(p, 0, sizeof(*p));
	p->rec = *rec;
	p->revision = revision;
	p->slot = slot;
	p->suspect = MIRROR_NO_SLOT;
	p->force = force;
	p->was_clean = rec->view.clean && !force;
	p->now = now_ms;
	p->random = random;
	p->arg = arg;
	primary_set_state(p, PRIMARY_PROMOTING, force ? "forced" : "promote");
	if (slot >= MIRROR_MEMBERS_MAX || !rec->config.members[slot].id)
		primary_fail(p, -EINVAL, "this host is not a member of the set");
	else if (!force && !primary_in_s(p, slot))
		primary_fail(p, -EPERM, "the copy of '%s' may lack acknowledged data",
			     primary_name(p, slot));
	else if (!force && seen && view_compare(rec, seen) >= VIEW_NEWER)
		primary_fail(p, -ENOTUNIQ,
			     "the register is older than the state that this host has seen");
	else
		primary_settle(p);
}

void primary_suspect(struct primary *p, uint8_t slot)
{
	if (slot != p->slot)
		p->suspect = slot;
}

static const char *primary_first_trouble(const struct primary *p, mirror_mask mask)
{
	const char *trouble = mask ? p->members[__builtin_ctz(mask)].trouble : NULL;

	return trouble ? trouble : "not reached";
}

/* Returns true if a copy outside of S can replace a lost member before the set serves. */
static bool primary_may_fill(const struct primary *p)
{
	return primary_is_recovering(p) &&
	       mirror_config_members(&p->rec.config) & ~p->rec.view.insync;
}

/* Returns the reason why no flush is acknowledged, or why the promotion does not continue. NULL:
 * there is no obstacle. */
static const char *primary_obstacle(struct primary *p)
{
	mirror_mask lost = primary_lost(p);
	unsigned copies = view_count(p->rec.view.insync);
	const char *why = "", *first = lost ? primary_name(p, (unsigned)__builtin_ctz(lost)) : "";

	if (primary_is_over(p))
		return NULL;
	if (!lost && primary_is_serving(p) && !primary_may_ack(p)) {
		snprintf(p->text, sizeof(p->text), "%s%u %s in-sync, min_copies is %u",
			 p->rec.view.epoch.number == 1 ? "the set is new, and others are filled "
							 "first: "
						       : "",
			 copies, copies == 1 ? "copy is" : "copies are", p->rec.config.min_copies);
	} else if (lost && !view_may_shrink(&p->rec, lost, &why)) {
		snprintf(p->text, sizeof(p->text), "waits for '%s' (%s)%s, since %s", first,
			 primary_first_trouble(p, lost),
			 primary_may_fill(p) ? ", or until another copy is filled" : "", why);
	} else if (primary_is_recovering(p) && p->members[p->slot].trouble) {
		snprintf(p->text, sizeof(p->text), "waits for this host's daemon: %s",
			 p->members[p->slot].trouble);
	} else if (p->swap_failures >= 2 || (p->swap_failures && lost)) {
		snprintf(p->text, sizeof(p->text), "waits for the register's answer%s%s",
			 lost ? ", to go on without " : "", first);
	} else {
		return NULL;
	}
	return p->text;
}

static void primary_settle_blocked(struct primary *p)
{
	const char *why = primary_obstacle(p);

	if (p->blocked == (why != NULL))
		return;
	p->blocked = why != NULL;
	p->pending &= ~(1u << PRIMARY_DO_BLOCKED | 1u << PRIMARY_DO_UNBLOCKED);
	primary_pend(p, p->blocked ? PRIMARY_DO_BLOCKED : PRIMARY_DO_UNBLOCKED);
	if (p->blocked)
		LOG_WARNING("mirror set '%s': blocked: %s", p->rec.config.set, why);
	else
		LOG_NOTICE("mirror set '%s': goes on", p->rec.config.set);
}

/* Returns true if the own copy has failed, and a member of S lacks bytes that are not
 * acknowledged. This primary can no longer make that member equal, and must not continue without
 * that member. */
static bool primary_cannot_ack(const struct primary *p)
{
	mirror_mask others = primary_lost(p) & (mirror_mask)~MIRROR_BIT(p->slot);

	return !primary_is_source(p) && others && !view_may_shrink(&p->rec, primary_lost(p), NULL);
}

/* End this primary for good, because another host has to serve. */
static void primary_give_up(struct primary *p)
{
	if (p->state == PRIMARY_QUIESCING)
		primary_set_state(p, PRIMARY_STOPPING, "no further flush is acknowledged");
	else
		primary_fail(
			p, -EIO,
			"this host's copy has failed, and another copy that is needed is lost: map "
			"the set on a host whose copy is good");
}

void primary_settle(struct primary *p)
{
	if (primary_is_recovering(p) || primary_is_serving(p))
		primary_members_tick(p);
	if (primary_is_serving(p) && primary_cannot_ack(p))
		primary_give_up(p);
	if (p->state == PRIMARY_RECOVERING) {
		primary_members_equalise(p);
		if (p->demoting)
			primary_set_state(p, PRIMARY_STOPPING, "demote");
		else if (primary_all_equal(p))
			primary_set_state(p, PRIMARY_STARTING, "all in-sync copies are equal");
	} else if (p->state == PRIMARY_STARTING && !p->swapping && !primary_all_equal(p)) {
		primary_set_state(p, PRIMARY_RECOVERING, "a member was lost");
	}
	primary_settle_blocked(p);
}

void primary_tick(struct primary *p, uint64_t now_ms)
{
	p->now = now_ms;
	primary_settle(p);
}

void primary_demote(struct primary *p)
{
	if (primary_is_over(p) || p->demoting)
		return;
	p->demoting = true;
	if (p->state == PRIMARY_SERVING) {
		primary_set_state(p, PRIMARY_QUIESCING, "demote");
		primary_pend(p, PRIMARY_DO_QUIESCE);
	} else if (p->state == PRIMARY_PROMOTING && !p->swapping && !p->unknown_count) {
		primary_set_state(p, PRIMARY_DEMOTED, "demote");
	} else if (primary_is_recovering(p)) {
		primary_set_state(p, PRIMARY_STOPPING, "demote");
	}
	primary_settle(p);
}

void primary_on_quiesced(struct primary *p, bool clean)
{
	if (p->state != PRIMARY_QUIESCING)
		return;
	p->clean = clean && primary_all_equal(p) && !p->local_failed;
	primary_set_state(p, PRIMARY_STOPPING, "quiesced");
	primary_settle(p);
}

/* No member can be made equal any more: give up the members that are not equal yet. */
static void primary_end_repairs(struct primary *p)
{
	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++) {
		struct primary_member *m = &p->members[i];

		if (i == p->slot || m->state <= PRIMARY_MEMBER_AWAY ||
		    m->state == PRIMARY_MEMBER_EQUAL)
			continue;
		m->lost |= primary_in_s(p, i);
		m->trouble = "the primary's copy has failed, so it cannot make other copies equal";
		primary_member_back_off(p, i);
	}
}

void primary_on_local_failed(struct primary *p)
{
	if (primary_is_over(p) || p->local_failed)
		return;
	p->local_failed = true;
	if (!primary_is_serving(p) && p->state != PRIMARY_STOPPING) {
		primary_fail(p, -EIO, "this host's copy has failed");
		return;
	}
	p->members[p->slot].lost = true;
	p->members[p->slot].trouble = "its medium has failed";
	if (!primary_is_source(p))
		primary_end_repairs(p);
	primary_settle(p);
}

/* Without its own copy the primary cannot begin to serve. It can continue to serve without the
 * copy only after other members have got flushes. */
void primary_on_serve_failed(struct primary *p)
{
	primary_fail(p, -EIO, "this host's copy has failed: its metadata cannot be written");
}
