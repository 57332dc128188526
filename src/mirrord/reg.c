/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads and writes the content of the register: the record, and the alive key of the primary. */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "mirror/core/lease.h"
#include "mirrord/clients.h"
#include "mirrord/copies.h"
#include "mirrord/programs.h"

#define REG_LOOK_MS  2000 /* period of reads while no WATCH reports a change */
#define REG_RETRY_MS 200
#define REG_COUNT_MS 10000 /* period of counting the register's members that answer */
#define REG_LEASE_MS 5000  /* assumed lease before the first record is read */

static unsigned reg_lease_ms(const struct set *s)
{
	return s->has_entry ? s->entry.record.config.lease_ms : REG_LEASE_MS;
}

static bool reg_is_same(const struct register_entry *a, const struct register_entry *b)
{
	return a->revision == b->revision && a->record.nonce == b->record.nonce;
}

static void reg_notify_holder(struct set *s)
{
	static struct packet p; /* static, because it is large */

	if (!s->holder.client)
		return;
	packet_begin(&p, PACKET_CHANGED, 0);
	p.record.revision = s->entry.revision;
	p.record.record = s->entry.record;
	local_send(s->holder.client, &p, NULL, 0);
}

/* Pass each record to the rules of the copy. */
static void reg_show_member(struct set *s)
{
	struct member_verdict v;

	s->shown_ns = clock_boot_ns();
	member_on_record(&s->member, &s->entry.record, s->entry.revision, &v);
	s->is_split = v.answer != MEMBER_YES && v.reason != MEMBER_IO;
	if (v.reason == MEMBER_IO)
		copy_note_failure(s, v.text);
	if (!s->is_split) {
		grow_look(s);
		return;
	}
	s->split_reason = v.reason;
	snprintf(s->split_why, sizeof(s->split_why), "%s", v.text);
	LOG_ERROR_LIMITED("set %s: %s", s->conf->name, v.text);
}

/*
 * Clear the alive key of a primary of this host that has ended, for instance while the daemon did
 * not run.
 */
static void reg_clear_orphan(struct set *s)
{
	const struct mirror_view *view = &s->entry.record.view;

	if (s->is_open && !s->holder.pid && view->primary == s->meta.super.slot &&
	    !mirror_epoch_is_equal(s->cleared, view->epoch))
		reg_clear_alive(s, view->epoch);
}

/*
 * Record when the copy had all acknowledged data. A member leaves the in-sync set before anything
 * is acknowledged without it. So a copy that was in-sync when the register was read had all
 * acknowledged data at that time.
 */
static void reg_note_fresh(struct set *s, const struct register_entry *entry, uint64_t sent_ns)
{
	const struct mirror_record *rec = &entry->record;
	uint8_t slot = s->meta.super.slot;

	if (s->is_open && !s->is_split && rec->view.insync & MIRROR_BIT(slot) &&
	    rec->config.members[slot].id == s->meta.super.member_id &&
	    copy_state(s) == MIRROR_COPY_INSYNC && sent_ns > s->fresh_ns)
		s->fresh_ns = sent_ns;
}

/* If the epoch ended in good order, record this in the copy: after later restarts of hosts the
 * copy is then not in doubt. */
static void reg_note_end(struct set *s)
{
	struct member_verdict v;

	if (!s->is_open || s->is_split)
		return;
	member_end_clean(&s->member, &s->entry.record, &v);
	if (v.answer != MEMBER_YES)
		LOG_ERROR_LIMITED("set %s: the end of epoch %llu could not be recorded: %s",
				  s->conf->name,
				  (unsigned long long)s->entry.record.view.epoch.number, v.text);
}

void reg_on_entry(struct set *s, const struct register_entry *entry, uint64_t sent_ns)
{
	bool is_new = !s->has_entry || !reg_is_same(&s->entry, entry);

	s->register_answers = true;
	s->read_why.kind = ERROR_NONE;
	/*
	 * Ignore this record: it may be older than a record that was seen meanwhile, and would
	 * look like a register that was restored from a backup.
	 */
	if (sent_ns < s->shown_ns) {
		s->ask_again = true;
		return;
	}
	/* The alive key of a former epoch's primary is no evidence about the present primary. */
	if (!s->has_entry ||
	    !mirror_epoch_is_equal(s->entry.record.view.epoch, entry->record.view.epoch)) {
		s->epoch_ns = clock_boot_ns();
		s->may_promote = s->lease_is_over = false;
		s->alive_ms = s->seen_ms = 0;
	}
	if (is_new) {
		s->entry = *entry;
		s->has_entry = true;
		if (s->candidate.lease_ms != entry->record.config.lease_ms)
			candidate_init(&s->candidate, entry->record.config.lease_ms);
		if (s->is_open) {
			reg_show_member(s);
			set_plan_neighbours(s);
		}
		reg_notify_holder(s);
	}
	reg_note_end(s);
	reg_note_fresh(s, entry, sent_ns);
	reg_clear_orphan(s);
}

static void reg_on_get(struct agent_job *job)
{
	struct set *s = job->owner;

	s->is_asking = false;
	s->answered = job->id;
	if (!job->rc) {
		reg_on_entry(s, &job->now, job->sent_ns);
	} else {
		s->register_answers = false;
		s->read_why = job->err;
		LOG_WARNING_LIMITED("set %s: the register cannot be read: %s", s->conf->name,
				    job->err.text);
	}
	free(job);
	if (s->ask_again) {
		s->ask_again = false;
		reg_ask(s);
	}
	map_retry(s);
}

void reg_ask(struct set *s)
{
	struct agent_job *job;

	if (s->is_asking) {
		s->ask_again = true;
		return;
	}
	job = agent_job_new(AGENT_GET, reg_on_get, s);
	if (!job)
		return;
	job->id = ++s->asked;
	s->is_asking = true;
	s->asked_ms = clock_boot_ms();
	s->look_ms = s->asked_ms + REG_LOOK_MS;
	agent_post(s->asks, job);
}

static void reg_on_watched(struct agent_job *job)
{
	struct set *s = job->owner;

	s->is_watching = false;
	if (job->counts)
		s->register_health = job->health;
	free(job);
	reg_ask(s);
	reg_ask_alive(s);
}

static void reg_watch(struct set *s)
{
	struct agent_job *job = agent_job_new(AGENT_WATCH, reg_on_watched, s);

	if (!job)
		return;
	job->expected.revision = s->entry.revision;
	job->wait_ms = REG_LOOK_MS;
	job->counts = clock_boot_ms() >= s->count_ms;
	if (job->counts)
		s->count_ms = clock_boot_ms() + REG_COUNT_MS;
	s->is_watching = true;
	agent_post(s->watcher, job);
}

/* ---- on the host of a candidate ---- */

static void reg_judge(struct set *s, const struct register_alive *alive, struct candidate_read read)
{
	bool may = alive->is_set ? candidate_on_alive(&s->candidate, alive->epoch, alive->counter,
						      alive->revision, read)
				 : candidate_on_cleared(&s->candidate);

	s->lease_is_over = alive->is_set && may;
	if (s->lease_is_over)
		may = fence_agent_permits(s, alive->epoch);
	/* An operator has confirmed that this primary is off. */
	if (alive->is_set && mirror_epoch_is_equal(s->word, alive->epoch))
		may = true;
	if (may && !s->may_promote)
		LOG_INFO("set %s: the alive key is not renewed, so a promotion is allowed",
			 s->conf->name);
	s->may_promote = may;
	s->seen = *alive;
	s->seen_ms = read.sent_ms;
	fence_agent_on_alive(s);
}

static void reg_on_alive(struct agent_job *job)
{
	const struct register_alive *sight = &job->sight;
	struct set *s = job->owner;

	s->is_reading_alive = false;
	if (!job->rc && s->has_entry && job->sent_ns < s->epoch_ns) {
		free(job);
		reg_ask_alive(s);
		return;
	}
	/*
	 * The lease of the key may begin even if the register has no leader, for instance if the
	 * leader died together with the primary. This read never decides that a lease has ended.
	 */
	if (sight->is_set && s->has_entry && job->sent_ns >= s->epoch_ns)
		candidate_on_sight(&s->candidate, sight->epoch, sight->counter, sight->revision,
				   job->sight_ns / NSEC_PER_MS);
	s->alive_answered = job->id;
	if (!job->rc && s->has_entry)
		reg_judge(s, &job->alive,
			  (struct candidate_read){job->sent_ns / NSEC_PER_MS,
						  job->done_ns / NSEC_PER_MS});
	else
		s->may_promote = s->lease_is_over = false;
	free(job);
	map_retry(s);
}

/*
 * Returns the time of the next read: twice in a renewal's period, so that the last renewal is
 * noticed soon; and once when the lease may be over.
 */
static uint64_t reg_alive_due(const struct set *s)
{
	uint64_t now = clock_boot_ms(), next = now + reg_lease_ms(s) / 10;
	uint64_t due = candidate_due(&s->candidate);

	return due > now && due < next ? due : next;
}

void reg_ask_alive(struct set *s)
{
	struct agent_job *job;

	if (s->is_reading_alive || s->holder.epoch.number)
		return;
	job = agent_job_new(AGENT_ALIVE_GET, reg_on_alive, s);
	if (!job)
		return;
	job->id = ++s->alive_asked;
	s->is_reading_alive = true;
	s->alive_ms = reg_alive_due(s);
	agent_post(s->alive, job);
}

/* ---- on the host of the primary ---- */

/* Record why the register refused a write. A repetition would not help: the right, the space or
 * the file is missing. */
static void reg_note_write(struct set *s, const struct agent_job *job)
{
	bool has_failed = job->result == REGISTER_FAILED && job->err.kind != ERROR_UNREACHED &&
			  job->err.cause != ETIMEDOUT;

	if (has_failed)
		s->write_why = job->err;
	else if (job->result == REGISTER_DONE)
		s->write_why.kind = ERROR_NONE;
}

const char *reg_refusal(const struct set *s)
{
	if (!s->register_answers)
		return s->read_why.kind != ERROR_NONE && s->read_why.kind != ERROR_UNREACHED
			       ? s->read_why.text
			       : NULL;
	return s->holder.epoch.number && s->write_why.kind != ERROR_NONE ? s->write_why.text : NULL;
}

static void reg_on_renewed(struct agent_job *job)
{
	struct set *s = job->owner;
	struct packet p = {.type = PACKET_LEASE,
			   .lease = {.sent_ns = job->sent_ns, .confirmed_ns = job->done_ns}};
	bool is_ours = mirror_epoch_is_equal(job->epoch, s->holder.epoch);

	s->is_renewing = false;
	if (is_ours)
		s->renewed = job->alive;
	if (is_ours)
		reg_note_write(s, job);
	if (job->result == REGISTER_DONE) {
		if (is_ours && s->holder.client)
			local_send(s->holder.client, &p, NULL, 0);
	} else if (is_ours) {
		LOG_WARNING_LIMITED("set %s: the alive key could not be renewed: %s: %s",
				    s->conf->name, register_result_str(job->result), job->err.text);
		s->renew_ms = clock_boot_ms() + REG_RETRY_MS;
		reg_ask(s);
	}
	free(job);
}

static void reg_renew(struct set *s, uint64_t now_ms)
{
	struct agent_job *job = agent_job_new(AGENT_ALIVE_PUT, reg_on_renewed, s);

	if (!job)
		return;
	job->epoch = s->holder.epoch;
	job->alive = s->renewed;
	s->is_renewing = true;
	s->renew_ms = now_ms + reg_lease_ms(s) / LEASE_RENEWALS;
	agent_post(s->alive, job);
}

static void reg_on_cleared(struct agent_job *job)
{
	struct set *s = job->owner;

	if (job->result != REGISTER_DONE) {
		LOG_WARNING_LIMITED("set %s: the alive key could not be cleared: %s: %s",
				    s->conf->name, register_result_str(job->result), job->err.text);
		/* the next record causes another attempt to clear the key */
		s->cleared = (struct mirror_epoch){0};
	}
	free(job);
	reg_ask(s);
	reg_ask_alive(s);
}

void reg_clear_alive(struct set *s, struct mirror_epoch epoch)
{
	struct agent_job *job = agent_job_new(AGENT_ALIVE_CLEAR, reg_on_cleared, s);

	if (!job)
		return;
	job->epoch = s->cleared = epoch;
	agent_post(s->alive, job);
}

/*
 * Report that the register does not answer. Calls of a register have a time limit, except for a
 * file on a file system that does not answer. A read may also have to wait for such a call.
 */
static void reg_note_late(struct set *s, uint64_t now_ms)
{
	unsigned limit_ms = 2 * s->daemon->conf->register_timeout_ms;

	if (!s->is_asking || !s->register_answers || now_ms < s->asked_ms + limit_ms)
		return;
	s->register_answers = false;
	error_set(&s->read_why, ERROR_UNREACHED, ETIMEDOUT, "it has not answered for %u ms",
		  limit_ms);
	LOG_WARNING_LIMITED("set %s: the register cannot be read: %s", s->conf->name,
			    s->read_why.text);
}

void reg_tick(struct set *s, uint64_t now_ms)
{
	reg_note_late(s, now_ms);
	if (!s->is_asking && (s->ask_again || now_ms >= s->look_ms)) {
		s->ask_again = false;
		reg_ask(s);
	}
	if (!s->is_watching && s->has_entry)
		reg_watch(s);
	if (!s->holder.epoch.number && !s->is_reading_alive && now_ms >= s->alive_ms)
		reg_ask_alive(s);
	if (s->holder.epoch.number && !s->is_renewing && now_ms >= s->renew_ms &&
	    now_ms - s->holder.heartbeat_ms < DAEMON_HEARTBEAT_MS)
		reg_renew(s, now_ms);
}
