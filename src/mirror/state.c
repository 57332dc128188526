/* SPDX-License-Identifier: BSD-3-Clause */
/* Returns the state of a set, and whether its lease holds. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "mirror/errmsg.h"
#include "mirror/repair.h"
#include "mirror/restore.h"
#include "mirror/set.h"

static enum rpmirror_copy state_copy(const struct rpmirror *m, unsigned slot)
{
	if (m->primary.rec.view.insync & MIRROR_BIT(slot))
		return slot == m->self && m->failed_seq ? RPMIRROR_COPY_FAILED
							: RPMIRROR_COPY_IN_SYNC;
	switch (m->primary.members[slot].state) {
	case PRIMARY_MEMBER_EQUALISE:
	case PRIMARY_MEMBER_RESYNC:
	case PRIMARY_MEMBER_JOINING:
	case PRIMARY_MEMBER_JOINED:
		return RPMIRROR_COPY_SYNCING;
	case PRIMARY_MEMBER_EQUAL:
		return RPMIRROR_COPY_STALE;
	default:
		return RPMIRROR_COPY_UNKNOWN;
	}
}

static void state_fill_member(const struct rpmirror *m, unsigned slot,
			      struct rpmirror_member_state *st)
{
	const struct mirror_member *member = &m->primary.rec.config.members[slot];

	if (!member->id)
		return;
	snprintf(st->name, sizeof(st->name), "%s", member->name);
	snprintf(st->address, sizeof(st->address), "%s:%u", member->host, member->port);
	st->copy = state_copy(m, slot);
	st->connected = slot == m->self || m->members[slot].batch;
	st->durable_seq = slot == m->self ? m->flush.local : m->flush.members[slot].done;
	st->remainder = repair_get_remaining(m, slot);
	st->flush_p50_us = latency_percentile(&m->members[slot].latency, 50);
	st->flush_p99_us = latency_percentile(&m->members[slot].latency, 99);
	if (st->copy != RPMIRROR_COPY_IN_SYNC)
		text_cut(st->reason, sizeof(st->reason), m->members[slot].why);
}

static enum rpmirror_health state_health(const struct rpmirror *m)
{
	if (m->ended)
		return RPMIRROR_HEALTH_DOWN;
	if (m->blocked)
		return RPMIRROR_HEALTH_BLOCKED;
	return primary_is_whole(&m->primary) ? RPMIRROR_HEALTH_FULL : RPMIRROR_HEALTH_DEGRADED;
}

static void state_fill(const struct rpmirror *m, struct rpmirror_state *st)
{
	const struct mirror_record *rec = &m->primary.rec;
	uint64_t now = clock_boot_ms();

	st->role = RPMIRROR_ROLE_PRIMARY;
	if (set_end_code(m) == RPMIRROR_E_FENCED)
		st->role = RPMIRROR_ROLE_FENCED;
	st->health = state_health(m);
	st->epoch = rec->view.epoch.number;
	st->view_seq = rec->view.seq;
	st->flush_seq = m->flush.begun;
	st->acked_seq = m->flush.retired;
	st->self = m->self;
	st->insync_mask = rec->view.insync;
	st->config_mask = mirror_config_members(&rec->config);
	st->min_copies = rec->config.min_copies;
	st->lease_left_ms = lease_holds(&m->lease, now) ? m->lease.valid_until - now : 0;
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		state_fill_member(m, slot, &st->members[slot]);
}

void set_answer(void *out, const void *in, size_t size)
{
	size_t wanted, known;

	memcpy(&wanted, out, sizeof(wanted));
	known = wanted < size ? wanted : size;
	memcpy((char *)out + sizeof(wanted), (const char *)in + sizeof(wanted),
	       known - sizeof(wanted));
	memset((char *)out + known, 0, wanted - known);
}

int rpmirror_get_state(struct rpmirror *m, struct rpmirror_state *st)
{
	struct rpmirror_state state = {.size = sizeof(state)};

	if (!set_is_usable(m) || !st || st->size < sizeof(st->size))
		return errmsg_fail(RPMIRROR_E_INVAL, "rpmirror_get_state: not this process's set, "
						     "or no output with its size");
	pthread_mutex_lock(&m->lock);
	if (m->has_thread) {
		state_fill(m, &state);
	} else {
		state.role = RPMIRROR_ROLE_READER;
		state.self = m->self;
		reader_fill(m, &state);
	}
	pthread_mutex_unlock(&m->lock);
	set_answer(st, &state, sizeof(state));
	return 0;
}

/* Compares a clock with a number that only the set's thread writes. It takes no lock, because it
 * is called often. */
int rpmirror_confirm(struct rpmirror *m)
{
	if (!set_is_usable(m) || !m->has_thread)
		return errmsg_fail(RPMIRROR_E_INVAL,
				   "rpmirror_confirm: not this process's set, or read-only");
	if (clock_boot_ms() < __atomic_load_n(&m->lease_until_ms, __ATOMIC_ACQUIRE))
		return 0;
	if (set_end_code(m) == RPMIRROR_E_FENCED)
		return errmsg_fail(RPMIRROR_E_FENCED, "%s", m->ended_why);
	return errmsg_fail(
		RPMIRROR_E_LEASE,
		"set %s: the lease is over, because this host's rpmirrord did not renew it: bytes "
		"that were read may be stale",
		m->set);
}

int rpmirror_get_error(struct rpmirror *m, struct rpmirror_error *e)
{
	struct rpmirror_error error;
	int rc = RPMIRROR_E_NO_EVENT;

	if (!set_is_usable(m) || !e || e->size < sizeof(e->size))
		return errmsg_fail(RPMIRROR_E_INVAL, "rpmirror_get_error: not this process's set, "
						     "or no output with its size");
	pthread_mutex_lock(&m->lock);
	if (m->restore)
		restore_collect(m);
	if (m->error_count) {
		error = m->errors[m->error_first];
		m->errors_stop -= m->error_stops[m->error_first];
		m->error_first = (m->error_first + 1) % SET_ERRORS;
		m->error_count--;
		rc = 0;
	}
	pthread_mutex_unlock(&m->lock);
	if (!rc)
		set_answer(e, &error, sizeof(error));
	return rc;
}
