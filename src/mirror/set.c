/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/set.h"

#include <stdio.h>
#include <string.h>

#include "mirror/errmsg.h"

/* 0: forks are not watched; else 1 + the number of forks between the first process and this one */
static unsigned set_forks;
static pthread_mutex_t set_forks_lock = PTHREAD_MUTEX_INITIALIZER;

static void set_on_fork(void)
{
	__atomic_add_fetch(&set_forks, 1, __ATOMIC_RELAXED);
}

int set_watch_forks(unsigned *forks)
{
	int rc = 0;

	pthread_mutex_lock(&set_forks_lock);
	if (!set_forks)
		rc = pthread_atfork(NULL, NULL, set_on_fork);
	if (!rc && !set_forks)
		set_forks = 1;
	*forks = set_forks;
	pthread_mutex_unlock(&set_forks_lock);
	return rc ? errmsg_fail(RPMIRROR_E_NOMEM, "forks cannot be watched for") : 0;
}

bool set_is_usable(const struct rpmirror *m)
{
	return m && m->forks == __atomic_load_n(&set_forks, __ATOMIC_RELAXED);
}

/* Returns the result for the application, for which a demotion is as final as a fence. */
int set_end_code(const struct rpmirror *m)
{
	int ended = __atomic_load_n(&m->ended, __ATOMIC_ACQUIRE);

	return ended > 0 ? RPMIRROR_E_FENCED : ended;
}

void set_lock_in_turn(struct rpmirror *m)
{
	pthread_mutex_lock(&m->turn);
	pthread_mutex_lock(&m->lock);
	pthread_mutex_unlock(&m->turn);
}

void set_wake(struct rpmirror *m)
{
	ownfd_wake(m->wake_fd);
}

void set_notify(struct rpmirror *m)
{
	if (m->waiters)
		pthread_cond_broadcast(&m->cond);
}

void set_local_failed(struct rpmirror *m, uint64_t seq, int error)
{
	if (m->failed_seq)
		return;
	m->failed_seq = seq;
	events_add(&m->events, RPMIRROR_EVENT_LOCAL_FAILED, m->self, (uint64_t)-error,
		   "the copy on this host cannot be used any more: %s", strerror(-error));
	primary_tick(&m->primary, clock_boot_ms());
	primary_on_local_failed(&m->primary);
	m->says_failed = true;
	set_wake(m);
}

void set_take_secret(struct rpmirror *m, const struct packet_mapped *mapped)
{
	memcpy(m->key, mapped->key, sizeof(m->key));
	m->secret = mapped->has_secret ? m->key : NULL;
}

static void set_widen_error(struct rpmirror_error *e, struct mirror_range range)
{
	uint64_t end = e->offset + e->len, other = range.offset + range.len;

	e->offset = e->offset < range.offset ? e->offset : range.offset;
	e->len = (end > other ? end : other) - e->offset;
}

void set_add_error(struct rpmirror *m, struct mirror_range range, struct set_loss loss,
		   const char *text)
{
	bool is_full = m->error_count == SET_ERRORS;
	unsigned last = (m->error_first + m->error_count - is_full) % SET_ERRORS;
	struct rpmirror_error *e = &m->errors[last];

	if (is_full) {
		set_widen_error(e, range);
		e->repaired &= loss.repaired;
		e->dirty |= loss.dirty;
		m->errors_stop -= m->error_stops[last];
		m->error_stops[last] |= loss.stops;
	} else {
		*e = (struct rpmirror_error){.size = sizeof(*e),
					     .offset = range.offset,
					     .len = range.len,
					     .repaired = loss.repaired,
					     .dirty = loss.dirty};
		m->error_stops[last] = loss.stops;
		m->error_count++;
	}
	m->errors_stop += m->error_stops[last];
	snprintf(e->text, sizeof(e->text), "%s%s", text,
		 is_full ? "; and more blocks, not far from it" : "");
	events_add(&m->events, RPMIRROR_EVENT_ERROR, m->self, range.offset, "%s", text);
}

struct set_name set_member_name(const struct rpmirror *m, unsigned slot)
{
	const struct mirror_member *member = &m->primary.rec.config.members[slot];
	struct set_name name;

	snprintf(name.text, sizeof(name.text), "%s (%s:%u)", member->name, member->host,
		 member->port);
	return name;
}
