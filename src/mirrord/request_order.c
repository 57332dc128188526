/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles orders: requests that change a set's state, through the primary's process or the
 * register. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rand.h"
#include "mirror/core/killpoint.h"
#include "mirror/core/view.h"
#include "mirrord/clients.h"
#include "mirrord/connections.h"
#include "mirrord/copies.h"
#include "mirrord/requests.h"

uint64_t request_random(void)
{
	uint64_t v;

	do
		rand_bytes(&v, sizeof(v));
	while (!v);
	return v;
}

void request_wait(struct client *client, struct set *s, enum client_wait wait)
{
	client->wait = wait;
	client->wait_set = s;
}

/* Returns the member's slot, or MIRROR_NO_SLOT after a refusal. */
uint8_t request_slot(struct client *client, const struct set *s, const char *member)
{
	uint8_t slot =
		member ? mirror_config_find(&s->entry.record.config, member) : MIRROR_NO_SLOT;

	if (slot == MIRROR_NO_SLOT)
		request_refuse(client, CODE_CONFIG, NULL, "set %s has no member '%s'",
			       s->conf->name, member ? member : "");
	return slot;
}

/* Refuse a request that only another host can carry out. */
void request_elsewhere(struct client *client, const struct set *s, uint8_t slot, const char *what)
{
	const struct mirror_member *member = &s->entry.record.config.members[slot];
	char hint[MIRROR_HOST_MAX + 64];

	snprintf(hint, sizeof(hint), "run it on %s", member->host);
	request_refuse(client, CODE_CONFIG, hint, "%s is on another host (member %s)", what,
		       member->name);
}

/* ---- the primary's process ---- */

void request_order(struct client *client, struct set *s, const char *member,
		   const struct packet_order_request *order)
{
	static struct packet p; /* static, because it is large */
	uint8_t primary = s->entry.record.view.primary, slot = MIRROR_NO_SLOT;

	if (member) {
		slot = request_slot(client, s, member);
		if (slot == MIRROR_NO_SLOT)
			return;
	}
	if (primary == MIRROR_NO_SLOT) {
		request_refuse(client, CODE_CONFIG, NULL, "set %s has no primary", s->conf->name);
		return;
	}
	if (primary != s->meta.super.slot) {
		request_elsewhere(client, s, primary, "the primary");
		return;
	}
	if (!s->holder.client) {
		request_refuse(client, CODE_UNREACHABLE, NULL,
			       "the primary's process is not connected to this daemon");
		return;
	}
	if (order->order == PACKET_ORDER_RESYNC && copy_has_failed(s, slot)) {
		request_refuse(client, CODE_IO, COPY_FAILED_NEXT,
			       "the copy of member %s has failed: there is no resync", member);
		return;
	}
	packet_begin(&p, PACKET_ORDER, (uint32_t)client->serial);
	p.order = *order;
	p.order.member = slot;
	client->wants_verified = order->order == PACKET_ORDER_VERIFY;
	client->fences = order->order == PACKET_ORDER_FENCE ? MIRROR_BIT(slot) : 0;
	request_wait(client, s, CLIENT_WAITS_ORDER);
	local_send(s->holder.client, &p, NULL, 0);
}

enum code request_code_of(enum packet_status status)
{
	static const enum code codes[PACKET_STATUS_END] = {[PACKET_BAD] = CODE_USAGE,
							   [PACKET_NO_SET] = CODE_CONFIG,
							   [PACKET_PERMISSION] = CODE_CONFIG,
							   [PACKET_BUSY] = CODE_BUSY,
							   [PACKET_NOT_INSYNC] = CODE_NOT_INSYNC,
							   [PACKET_SPLIT] = CODE_SPLIT,
							   [PACKET_COPY_FAILED] = CODE_IO,
							   [PACKET_REGISTER] = CODE_UNREACHABLE,
							   [PACKET_IO] = CODE_IO,
							   [PACKET_COPIES] = CODE_QUORUM,
							   [PACKET_TIMEOUT] = CODE_TIMEOUT,
							   [PACKET_EPOCH] = CODE_EPOCH};

	return codes[status];
}

static void request_put_verified(const struct set *s, json_t *answer,
				 const struct packet_verified *v)
{
	const struct mirror_member *members = s->entry.record.config.members;
	json_t *ranges = json_array();

	for (unsigned i = 0; i < v->count; i++)
		json_array_append_new(ranges, json_pack("[I, I, s]",
							(json_int_t)v->differences[i].range.offset,
							(json_int_t)v->differences[i].range.len,
							members[v->differences[i].member].name));
	json_object_set_new(answer, "compared", json_integer((json_int_t)v->compared));
	json_object_set_new(answer, "different", json_integer((json_int_t)v->different));
	json_object_set_new(answer, "ranges", ranges);
}

/* Put the fenced members into the answer. The same command has another meaning before a failover (a
 * primary) than after it (another member), so the answer names the fenced members. */
static void request_put_fenced(const struct set *s, json_t *answer, mirror_mask fenced,
			       const char *what)
{
	const struct mirror_config *config = &s->entry.record.config;
	char text[PACKET_TEXT + MIRROR_NAME_MAX + 64];

	snprintf(text, sizeof(text), "member %s is not the primary: %s",
		 config->members[__builtin_ctz(fenced)].name, what);
	json_object_set_new(answer, "text", json_string(text));
}

static void request_answer_ordered(struct client *client, const struct set *s,
				   const struct packet_ordered *ordered)
{
	enum packet_status status = (enum packet_status)ordered->status;
	json_t *answer;

	if (status != PACKET_OK) {
		request_refuse(client, request_code_of(status),
			       status == PACKET_TIMEOUT
				       ? "the order is still being carried out: look at the status"
				       : NULL,
			       "%s", ordered->text[0] ? ordered->text : packet_status_2str(status));
		return;
	}
	answer = json_pack("{s:b}", "ok", 1);
	if (client->wants_verified)
		request_put_verified(s, answer, &ordered->verified);
	client->wait = CLIENT_IDLE;
	if (client->fences)
		request_put_fenced(s, answer, client->fences, ordered->text);
	else if (ordered->text[0])
		json_object_set_new(answer, "text", json_string(ordered->text));
	request_send(client, answer);
}

void request_on_ordered(struct set *s, const struct packet *p)
{
	for (struct client *c = s->daemon->clients; c; c = c->next) {
		if (c->wait != CLIENT_WAITS_ORDER || (uint32_t)c->serial != p->id)
			continue;
		request_answer_ordered(c, s, &p->ordered);
		return;
	}
}

/* ---- fence ---- */

/*
 * Returns the milliseconds since the alive key was renewed, as far as this host can see. A result
 * of a lease or more means that the time is unknown.
 */
static uint64_t request_renewed_ms(const struct set *s)
{
	const struct candidate *seen = &s->candidate;

	if (s->holder.epoch.number)
		return 0;
	if (!seen->has_seen || !mirror_epoch_is_equal(seen->epoch, s->entry.record.view.epoch))
		return s->entry.record.config.lease_ms;
	return clock_boot_ms() - seen->since_ms;
}

/* Record the operator's statement that the register's present primary is off (s->word). */
static void request_take_word(struct client *client, struct set *s)
{
	static const char off[] = "its host counts as off: another member may be promoted now";
	const struct mirror_record *rec = &s->entry.record;
	const char *name = rec->config.members[rec->view.primary].name;
	uint64_t renewed_ms = request_renewed_ms(s);
	char text[sizeof(off) + MIRROR_NAME_MAX + 160];
	size_t n = (size_t)snprintf(text, sizeof(text), "%s", off);

	/* The primary's daemon renews the key five times in a lease. */
	if (renewed_ms < rec->config.lease_ms / 2)
		snprintf(
			text + n, sizeof(text) - n,
			". WARNING: member %s renewed its lease %.1f s ago and may be alive: until "
			"it is off, its application may read stale bytes",
			name, (double)renewed_ms / 1000);
	LOG_WARNING("set %s: an operator states that member %s is off: %s", s->conf->name, name,
		    text);
	s->word = rec->view.epoch;
	s->alive_ms = 0; /* read the alive key immediately */
	reg_ask_alive(s);
	request_done(client, text);
}

static void request_on_fence_read(struct agent_job *job)
{
	struct set *s = job->owner;
	struct client *client = local_find(s->daemon, job->client);
	const struct mirror_view *view = &s->entry.record.view;

	if (!job->rc)
		reg_on_entry(s, &job->now, job->sent_ns);
	if (!client || client->wait != CLIENT_WAITS_SWAP) {
		free(job);
		return;
	}
	client->wait = CLIENT_IDLE;
	if (job->rc)
		request_refuse(client, CODE_UNREACHABLE, "run it again once the register answers",
			       "nothing was done, because the register cannot be read: %s",
			       job->err.text);
	else if (!mirror_epoch_is_equal(job->epoch, view->epoch) || view->primary == MIRROR_NO_SLOT)
		request_refuse(client, CODE_EPOCH, "look at the status",
			       "nothing was done: epoch %llu has ended meanwhile",
			       (unsigned long long)job->epoch.number);
	else
		request_take_word(client, s);
	free(job);
}

/*
 * Read the register first: otherwise the statement could concern a primary that was replaced
 * meanwhile.
 */
static void request_fence_primary(struct client *client, struct set *s)
{
	struct agent_job *job = agent_job_new(AGENT_GET, request_on_fence_read, s);

	if (!job) {
		request_refuse(client, CODE_IO, NULL, "out of memory");
		return;
	}
	job->epoch = s->entry.record.view.epoch;
	job->client = client->serial;
	request_wait(client, s, CLIENT_WAITS_SWAP);
	agent_post(s->asks, job);
}

void request_fence(struct client *client, struct set *s, const char *member, int64_t timeout_ms)
{
	struct packet_order_request order = {.order = PACKET_ORDER_FENCE,
					     .timeout_ms = (uint32_t)timeout_ms};
	uint8_t slot = request_slot(client, s, member);

	if (slot == MIRROR_NO_SLOT)
		return;
	if (slot == s->entry.record.view.primary)
		request_fence_primary(client, s);
	else if (!s->register_answers)
		request_refuse(client, CODE_UNREACHABLE, "run it again once the register answers",
			       "nothing was done, because the register cannot be read: %s",
			       s->read_why.text);
	else
		request_order(client, s, member, &order);
}

/* ---- the register ---- */

/*
 * Answer after the swap. If a copy was replaced, fewer in-sync copies than min_copies may remain,
 * even if the replaced copy was healthy.
 */
static void request_done_swap(struct client *client, const struct mirror_record *before,
			      const struct mirror_record *after)
{
	unsigned left = view_count(after->view.insync), needed = after->config.min_copies;
	char text[160];

	if (left >= needed || view_count(before->view.insync) < before->config.min_copies) {
		request_done(client, NULL);
		return;
	}
	snprintf(text, sizeof(text),
		 "WARNING: flushes wait from now on until another copy is in-sync: %u cop%s left, "
		 "min_copies is %u",
		 left, left == 1 ? "y is" : "ies are", needed);
	request_done(client, text);
}

static void request_on_swapped(struct agent_job *job)
{
	struct set *s = job->owner;
	struct client *client = local_find(s->daemon, job->client);

	if ((job->result == REGISTER_DONE || job->result == REGISTER_CHANGED) && job->now.revision)
		reg_on_entry(s, &job->now, job->sent_ns);
	if (job->result == REGISTER_DONE &&
	    job->next.config.size > job->expected.record.config.size)
		killpoint(KILLPOINT_grow_ordered);
	if (client && client->wait == CLIENT_WAITS_SWAP) {
		if (job->result == REGISTER_DONE)
			request_done_swap(client, &job->expected.record, &job->next);
		else if (job->result == REGISTER_CHANGED)
			request_refuse(client, CODE_BUSY, "try again",
				       "the record has changed meanwhile");
		else
			request_refuse(client,
				       job->result == REGISTER_UNKNOWN ? CODE_QUORUM
								       : CODE_UNREACHABLE,
				       "look at the status to see whether the change was made",
				       "%s", job->err.text);
	}
	free(job);
}

/* Returns the code for a result of view_set_config(). */
static enum code request_code_of_change(int rc)
{
	switch (rc) {
	case -ENOMEM:
		return CODE_IO;
	case -EBUSY: /* a primary prevents the change */
		return CODE_BUSY;
	case -EAGAIN: /* members that are not in-sync prevent the change */
		return CODE_QUORUM;
	default:
		return CODE_CONFIG;
	}
}

void request_change(struct client *client, struct set *s, const struct mirror_config *config)
{
	struct agent_job *job = agent_job_new(AGENT_SWAP, request_on_swapped, s);
	const char *why = "out of memory";
	int rc = -ENOMEM;

	if (job) {
		job->next = s->entry.record;
		rc = view_set_config(&job->next, config, request_random(), &why);
		if (!rc) {
			job->client = client->serial;
			job->expected = s->entry;
			request_wait(client, s, CLIENT_WAITS_SWAP);
			agent_post(s->asks, job);
			return;
		}
	}
	free(job);
	request_refuse(client, request_code_of_change(rc), NULL, "%s", why);
}

/*
 * Discard this host's copy: it gives up its own history, becomes `syncing`, and a resync makes it
 * equal. First cut off all writers of the copy, because a primary that continues must not count
 * this copy.
 */
static bool request_discard_own(struct client *client, struct set *s)
{
	struct member_verdict v;

	if (!s->is_split && copy_state(s) == MIRROR_COPY_INSYNC) {
		request_refuse(client, CODE_CONFIG,
			       "discard the copy that is split; to compare this one with the "
			       "primary's: rpmirror resync --full",
			       "nothing is to be resolved: the copy of %s is in-sync, and agrees "
			       "with the register",
			       s->conf->member);
		return false;
	}
	member_may_discard(&s->member, &s->entry.record, &v);
	if (v.answer == MEMBER_YES) {
		LOG_WARNING(
			"set %s: an operator discards the data that differ in the copy of %s%s%s",
			s->conf->name, s->conf->member, s->is_split ? ": " : "",
			s->is_split ? s->split_why : "");
		s->shown_ns = clock_boot_ns();
		inbounds_end_all(s->daemon, s);
		member_discard(&s->member, &s->entry.record, s->entry.revision, &v);
	}
	if (v.answer == MEMBER_YES) {
		s->is_split = false;
		return true;
	}
	request_refuse(client,
		       v.reason == MEMBER_IS_HELD ? CODE_BUSY
		       : v.reason == MEMBER_IO    ? CODE_IO
						  : CODE_CONFIG,
		       NULL, "%s", v.text);
	return false;
}

void request_resolve(struct client *client, struct set *s, const char *member)
{
	uint8_t slot = request_slot(client, s, member);

	if (slot == MIRROR_NO_SLOT)
		return;
	if (slot != s->meta.super.slot)
		request_elsewhere(client, s, slot, "that copy");
	else if (request_discard_own(client, s))
		request_done(client, NULL);
}
